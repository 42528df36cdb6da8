"""Model calls with tools, until a reply asks for none. spec: "llm", `max_iterations`; "agent"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from harness.dialects.kit.messages import to_ai_message
from harness.dialects.kit.tool_calls import ToolReportedError, answer_call
from harness.dialects.loki.models import ModelSettings
from harness.dialects.loki.tool_universe import Tool
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.effects import LLMReply
from harness.graph.to_json import error_text


class TooManyIterations(HarnessError):
    """A model that still asks for tools in its last turn."""

    code = "max-iterations"


async def tool_loop(
    model: ModelSettings,
    messages: Sequence[BaseMessage],
    tools: Sequence[Tool],
    most: int,
    ctx: NodeContext,
) -> str:
    """The texts of all turns, joined by newlines.

    The tools of one reply run one after the other. The model gets the failure of a tool as its result.

    Args:
        model: who is called.
        messages: how the conversation begins.
        tools: all that the model may call.
        most: how many calls of the model there may be.
        ctx: the visit.

    Raises:
        TooManyIterations: the last of these calls asks for tools as well.
        Exception: what a call of the model raised.
    """

    async def use(tool: Tool, args: Mapping[str, Any]) -> str:
        try:
            return await tool.call(args, ctx)
        except Exception as error:
            if ctx.is_fatal(error) or isinstance(error, ToolReportedError):
                raise
            raise ToolReportedError(error_text(error)) from error

    conversation = list(messages)
    specs, by_name = [tool.spec for tool in tools], {tool.spec.name: tool for tool in tools}
    texts: list[str] = []
    for _ in range(most):
        reply: LLMReply = await ctx.perform(model.call(conversation, specs))
        texts += [reply.text] if reply.text else []
        if not reply.tool_calls:
            return "\n".join(texts)
        message = to_ai_message(reply, ctx.new_id)
        conversation.append(message)
        for call in message.tool_calls:
            conversation.append(await answer_call(call, by_name, use, ctx))
    raise TooManyIterations(f"the model still asks for tools after max_iterations={most} calls")
