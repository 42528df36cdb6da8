"""Observations that a trace gives, where what it has is not what a provider should have said."""

from typing import Any

import pytest

from harness.graph import observe


@pytest.mark.parametrize("reported", [float("inf"), float("nan"), -5, "many", None, 10**20])
def test_what_is_no_number_of_tokens_is_not_counted(reported: Any) -> None:
    events = [
        {"event": "call", "call": 1, "kind": "llm", "name": "m"},
        {"event": "answer", "call": 1, "usage": {"input_tokens": reported, "output_tokens": 7}},
    ]
    usage = observe.usage(events)
    assert (usage["input_tokens"], usage["output_tokens"]) == (0, 7)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"error": {"type": "OSError", "message": "disk full"}}, "disk full"),
        ({"error": {"type": "TimeoutError", "message": ""}}, "TimeoutError"),
        ({"error": {"type": "ValueError", "message": "x" * 900}}, "x" * 500),
        (
            {
                "value": {
                    "is_error": True,
                    "content": [{"type": "text", "text": "no such book"}, {"type": "image"}],
                }
            },
            "no such book",
        ),
    ],
)
def test_a_call_that_failed_says_why(answer: Any, reason: str) -> None:
    events = [
        {"event": "call", "call": 1, "kind": "mcp", "name": "lend", "node": "n", "request": {"args": {}}},
        {"event": "answer", "call": 1, "ok": False, "latency": 0.0, **answer},
    ]
    [call] = observe.calls(events)
    assert call["reason"] == reason
    assert "refused" not in call
