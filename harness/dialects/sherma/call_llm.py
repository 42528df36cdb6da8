"""The call_llm node: prompt, tools, the model call with retries, `state_updates`. spec: `call_llm`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Final

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.utils.json import parse_json_markdown

from harness.dialects.kit.attempts import backoff, with_retries
from harness.dialects.kit.tool_calls import RefusedCall, ensure_id, refuse, refuse_all, to_ai_message
from harness.dialects.sherma import document as doc
from harness.dialects.sherma import hooks as hook
from harness.dialects.sherma.agent import Agent, AgentSession, LoadedSkills, hook_state
from harness.dialects.sherma.document import INTERNAL_STATE_KEY, LLM
from harness.dialects.sherma.tools import Tool, ToolNotFound, to_tool, unique_by_name
from harness.dialects.sherma.warnings import declared_fields, dropped_warning
from harness.engine.context import NodeContext
from harness.errors import ExpressionError
from harness.expressions.cel import compile as compile_cel
from harness.graph.effects import LLMCall, ToolSpec
from harness.graph.messages import MessageLog, to_messages
from harness.graph.model import State, Update
from harness.graph.to_json import error_text
from harness.source.models import describe

_BASE_URLS: Final = ("base_url", "openai_api_base", "anthropic_api_url")
_API_KEYS: Final = ("api_key", "openai_api_key", "anthropic_api_key")


def model_call(
    session: AgentSession,
    llm: LLM,
    messages: Sequence[BaseMessage],
    tools: Sequence[ToolSpec],
    response_format: Any = None,
) -> LLMCall:
    """Return the effect of calling a declared model in a run."""
    model, params = session.invocation.get("models", {}).get(llm.id, (llm.model_name, {}))
    return LLMCall(
        name=model,
        provider=llm.provider,
        base_url=_setting(params, _BASE_URLS),
        api_key=_setting(params, _API_KEYS),
        params={name: value for name, value in params.items() if name not in _API_KEYS},
        messages=tuple(messages),
        tools=tuple(tools),
        response_format=response_format,
    )


def _setting(params: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """Return the first of these settings that a hook gave to a model. Keys may be pydantic secrets."""
    value = next((params[name] for name in names if params.get(name)), None)
    return str(value.get_secret_value() if hasattr(value, "get_secret_value") else value) if value else None


Result = dict[str, Any]


@dataclass(frozen=True)
class Visit:
    """A visit of a node: the node's definition, the input state, the context and the session."""

    node: Any
    state: State
    ctx: NodeContext
    session: AgentSession

    @property
    def agent(self) -> Agent:
        """The agent that the node belongs to."""
        return self.session.agent

    @cached_property
    def hook_state(self) -> dict[str, Any]:
        """The state for hooks. It is shared by the hooks of a visit, so one can leave data for another."""
        return hook_state(self.state)

    def evaluate(self, expression: str, **names: Any) -> Any:
        """Evaluate a CEL expression on the state of this visit."""
        return self.agent.evaluate(expression, self.state, **names)

    def node_info(self, bundle: Any = None) -> hook.NodeInfo:
        """Return the description of the node for hooks."""
        node = self.session.copy_for_hooks(f"node {self.node.name}", self.node)
        manifest = self.session.copy_for_hooks("manifest", self.agent.manifest)
        return hook.NodeInfo(node, config=manifest, registries=bundle)

    async def fire(self, point: str, **fields: Any) -> Any:
        """Run the hooks of a point; return its context. `fields` are those of it besides node and state."""
        if not self.session.hooks:
            return SimpleNamespace(**fields)
        context_class = hook.HOOK_POINTS[point]
        context = context_class(
            node_context=self.node_info(), node_name=self.node.name, state=self.hook_state, **fields
        )
        return await self.session.hooks.run(point, context)


def node_function(node: Any, body: Callable[[Visit], Awaitable[Result]]) -> Callable[..., Awaitable[Update]]:
    """Return the function of a node: `node_enter`, the body, `node_exit`, and error handling."""

    async def run(state: State, ctx: NodeContext) -> Update:
        session = AgentSession.of(ctx.run)
        visit = Visit(node, state, ctx, session)
        try:
            await visit.fire("node_enter", node_type=node.type)
            left = await visit.fire("node_exit", node_type=node.type, result=await body(visit))
            result = left.result or {}
            if not isinstance(result, Mapping):
                text = f"hooks must leave node '{node.name}' a mapping of fields, not {describe(result)}"
                raise TypeError(text)
        except Exception as error:
            if ctx.is_fatal(error):
                raise
            if isinstance(error, ExpressionError) and error.span is None:
                error.span = session.agent.expression_place(node.name, error)
            return await _handle_error(visit, error)
        declared = declared_fields(session.agent.definition)
        for field in (field for field in result if field not in declared):  # sherma drops them
            ctx.run.warn(dropped_warning(node.name, field, session.agent.definition, ctx.run.graph))
        return Update(channel_updates(result, session.agent, ctx))

    return run


