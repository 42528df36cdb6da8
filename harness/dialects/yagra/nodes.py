"""The functions of nodes: they call a handler or run a subgraph, and return a state update.

spec: "Node Specification", "Resilience". A node writes back its whole input state, updated by its answer.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from langchain_core.messages import convert_to_messages

from harness.dialects.kit.attempts import backoff, with_retries, with_timeout
from harness.dialects.kit.manifest import BadInput, input_values
from harness.dialects.kit.tool_calls import NewId, ensure_id
from harness.dialects.yagra import document as doc
from harness.dialects.yagra.model_nodes import llm, streaming_llm, structured_llm
from harness.engine.callables import call, contained
from harness.engine.context import NodeContext, RunContext
from harness.engine.conversation import run_inside
from harness.errors import HarnessError, Unless
from harness.graph.effects import HandlerCall
from harness.graph.messages import MessageLog, append_messages
from harness.graph.model import Channel, Graph, Lifecycle, NodeFunction, State, Update
from harness.graph.to_json import error_text
from harness.source.display import nearest
from harness.source.models import describe

Params = Mapping[str, Any]
BuiltIn = Callable[[doc.NodeSpec, Params, State, NodeContext], Awaitable[Mapping[str, Any]]]

BUILT_IN: Final[Mapping[str, BuiltIn]] = {
    "llm": llm,
    "structured_llm": structured_llm,
    "streaming_llm": streaming_llm,
}


def unless_replaced(node: doc.NodeSpec) -> Unless | None:
    """Return the condition of a warning about a built-in handler; None if no scenario can replace the node's."""
    return Unless("handler", node.handler) if node.handler in BUILT_IN else None


class SignatureError(HarnessError):
    """A handler that raises TypeError with both signatures, with params and without."""

    code = "handler-signature"


class AnswerError(HarnessError):
    """A handler that does not return a mapping of state keys."""

    code = "handler-answer"


async def call_handler(
    node: doc.NodeSpec, params: Params, state: State, ctx: NodeContext
) -> Mapping[str, Any]:
    """Call the handler of a node and return the state keys that it writes.

    Args:
        node: the node; its `handler` is a name in the scenario's `handlers`, or built in.
        params: the params of the node, with resolved prompts.
        state: the node's input state. Handlers get shallow copies of it and of the params.
        ctx: the context of the visit.

    Raises:
        UnscriptedCall: the world has no answer for the handler.
        SignatureError: the handler raises TypeError with both signatures.
        AnswerError: the handler does not return a mapping.
        Exception: any other error of the handler.
    """
    built_in = BUILT_IN.get(node.handler)
    # One deep copy per run: a handler may change values inside its params, and other runs must not see that.
    resources, key = ctx.run.resources, f"params of {node.id}"
    if key not in resources:
        resources[key] = copy.deepcopy(params)
    own: Params = resources[key]

    near = nearest(node.handler, (*BUILT_IN, doc.SUBGRAPH))
    effect = HandlerCall(
        name=node.handler,
        args=ctx.run.simulation.trace.snapshot(dict(state)),
        convention=lambda handler: _call(handler, state, own, node),
        real=partial(built_in, node, own, state, ctx) if built_in else None,
        hint=f"built in are {', '.join(BUILT_IN)}" + (f" (did you mean '{near}'?)" if near else ""),
    )
    if built_in is not None and not ctx.run.world.answers_for(effect):
        return await built_in(node, own, state, ctx)
    try:
        answer = await ctx.run.perform(effect, state, ctx.name)
    except TypeError:
        # A stub raised it, and is called a second time like a handler. `convention` does this for real handlers.
        try:
            answer = await ctx.run.perform(effect, state, ctx.name)
        except TypeError as error:
            raise SignatureError(_both_signatures_failed(node, error, error)) from error
    if not isinstance(answer, Mapping):
        text = f"handler '{node.handler}' of node '{node.id}' must answer with a mapping of state keys"
        raise AnswerError(f"{text}, found {describe(answer)}")
    return answer


