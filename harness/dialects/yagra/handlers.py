"""Calling the handlers of nodes. spec: "Node Handler Signature".

A scenario provides handlers by name: Python functions or stubs. The handlers of model nodes are built in; a scenario
may replace them.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from harness.dialects.yagra.document import SUBGRAPH, NodeSpec
from harness.dialects.yagra.model_nodes import llm
from harness.dialects.yagra.streaming import streaming_llm
from harness.dialects.yagra.structured import structured_llm
from harness.engine.callables import call, contained
from harness.engine.context import NodeContext
from harness.errors import HarnessError, Unless
from harness.graph.effects import HandlerCall
from harness.graph.to_json import error_text
from harness.source.models import describe
from harness.source.suggest import nearest

Params = Mapping[str, Any]
State = Mapping[str, Any]
BuiltIn = Callable[[NodeSpec, Params, State, NodeContext], Awaitable[Mapping[str, Any]]]

BUILT_IN: Final[Mapping[str, BuiltIn]] = {
    "llm": llm,
    "structured_llm": structured_llm,
    "streaming_llm": streaming_llm,
}


def unless_replaced(node: NodeSpec) -> Unless | None:
    """Return the condition of a warning about a built-in handler; None if no scenario can replace the node's."""
    return Unless("handler", node.handler) if node.handler in BUILT_IN else None


class SignatureError(HarnessError):
    """A handler that raises TypeError with both signatures, with params and without."""

    code = "handler-signature"


class AnswerError(HarnessError):
    """A handler that does not return a mapping of state keys."""

    code = "handler-answer"


async def call_handler(node: NodeSpec, params: Params, state: State, ctx: NodeContext) -> Mapping[str, Any]:
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

    async def convention(handler: Any) -> Any:
        return await _call(handler, state, own, node)

    async def real() -> Any:
        return await built_in(node, own, state, ctx) if built_in else None

    effect = HandlerCall(
        name=node.handler,
        args=ctx.run.simulation.trace.snapshot(dict(state)),
        convention=convention,
        real=real if built_in else None,
        hint=_hint(node.handler),
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
        raise AnswerError(
            f"handler '{node.handler}' of node '{node.id}' must answer with a mapping of state keys, "
            f"found {describe(answer)}"
        )
    return answer


async def _call(handler: Any, state: State, params: Params, node: NodeSpec) -> Any:
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


def _both_signatures_failed(node: NodeSpec, with_params: TypeError, without: TypeError) -> str:
    return (
        f"handler '{node.handler}' of node '{node.id}' raises TypeError with both signatures: "
        f"handler(state, params): {error_text(with_params)}; handler(state): {error_text(without)}"
    )


def _hint(name: str) -> str:
    near = nearest(name, (*BUILT_IN, SUBGRAPH))
    return f"built in are {', '.join(BUILT_IN)}" + (f" (did you mean '{near}'?)" if near else "")
