"""LLM agents: messages, the tool loop, structured output. spec: "LLM Agent Fields"; NOTES 7, 14."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NoReturn

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from harness.dialects.kit.attempts import with_timeout
from harness.dialects.kit.manifest import strip_code_fence
from harness.dialects.kit.tool_calls import RefusedCall, ToolReportedError, answer_call, refuse, to_ai_message
from harness.dialects.leafmesh.agency import MeshParts
from harness.dialects.leafmesh.decorators import RawOutput, RegisteredTool, post_process
from harness.dialects.leafmesh.document import Knowledge, LLMAgent, Mesh
from harness.dialects.leafmesh.fields import Local, Providers
from harness.dialects.leafmesh.session import Start, user_message
from harness.engine.callables import Call, contained, error_message
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.effects import (
    LLMCall,
    LLMReply,
    ModelServer,
    RetrievalCall,
    RetrievalReply,
    ToolCall,
    ToolSpec,
)
from harness.graph.to_json import as_text, error_text
from harness.interception.real_effects import within_effect
from harness.matchers.json_schema import schema_errors
from harness.time.gather import gather


async def retrieve(knowledge: Knowledge, text: str, ctx: NodeContext) -> str:
    """Return the passages found for a query, as one text. NOTES 14.3."""
    args = {"query": text, "group": knowledge.groupName}
    found: RetrievalReply = await ctx.perform(RetrievalCall(name=knowledge.serviceName, args=args))
    return found.context


QUERY_KNOWLEDGE: Final = ToolSpec(
    "query_knowledge",
    "Search the knowledge base.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)


@dataclass(frozen=True)
class OfferedTool:
    """A tool offered to a model. `perform` runs it, within `limit_s` virtual seconds."""

    spec: ToolSpec
    limit_s: float
    perform: Callable[[Mapping[str, Any]], Awaitable[Any]]


def may_call_tools(agent: LLMAgent) -> bool:
    """True if the settings of an agent allow tool calls."""
    return agent.tool_choice != "none" and agent.max_tool_calls_per_message > 0


def offered_names(name: str, agent: LLMAgent, registered: Mapping[str, RegisteredTool]) -> list[str]:
    """Return the names of the tools offered to an agent, in order and without duplicates. NOTES 7.5.

    `query_knowledge` is included only if `tools` lists it and the agent has knowledge.
    """
    if not may_call_tools(agent):
        return []
    of_categories = [tool.name for tool in registered.values() if tool.category in agent.tool_categories]
    return [
        tool
        for tool in dict.fromkeys([*agent.tools, *of_categories])
        if _may_have(name, registered.get(tool)) and (tool != QUERY_KNOWLEDGE.name or agent.enabled_knowledge)
    ]


def _may_have(name: str, tool: RegisteredTool | None) -> bool:
    """True if an agent may use a tool. Tools that the agency does not register are open to all."""
    return tool is None or tool.allowed_agents is None or name in tool.allowed_agents


class Toolbox:
    """The tools offered in one run of an agent."""

    def __init__(self, agent: LLMAgent, parts: MeshParts, ctx: NodeContext) -> None:
        self._agent, self._ctx = agent, ctx
        registered = parts.agency.tools
        self._offered = {
            name: self._tool(name, registered.get(name))
            for name in offered_names(ctx.name, agent, registered)
        }
        if (knowledge := agent.enabled_knowledge) is not None and may_call_tools(agent):
            self._offered[QUERY_KNOWLEDGE.name] = self._query(knowledge)

    @property
    def specs(self) -> list[ToolSpec]:
        """The tools as models see them."""
        return [tool.spec for tool in self._offered.values()]

    async def answer_calls(self, reply: LLMReply) -> list[BaseMessage]:
        """Make the tool calls of a reply; return its message and the tool messages that answer it."""
        agent, ctx = self._agent, self._ctx
        message = to_ai_message(reply, ctx.new_id)
        most = agent.max_tool_calls_per_message
        made, excess = message.tool_calls[:most], message.tool_calls[most:]
        if agent.allow_parallel_tool_calls:
            answers = await gather(answer_call(call, self._offered, self._use, ctx) for call in made)
        else:
            answers = [await answer_call(call, self._offered, self._use, ctx) for call in made]
        if excess:
            text = f"a message asks for {len(message.tool_calls)} tool calls, and {most} are made"
            ctx.warn(f"agent '{ctx.name}': {text} (max_tool_calls_per_message)")
        return [message, *answers, *(self._not_made(call) for call in excess)]

    def _not_made(self, call: Call) -> BaseMessage:
        text = f"not called: a message may call {self._agent.max_tool_calls_per_message} tools"
        refuse(call, RefusedCall(text), self._ctx)
        return error_message(call, text)

    async def _use(self, tool: OfferedTool, args: Mapping[str, Any]) -> str:
        name, ctx = tool.spec.name, self._ctx
        try:
            result = await with_timeout(lambda: tool.perform(args), ctx, tool.limit_s, f"tool '{name}'")
        except Exception as error:
            if ctx.is_fatal(error):
                raise
            raise ToolReportedError(error_text(error)) from error
        return as_text(result)

    def _tool(self, name: str, registered: RegisteredTool | None) -> OfferedTool:
        spec = ToolSpec(name, "", {"type": "object"}) if registered is None else registered.spec
        limit = self._agent.tool_call_timeout
        if registered is not None and registered.timeout_s is not None:
            limit = min(limit, registered.timeout_s)

        async def perform(args: Mapping[str, Any]) -> Any:
            effect = ToolCall(name=name, args=args)
            if registered is not None:
                hint = f"or write `tools: {{{name}: real}}`: the mesh registers it"
                effect = replace(effect, real=partial(registered.call, args), hint=hint)
            return await self._ctx.perform(effect)

        return OfferedTool(spec, limit, perform)

    def _query(self, knowledge: Knowledge) -> OfferedTool:
        async def perform(args: Mapping[str, Any]) -> Any:
            async def real() -> str:
                return await retrieve(knowledge, as_text(args.get("query", "")), self._ctx)

            call = ToolCall(name=QUERY_KNOWLEDGE.name, args=args, real=real, native=True)
            return await self._ctx.perform(call)

        return OfferedTool(QUERY_KNOWLEDGE, self._agent.tool_call_timeout, perform)


_PREFIXES: Final = {
    "gpt-": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4-": "openai",
    "claude-": "anthropic",
    "gemini-": "google",
    "deepseek-": "deepseek",
}
_HOSTED: Final = ("bedrock", "vertex", "foundry")


def provider_of(model: str, providers: Providers | None = None) -> tuple[str, str]:
    """Return the provider of a model, and the model's name there.

    A name without a known prefix belongs to the provider that the section `mesh` configures, else to a local
    one.
    """
    hosted, slash, name = model.partition("/")
    if slash and hosted in _HOSTED:
        return hosted, name
    found = next((provider for prefix, provider in _PREFIXES.items() if model.startswith(prefix)), None)
    configured = (host for host in ("local", *_HOSTED) if getattr(providers, host, None) is not None)
    return found or next(configured, "local"), model


def agent_llm_call(
    agent: LLMAgent, mesh: Mesh, messages: Sequence[BaseMessage], tools: Sequence[ToolSpec]
) -> LLMCall:
    """Return the effect of one model call of an agent."""
    params: dict[str, Any] = {"temperature": agent.temperature}
    limit = "max_tokens" if agent.max_completion_tokens is None else "max_completion_tokens"
    params[limit] = getattr(agent, limit)
    if tools and agent.tool_choice != "auto":
        params["tool_choice"] = agent.tool_choice
    return llm_call(
        agent.model, mesh, messages, params=params, tools=tools, response_format=agent.response_format
    )


def llm_call(
    model: str,
    mesh: Mesh,
    messages: Sequence[BaseMessage],
    *,
    params: dict[str, Any] | None = None,
    tools: Sequence[ToolSpec] = (),
    response_format: Any = None,
) -> LLMCall:
    """Return the effect of one model call."""
    provider, name = provider_of(model, mesh.mesh)
    return LLMCall(
        name=name,
        provider=provider,
        server=_local_server(mesh.mesh.local) if provider == "local" else None,
        params=params or {},
        messages=tuple(messages),
        tools=tuple(tools),
        response_format=response_format,
    )


def _local_server(local: Local | None) -> ModelServer:
    """Return the server of local models. What is not written comes from variables, the address also has a default."""
    if local is None:
        return ModelServer()
    written = {name: getattr(local, name) for name in local.model_fields_set}
    return ModelServer(
        url=written.get("endpoint"),
        kind=written.get("server_type"),
        headers=local.headers,
        timeout_s=written.get("timeout"),
        default_url=Local.model_fields["endpoint"].default,
    )


CONTEXT_PARTS: Final[Mapping[str, str]] = {
    "care": "EMPATHY & TONE",
    "sentiment_analysis": "SENTIMENT ANALYSIS",
    "guardrails": "SAFETY GUARDRAILS",
    "flows": "FLOW INSTRUCTIONS",
}
"""The labels of the built-in context parts, in message order. spec: "`context_parts` Keys"."""


MOST_TURNS: Final = 200
"""The most model calls in one run of an agent; stops stub lists that call a tool forever."""


class TooManyTurns(HarnessError):
    """The model still asks for tools after `MOST_TURNS` calls."""

    code = "too-many-turns"


class ResponseFormatError(HarnessError):
    """The final reply is not JSON that matches the agent's `response_format`."""

    code = "response-format"


