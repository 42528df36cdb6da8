"""Running a model's tool calls, and the messages that answer them.

Errors of the model (an unknown tool, wrong arguments) and failures that a tool reports are sent back to the model in
a tool message. Exceptions of a tool fail the node. The wording is LangGraph's (`engine.tool_messages`).

A call that cannot be made is refused: the trace and the calls of the run have it, with the reason.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from harness.engine.callables import Call, bad_arguments, error_message, result_message, unknown_tool
from harness.engine.context import NodeContext
from harness.graph.effects import Effect, LLMReply, ToolCall, ToolSpec
from harness.source.display import did_you_mean
from harness.time.gather import gather

Tool = TypeVar("Tool")

UseTool = Callable[[Tool, Mapping[str, Any]], Awaitable[str | list[Any]]]
"""A function that runs a tool with the model's arguments and returns its result: text, or content blocks.

Raises:
    BadArguments: the tool does not take these arguments.
    ToolReportedError: the tool reports a failure.
"""


class RefusedCall(Exception):
    """A tool call that cannot be made."""


class UnknownTool(RefusedCall):
    """The call of a tool that the model does not have."""


class BadArguments(RefusedCall):
    """Arguments that the tool does not take. The message is sent to the model; `effect` is the requested call."""

    def __init__(self, message: str, effect: Effect) -> None:
        super().__init__(message)
        self.effect = effect


class ToolReportedError(Exception):
    """A failure that the tool reports, which is sent to the model. `content` holds its content blocks, if any."""

    def __init__(self, message: str, content: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self.content = list(content)


async def answer_call(
    call: Call, tools: Mapping[str, Tool], use: UseTool[Tool], ctx: NodeContext
) -> ToolMessage:
    """Run one tool call and return the message that answers it. `tools` are the model's tools by name."""
    tool = tools.get(call["name"])
    if tool is None:
        refuse_unknown(call, tools, ctx)
        return unknown_tool(call, tools)
    try:
        return result_message(call, await use(tool, call["args"]))
    except BadArguments as error:
        ctx.refuse(error.effect, error)
        return bad_arguments(call, error)
    except ToolReportedError as error:
        return error_message(call, error.content or str(error))


async def answer_calls(
    calls: Iterable[Call], tools: Mapping[str, Tool], use: UseTool[Tool], ctx: NodeContext
) -> list[ToolMessage]:
    """Run tool calls concurrently and return the messages that answer them, in the order of the calls."""
    return await gather(answer_call(call, tools, use, ctx) for call in calls)


def refuse_unknown(call: Call, known: Iterable[str], ctx: NodeContext) -> None:
    """Refuse the call of an unknown tool. `known` are the names of the model's tools."""
    names = list(known)
    hint = did_you_mean(call["name"], names) if names else "it has none"
    refuse(call, UnknownTool(f"the model has no tool '{call['name']}'" + (f" ({hint})" if hint else "")), ctx)


def refuse(call: Call, why: RefusedCall, ctx: NodeContext) -> None:
    """Record a call that the model requested and that cannot be made."""
    ctx.refuse(ToolCall(name=call["name"], args=call.get("args") or {}), why)


def refuse_all(calls: Sequence[Call], ctx: NodeContext) -> None:
    """Refuse the calls in the reply of a model that has no tools, with a warning that names them."""
    for call in calls:
        refuse_unknown(call, (), ctx)
    if calls:
        names = ", ".join(call["name"] for call in calls)
        ctx.warn(f"node '{ctx.name}': the model asks for tools, and it has none: {names}")


def mcp_texts(content: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the texts of the text blocks among MCP content blocks."""
    return [str(block["text"]) for block in content if block.get("type") == "text"]


NewId = Callable[[str], str]
"""A function that generates an id with the given prefix (`RunContext.new_id`)."""

AnyMessage = TypeVar("AnyMessage", bound=BaseMessage)


def ensure_id(message: AnyMessage, new_id: NewId) -> AnyMessage:
    """Return the message if it has an id, else a copy with a new one."""
    return message if message.id else message.model_copy(update={"id": new_id("message")})


def to_ai_message(reply: LLMReply, new_id: NewId) -> AIMessage:
    """Convert a model's reply to a message. Tool calls without an id get one."""
    calls = [
        {
            "name": call["name"],
            "args": dict(call.get("args") or {}),
            "id": call.get("id") or new_id("call"),
            "type": "tool_call",
        }
        for call in reply.tool_calls
    ]
    metadata = {"finish_reason": reply.finish_reason} if reply.finish_reason else {}
    return AIMessage(
        content=reply.text, tool_calls=calls, response_metadata=metadata, usage_metadata=_usage(reply.usage)
    )


def _usage(usage: Mapping[str, int]) -> UsageMetadata | None:
    if not usage:
        return None
    sent, received = usage.get("input_tokens", 0), usage.get("output_tokens", 0)
    return UsageMetadata(input_tokens=sent, output_tokens=received, total_tokens=sent + received)


def spec_of_tool(tool: BaseTool) -> ToolSpec:
    """Describe a tool as LangChain does: without pydantic's titles, references resolved."""
    function = convert_to_openai_tool(tool)["function"]
    return ToolSpec(
        tool.name, function.get("description", ""), function.get("parameters", {"type": "object"})
    )


def spec_of_function(function: Callable[..., Any], name: str, description: str | None = None) -> ToolSpec:
    """Describe a function by its signature, and by its docstring unless a description is given.

    The parameters have no types if a JSON Schema cannot express the annotations.
    """
    text = description or inspect.getdoc(function) or ""
    try:
        spec = spec_of_tool(StructuredTool.from_function(func=function, name=name, description=text))
        return ToolSpec(name, text, spec.schema)
    except Exception:  # annotations can be anything, and so can the errors of pydantic about them
        return ToolSpec(name, text, _untyped(function))


def _untyped(function: Callable[..., Any]) -> dict[str, Any]:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    try:
        signature = inspect.signature(function)
    except ValueError:  # some C functions have no signature
        return {"type": "object"}
    parameters = [parameter for parameter in signature.parameters.values() if parameter.kind not in variadic]
    return {
        "type": "object",
        "properties": {parameter.name: {} for parameter in parameters},
        "required": [
            parameter.name for parameter in parameters if parameter.default is inspect.Parameter.empty
        ],
    }