async def _call(handler: Any, state: State, params: Params, node: doc.NodeSpec) -> Any:
    """Call a handler with state and params; if that raises TypeError, with the state alone.

    spec: "Yagra tries calling with params first, falls back to state-only if that fails".
    """
    try:
        return await contained(call(handler, dict(state), dict(params)))
    except TypeError as with_params:
        # Inside the `except`, so that `with_params` is the context of what is raised here, and its line is shown.
        try:
            return await call(handler, dict(state))
        except TypeError as error:
            raise SignatureError(_both_signatures_failed(node, with_params, error)) from error


def _both_signatures_failed(node: doc.NodeSpec, with_params: TypeError, without: TypeError) -> str:
    return (
        f"handler '{node.handler}' of node '{node.id}' raises TypeError with both signatures: "
        f"handler(state, params): {error_text(with_params)}; handler(state): {error_text(without)}"
    )


_ONCE = doc.RetrySpec(max_attempts=1)


async def with_resilience(
    node: doc.NodeSpec, attempt: Callable[[], Awaitable[Update]], ctx: NodeContext
) -> Update:
    """Run `attempt` under the node's `retry` and `timeout_seconds` (virtual), and return its update.

    If all attempts fail and the node has a fallback, the update goes to the fallback node. It is then the node's
    input state with the text of the last error under `__error__`.

    Raises:
        TimeoutError: the last attempt took longer than `timeout_seconds`.
        Exception: the error of the last attempt. Pauses and unanswered calls are raised at once.
    """
    retry = node.retry or _ONCE
    timed = partial(with_timeout, attempt, ctx, node.timeout_seconds, f"node '{node.id}'")
    delay_s = backoff(retry.base_delay_seconds, exponential=retry.backoff == "exponential")
    try:
        return await with_retries(
            timed, ctx, attempts=retry.max_attempts, delay_s=delay_s, restarts_visit=True
        )
    except Exception as error:
        if node.fallback is None or ctx.is_fatal(error):
            raise
        ctx.because(error, "fallback")
        return Update({**ctx.state, doc.ERROR: error_text(error)}, goto=node.fallback)


class BadState(HarnessError):
    """A value that the reducer of a key cannot merge."""

    code = "bad-state"


