"""Converting a model's reply to a message, and ids from the seed."""

from collections.abc import Callable
from itertools import count

from langchain_core.messages import HumanMessage

from harness.dialects.kit.tool_calls import ensure_id, to_ai_message
from harness.graph.effects import LLMReply


def ids() -> Callable[[str], str]:
    numbers = count(1)
    return lambda prefix: f"{prefix}-{next(numbers)}"


def test_tool_calls_without_an_id_get_one() -> None:
    reply = LLMReply(
        "", tool_calls=[{"name": "a", "args": None}, {"name": "b", "args": {"x": 1}, "id": "mine"}]
    )
    calls = to_ai_message(reply, ids()).tool_calls
    assert [(call["name"], call["args"], call["id"]) for call in calls] == [
        ("a", {}, "call-1"),
        ("b", {"x": 1}, "mine"),
    ]


def test_usage_and_finish_reason_are_kept_if_reported() -> None:
    message = to_ai_message(
        LLMReply("hi", usage={"input_tokens": 3, "output_tokens": 2}, finish_reason="stop"), ids()
    )
    assert message.usage_metadata == {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    assert message.response_metadata == {"finish_reason": "stop"}
    bare = to_ai_message(LLMReply("hi"), ids())
    assert (bare.content, bare.usage_metadata, bare.response_metadata) == ("hi", None, {})


def test_a_message_keeps_its_id_and_one_without_is_copied() -> None:
    kept = HumanMessage(content="a", id="mine")
    bare = HumanMessage(content="b")
    assert ensure_id(kept, ids()) is kept
    assert (ensure_id(bare, ids()).id, bare.id) == ("message-1", None)
