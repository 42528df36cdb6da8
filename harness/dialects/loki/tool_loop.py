"""The tool-call loop: model calls until a reply requests no tool. spec: "llm", `max_iterations`; "agent"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from harness.dialects.kit.tool_calls import ToolReportedError, answer_call, to_ai_message
from harness.dialects.loki.models import ModelSettings
from harness.dialects.loki.tool_universe import Tool
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.effects import LLMReply
from harness.graph.to_json import error_text


class TooManyIterations(HarnessError):
    """A model that still requests tools in the last permitted call."""

    code = "max-iterations"


async def tool_loop(
    model: ModelSettings,
    messages: Sequence[BaseMessage],
    tools: Sequence[Tool],
    max_iterations: int,
    ctx: NodeContext,
) -> str:
    """Run the tool-call loop and return the texts of all replies, joined by newlines.

    The tools of one reply run one after the other. The failure of a tool is sent to the model as its result.

    Args:
        model: the model.
        messages: the first messages of the conversation.
        tools: the tools of the model.
        max_iterations: the maximum number of model calls.
        ctx: the context of the visit.

    Raises:
        TooManyIterations: the reply of the last call requests tools.
        Exception: the error of a model call.
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
    for _ in range(max_iterations):
        reply: LLMReply = await ctx.perform(model.call(conversation, specs))
        texts += [reply.text] if reply.text else []
        if not reply.tool_calls:
            return "\n".join(texts)
        message = to_ai_message(reply, ctx.new_id)
        conversation.append(message)
        for call in message.tool_calls:
            conversation.append(await answer_call(call, by_name, use, ctx))
    raise TooManyIterations(f"the model still asks for tools after max_iterations={max_iterations} calls")