class StateKeys:
    """The keys that the state of a workflow keeps: the declared ones, or all if `is_open`."""

    def __init__(self, workflow: doc.Workflow) -> None:
        self.fields = workflow.state_schema
        self.is_open = not self.fields
        has_fallback = any(node.fallback is not None for node in workflow.nodes)
        self._keeps_error = has_fallback and not self.is_open and doc.ERROR not in self.fields

    def channels(self) -> tuple[Channel, ...]:
        """Return the channels of the declared keys, and one for the error if a node has a fallback."""
        channels = [_channel(name, field) for name, field in self.fields.items()]
        if self._keeps_error:
            channels.append(Channel(doc.ERROR, reducer=_replace))
        return tuple(channels)

    def kept(self, values: Mapping[str, Any], new_id: NewId) -> dict[str, Any]:
        """Return the values that the state keeps, prepared for its reducers.

        Raises:
            BadState: the reducer of a key cannot merge its value.
        """
        if self.is_open:
            return dict(values)
        return {
            name: _prepared(name, field, values[name], new_id)
            for name, field in self.fields.items()
            if name in values
        }

    def dropped(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that the state does not keep. Only the edges after a node see them."""
        if self.is_open:
            return {}
        return {key: value for key, value in values.items() if key not in self.fields and key != doc.ERROR}


def _channel(name: str, field: doc.StateField) -> Channel:
    if field.type == "messages":
        return Channel(name, _merge_messages, MessageLog)
    return Channel(name, operator.add, list) if field.is_reduced_list else Channel(name)


def _prepared(name: str, field: doc.StateField, value: Any, new_id: NewId) -> Any:
    if field.type == "messages":
        return _messages(name, value, new_id)
    if field.is_reduced_list and not isinstance(value, list):
        raise BadState(f"'{name}' appends lists (reducer: add): expected a list, found {describe(value)}")
    return value


def _messages(name: str, value: Any, new_id: NewId) -> Any:
    """Convert one or a list of `{role, content}`, `(role, text)`, text or messages to messages with ids."""
    if isinstance(value, MessageLog):
        return value
    try:
        messages = convert_to_messages(value if isinstance(value, list) else [value])
    except (NotImplementedError, ValueError, TypeError, KeyError) as error:
        raise BadState(f"'{name}' takes messages: {str(error).splitlines()[0]}") from error
    return [ensure_id(message, new_id) for message in messages]


def _merge_messages(old: MessageLog, new: Any) -> MessageLog:
    """Append messages. A node usually writes back the unchanged log, which needs no work."""
    return old if new is old else append_messages(old, new)


def _replace(_old: Any, new: Any) -> Any:
    return new


def handler_node(
    spec: doc.NodeSpec, params: Params, keys: StateKeys, *, has_conditional_edges: bool
) -> NodeFunction:
    """Return the function of a node that calls a handler.

    If the node has conditional edges, its default `output_key` is `__next__`.
    """
    if has_conditional_edges and "output_key" not in params:
        params = {**params, "output_key": doc.NEXT}

    async def run(state: State, ctx: NodeContext) -> Update:
        given = {key: list(value) if isinstance(value, MessageLog) else value for key, value in state.items()}

        async def attempt() -> Update:
            return Update(dict(await call_handler(spec, params, given, ctx)))

        update = await with_resilience(spec, attempt, ctx)
        return _update({**_input_state(state, given), **update.values}, update.goto, keys, ctx)

    return run


def subgraph_node(spec: doc.NodeSpec, graph: Graph, keys: StateKeys) -> NodeFunction:
    """Return the function of a node that runs another workflow on the state and writes the final state of that.

    spec: "Subgraph Node".
    """

    async def run(state: State, ctx: NodeContext) -> Update:
        async def attempt() -> Update:
            return Update((await run_inside(ctx, graph, dict(state))).state)

        update = await with_resilience(spec, attempt, ctx)
        return _update(update.values, update.goto, keys, ctx)

    return run


def _update(values: Mapping[str, Any], goto: str | None, keys: StateKeys, ctx: NodeContext) -> Update:
    kept = keys.kept(values, ctx.new_id)
    if goto is not None and doc.ERROR in values:
        kept[doc.ERROR] = values[doc.ERROR]
    return Update(kept, goto, routing_values=keys.dropped(values))


def _input_state(state: State, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input state, with the message lists that a handler changed in place instead of their logs."""
    return {
        key: given[key] if isinstance(value, MessageLog) and _changed(value, given[key]) else value
        for key, value in state.items()
    }


def _changed(log: MessageLog, given: Any) -> bool:
    return len(log) != len(given) or any(one is not other for one, other in zip(log, given, strict=True))


def lifecycle(keys: StateKeys) -> Lifecycle:
    """Return the lifecycle of a workflow with these state keys."""

    async def accept(value: Any, run: RunContext) -> Mapping[str, Any]:
        values = input_values(value, doc.TEXT_INPUT, "an input is text or a mapping of state keys")
        return keys.kept(values, run.new_id)

    async def update_state(value: Any, run: RunContext) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise BadInput(f"a run is resumed with a mapping of state keys, not {describe(value)}")
        return {**keys.dropped(value), **keys.kept(value, run.new_id)}

    async def finish(state: State, _run: RunContext) -> Any:
        return dict(state)

    return Lifecycle(accept=accept, update_state=update_state, finish=finish)