async def _handle_error(visit: Visit, error: Exception) -> Update:
    """Handle an error: route to the fallback, else let `on_node_error` hooks swallow it. spec: on_error."""
    on_error = visit.node.on_error
    if on_error is not None and on_error.fallback is not None:
        last_error = {
            "node": visit.node.name,
            "type": type(error).__name__,
            "message": str(error),
            "attempt": on_error.retry.max_attempts if on_error.retry else 1,
        }
        internal = {**(visit.state.get(INTERNAL_STATE_KEY) or {}), "last_error": last_error}
        visit.ctx.because(error, "fallback")
        return Update({INTERNAL_STATE_KEY: internal}, goto=on_error.fallback)
    seen = await visit.fire("on_node_error", node_type=visit.node.type, error=error)
    if seen.error is None:
        visit.ctx.because(f"a hook took its error: {error_text(error)}", "skip")
        return Update()
    if seen.error is not error:
        raise seen.error from error
    raise error


def channel_updates(result: Mapping[str, Any], agent: Agent, ctx: NodeContext) -> Result:
    """Return a node's updates for the channels: `messages` become message objects with ids.

    Raises:
        ValueError: `messages` contains a value that is not a message.
    """
    update = dict(result)
    if agent.definition.keeps_messages and "messages" in update:
        update["messages"] = [ensure_id(message, ctx.new_id) for message in to_messages(update["messages"])]
    return update


async def call_llm(visit: Visit) -> Result:
    """Run the node: prompt, tools, model call, then `state_updates` on the input state. spec: `call_llm`."""
    args: doc.CallLLM = visit.node.args
    messages, system = _prompt(visit, args)
    tools = _bound_tools(visit, args)
    if visit.session.hooks:
        messages, tools = await _before_llm_call(visit, messages, system, tools)
    response = await _call_model(visit, args, messages, tools)
    response = (await visit.fire("after_llm_call", response=response)).response
    if not hasattr(response, "content"):
        raise TypeError(f"hooks must leave 'response' a message, not {describe(response)}")
    asked = getattr(response, "tool_calls", None) or []
    calls = [{"name": call["name"], "args": call["args"], "id": call["id"]} for call in asked]
    value = {"role": "ai", "content": response.content, "tool_calls": calls}
    result = {
        field: visit.evaluate(expression, llm_response=value)
        for field, expression in args.state_updates.items()
    }
    if tools and "messages" not in args.state_updates:
        visit.ctx.warn(
            f"node '{visit.node.name}' has tools, but its state_updates do not write 'messages': "
            "the tools it asks for will not run"
        )
    _refuse_unhandled_calls(visit, args, calls)
    return result


def _refuse_unhandled_calls(visit: Visit, args: doc.CallLLM, calls: list[Result]) -> None:
    """Refuse tool calls that no node will run.

    Nothing is refused in a graph with custom nodes, whose hooks may run them.
    """
    graph = visit.agent.definition.graph
    if any(node.type == "custom" for node in graph.nodes):
        return
    if not graph.has_tool_node:
        refuse_all(calls, visit.ctx)
    elif "messages" not in args.state_updates:
        why = RefusedCall("no tool node sees it: state_updates do not write 'messages'")
        for call in calls:
            refuse(call, why, visit.ctx)


def _prompt(visit: Visit, args: doc.CallLLM) -> tuple[list[BaseMessage], list[str]]:
    """Return the messages of the prompt items, in order, and the texts of the system items."""
    messages: list[BaseMessage] = []
    system: list[str] = []
    kinds = {"system": SystemMessage, "human": HumanMessage, "ai": AIMessage}
    for item in args.prompt:
        if item.role == "messages":
            messages += _spliced_messages(visit, item.content)
        else:
            value = visit.evaluate(item.content)
            text = value if isinstance(value, str) else str(value)
            messages.append(kinds[item.role](content=text))
            if item.role == "system":
                system.append(text)
    return messages, system