async def call_model(agent: LLMAgent, parts: MeshParts, start: Start, ctx: NodeContext) -> RawOutput:
    """Call the model until it asks for no more tools, then pass its reply to the agent's function.

    Raises:
        ResponseFormatError, TooManyTurns: see these classes.
        Exception: the model call or the function failed.
    """
    function = parts.agency.functions.get(ctx.name)
    if function is not None and function.has_processors:
        run_processors = function.run_processors
        prepared = await contained(within_effect(lambda: run_processors(start.input, start.context)))
        start.context["prepared_data"] = prepared
    user = user_message(start)
    knowledge = agent.enabled_knowledge
    retrieved = "" if knowledge is None else await retrieve(knowledge, user, ctx)
    tools = Toolbox(agent, parts, ctx)
    messages = [*_system_messages(agent, start, retrieved), HumanMessage(content=user)]
    text = await _tool_loop(agent, parts, messages, tools, ctx)
    reply = _parse_reply(agent, text, ctx)
    output = reply if isinstance(reply, Mapping) else {"response": reply}
    return await post_process(function, reply, start, output)


def _system_messages(agent: LLMAgent, start: Start, retrieved: str) -> list[BaseMessage]:
    """Return the system messages, in order. NOTES 7.1."""
    given = agent.context_parts or {}
    labels = {**CONTEXT_PARTS, **{k: k.replace("_", " ").upper() for k in given if k not in CONTEXT_PARTS}}
    texts = [agent.prompt] if agent.prompt else []
    texts += [_labelled(label, given[key]) for key, label in labels.items() if key in given]
    prepared = start.context["prepared_data"]
    if prepared.get("business_context"):
        texts.append(_labelled("BUSINESS CONTEXT", as_text(prepared["business_context"])))
    if posts := start.context["memory_posts"]:
        texts.append(_labelled("MEMORY", "\n".join(f"{post['role']}: {post['content']}" for post in posts)))
    if retrieved:
        texts.append(_labelled("KNOWLEDGE", retrieved))
    if start.rerun is not None:  # NOTES 6.4
        failed = f"This is another attempt, after this one failed:\n{as_text(start.rerun)}"
        texts.append(_labelled("CORRECTION", failed))
    return [SystemMessage(content=text) for text in texts]


