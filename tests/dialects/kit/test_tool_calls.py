"""The messages that answer a model's tool calls."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain_core.messages import ToolMessage

from harness.dialects.kit.tool_calls import (
    BadArguments,
    ToolReportedError,
    answer_call,
    answer_calls,
    mcp_texts,
    refuse_all,
)
from harness.engine.context import NodeContext
from harness.graph.effects import AgentCall
from tests.dialects.kit.one_node import VisitResult, visit

Use = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
TOOLS = {"add": "the adder", "ask": "the asker"}


def call(name: str = "add", **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": f"{name}-1"}


def answer(use: Use, asked: Mapping[str, Any]) -> ToolMessage:
    return answered(use, asked)[0]


def answered(use: Use, asked: Mapping[str, Any]) -> tuple[ToolMessage, list[dict[str, Any]]]:
    """Return the message that answers a call, and the calls of the run."""
    result = visit(lambda ctx: answer_call(asked, TOOLS, use, ctx))
    return result.value, result.calls


async def echo(tool: str, args: Mapping[str, Any]) -> str:
    return f"{tool} got {dict(args)}"


def test_the_named_tool_gets_the_arguments() -> None:
    message = answer(echo, call(a=1))
    assert (message.content, message.status) == ("the adder got {'a': 1}", "success")
    assert (message.name, message.tool_call_id) == ("add", "add-1")


def test_an_unknown_tool_is_answered_with_the_known_tools() -> None:
    message = answer(echo, call("sub"))
    assert message.status == "error"
    assert "sub is not a valid tool" in message.content
    assert "add, ask" in message.content


def test_the_call_of_an_unknown_tool_is_recorded_with_the_reason() -> None:
    assert answered(echo, call("ad", a=1))[1] == [
        {
            "kind": "tool",
            "name": "ad",
            "node": "n",
            "args": {"a": 1},
            "ok": False,
            "latency": 0.0,
            "reason": "the model has no tool 'ad' (did you mean 'add'?)",
            "refused": True,
        }
    ]


def test_wrong_arguments_are_reported_to_the_model() -> None:
    async def refuse(_tool: str, _args: Mapping[str, Any]) -> str:
        raise BadArguments("a: must be a number", AgentCall(name="adder", args={"a": "x"}))

    message, calls = answered(refuse, call(a="x"))
    assert message.status == "error"
    assert "a: must be a number" in message.content
    [made] = calls
    assert (made["kind"], made["name"], made["ok"]) == ("agent", "adder", False)
    assert made["reason"] == "a: must be a number"


def test_calls_of_a_model_without_tools_are_refused_with_a_warning() -> None:
    async def refuse(ctx: NodeContext) -> None:
        refuse_all([call("add"), call("ask", a=1)], ctx)

    result = visit(refuse)
    assert [(made["name"], made["reason"]) for made in result.calls] == [
        ("add", "the model has no tool 'add' (it has none)"),
        ("ask", "the model has no tool 'ask' (it has none)"),
    ]
    assert result.warnings == ["node 'n': the model asks for tools, and it has none: add, ask"]


def test_a_reported_failure_is_sent_to_the_model_as_content_or_text() -> None:
    blocks = [{"type": "text", "text": "no such book"}]

    async def report(_tool: str, args: Mapping[str, Any]) -> str:
        raise ToolReportedError("it failed", args.get("content", ()))

    assert answer(report, call(content=blocks)).content == blocks
    message = answer(report, call())
    assert (message.content, message.status) == ("it failed", "error")


def test_an_exception_of_a_tool_is_raised() -> None:
    async def broken(_tool: str, _args: Mapping[str, Any]) -> str:
        raise OSError("disk full")

    assert isinstance(visit(lambda ctx: answer_call(call(), TOOLS, broken, ctx)).error, OSError)


def test_calls_run_concurrently_and_are_answered_in_order() -> None:
    async def sleepy(_tool: str, args: Mapping[str, Any]) -> str:
        await asyncio.sleep(args["s"])
        return f"after {args['s']} s"

    asked = [call(s=3), call("ask", s=1)]
    result: VisitResult = visit(lambda ctx: answer_calls(asked, TOOLS, sleepy, ctx))
    assert [message.content for message in result.value] == ["after 3 s", "after 1 s"]
    assert result.seconds == 3


def test_mcp_texts_are_those_of_text_blocks() -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "image", "data": "…"}, {"type": "text", "text": "b"}]
    assert mcp_texts(blocks) == ["a", "b"]
