"""The tools of an LLM agent, and the tool calls of its model. spec: "Tools"; NOTES 7.5-7.7, 14.3."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from langchain_core.messages import BaseMessage

from harness.dialects.kit.attempts import with_timeout
from harness.dialects.kit.tool_calls import RefusedCall, ToolReportedError, answer_call, refuse, to_ai_message
from harness.dialects.leafmesh.document import Knowledge, LLMAgent
from harness.dialects.leafmesh.knowledge import retrieve
from harness.dialects.leafmesh.parts import MeshParts
from harness.dialects.leafmesh.registered_tool import RegisteredTool
from harness.engine.context import NodeContext
from harness.engine.tool_messages import Call, error_message
from harness.graph.effects import LLMReply, ToolCall, ToolSpec
from harness.graph.to_json import as_text, error_text
from harness.time.gather import gather

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
            ctx.warn(
                f"agent '{ctx.name}': a message asks for {len(message.tool_calls)} tool calls, and {most} are made "
                "(max_tool_calls_per_message)"
            )
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

            return await self._ctx.perform(
                ToolCall(name=QUERY_KNOWLEDGE.name, args=args, real=real, native=True)
            )

        return OfferedTool(QUERY_KNOWLEDGE, self._agent.tool_call_timeout, perform)