def _labelled(label: str, text: str) -> str:
    return f"[{label}]\n{text}"


async def _tool_loop(
    agent: LLMAgent, parts: MeshParts, messages: Sequence[BaseMessage], tools: Toolbox, ctx: NodeContext
) -> str:
    conversation = list(messages)
    for _ in range(MOST_TURNS):
        call = agent_llm_call(agent, parts.mesh, conversation, tools.specs)
        try:
            reply: LLMReply = await ctx.perform(call)
        except Exception as error:
            kind = getattr(error, "kind", "")
            if ctx.is_fatal(error) or not kind:
                raise
            # A copy whose class is named after the kind, such as `rate_limit`. NOTES 13.6
            raise type(str(kind), (type(error),), {})(str(error)) from error
        if not reply.tool_calls:
            return reply.text
        conversation += await tools.answer_calls(reply)
    raise TooManyTurns(f"the model of agent '{ctx.name}' still asks for tools after {MOST_TURNS} calls")


def _parse_reply(agent: LLMAgent, text: str, ctx: NodeContext) -> Any:
    """Return `llm_response`: a mapping if the reply is a JSON object, else its text. NOTES 7.3, 7.4."""
    what = f"the reply to agent '{ctx.name}'"
    try:
        value: Any = json.loads(strip_code_fence(text), parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        value = None
        if agent.response_format is not None:
            raise ResponseFormatError(f"{what} is not JSON: {text[:200]!r}") from None
    if agent.response_format is not None:
        for problem in schema_errors(schema_of(agent.response_format), value):
            raise ResponseFormatError(f"{what} does not match its response_format: {problem}")
    return value if isinstance(value, Mapping) else text


def _reject_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not valid JSON, although Python accepts it")


def schema_of(response_format: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON Schema of a `response_format`, bare or wrapped. spec: "`response_format`"."""
    if response_format.get("type") == "json_schema":
        wrapped = response_format.get("json_schema")
        schema = wrapped.get("schema") if isinstance(wrapped, Mapping) else None
        if isinstance(schema, Mapping):
            return schema
    return response_format