def _spliced_messages(visit: Visit, expression: str) -> Sequence[BaseMessage]:
    """Return the messages of a `role: messages` item; `state.messages` gives the stored objects themselves."""
    reference = compile_cel(expression, null_as_false=True).reference
    kept = visit.state.get("messages")
    if reference == ("state", "messages") and isinstance(kept, MessageLog):
        return kept
    return to_messages(visit.evaluate(expression))


def _bound_tools(visit: Visit, args: doc.CallLLM) -> list[Tool]:
    """Return the tools of the dynamic flags, then the explicit ones, one per name: "Tool binding modes"."""
    registry = visit.session.tools
    tools: list[Tool] = []
    if args.use_tools_from_registry:
        tools += registry.all()
    if args.use_tools_from_loaded_skills:
        tools += _loaded_tools(visit)
    if args.use_sub_agents_as_tools:
        chosen = args.use_sub_agents_as_tools
        bound = chosen if isinstance(chosen, list) else visit.agent.sub_agents
        tools += [registry.get(agent.id) for agent in bound]
    tools += [registry.get(ref.id, ref.version) for ref in args.tools or ()]
    return unique_by_name(tools)


def _loaded_tools(visit: Visit) -> list[Tool]:
    """Return the tools of loaded skills, with a warning for each that is not registered."""
    tools = []
    for id_ in LoadedSkills.of(visit.state).tools:
        try:
            tools.append(visit.session.tools.get(id_))
        except ToolNotFound as error:
            visit.ctx.warn(f"node '{visit.node.name}' goes without a tool of a loaded skill: {error}")
    return tools


async def _before_llm_call(
    visit: Visit, messages: list[BaseMessage], system: list[str], tools: list[Tool]
) -> tuple[list[BaseMessage], list[Tool]]:
    """Run the `before_llm_call` hooks; return the messages and tools they leave.

    As in sherma, the prompt's system items become one message at the front, and system messages from the
    conversation are dropped.
    """
    changed = await visit.fire(
        "before_llm_call",
        system_prompt="\n".join(system),
        messages=[
            message.model_copy(deep=True) for message in messages if not isinstance(message, SystemMessage)
        ],
        tools=list(tools),
    )
    front = [SystemMessage(content=changed.system_prompt)] if changed.system_prompt else []
    return [*front, *to_messages(changed.messages)], [to_tool(tool) for tool in changed.tools]


async def _call_model(
    visit: Visit, args: doc.CallLLM, messages: list[BaseMessage], tools: list[Tool]
) -> AIMessage:
    """Call the model, with the retries of `on_error`, which also parse a structured answer anew.

    Nothing else is retried. spec: on_error, retry.
    """
    manifest = visit.agent.manifest
    reference = args.llm or manifest.default_llm
    assert reference is not None  # checked when the manifest was compiled
    llm = visit.agent.llms[reference.id]
    wanted = args.response_format.model_dump(by_alias=True) if args.response_format else None
    call = model_call(visit.session, llm, messages, [tool.spec for tool in tools], wanted)
    retry = (visit.node.on_error and visit.node.on_error.retry) or doc.Retry(max_attempts=1)
    delay_s = backoff(retry.delay, exponential=retry.strategy == "exponential", most_s=retry.max_delay)

    async def attempt() -> AIMessage:
        message = to_ai_message(await visit.ctx.perform(call), visit.ctx.new_id)
        return message if wanted is None else _structured(message, visit)

    return await with_retries(attempt, visit.ctx, attempts=retry.max_attempts, delay_s=delay_s)


def _structured(message: AIMessage, visit: Visit) -> AIMessage:
    """Return a structured answer as sherma passes it on: its JSON object as text, and "" for any other JSON.

    Raises:
        OutputParserException: it is no JSON.
    """
    text = message.text.strip()
    try:
        value = parse_json_markdown(text)
    except json.JSONDecodeError as error:
        raise OutputParserException(f"Invalid json output: {text}", llm_output=text) from error
    if not isinstance(value, dict):
        visit.ctx.warn(
            f"node '{visit.node.name}' asked for a JSON object, and the model wrote {describe(value)}: "
            "sherma drops it"
        )
    text = json.dumps(value) if isinstance(value, dict) else ""
    return message.model_copy(update={"content": text, "tool_calls": []})
