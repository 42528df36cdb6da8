"""Observations of a trace: calls, reasons and usage, with implausible data of providers."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from harness.graph import observe
from harness.graph.effects import LLMCall, LLMReply
from harness.graph.trace import Trace


@pytest.mark.parametrize("reported", [float("inf"), float("nan"), -5, "many", None, 10**20])
def test_implausible_numbers_of_tokens_count_as_zero(reported: Any) -> None:
    events = [
        {"event": "call", "call": 1, "kind": "llm", "name": "m", "node": "n"},
        {"event": "answer", "call": 1, "usage": {"input_tokens": reported, "output_tokens": 7}},
    ]
    usage = observe.usage(events, lambda *_: None)
    assert (usage["input_tokens"], usage["output_tokens"]) == (0, 7)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"error": {"type": "OSError", "message": "disk full"}}, "disk full"),
        ({"error": {"type": "TimeoutError", "message": ""}}, "TimeoutError"),
        ({"error": {"type": "ValueError", "message": "x" * 900}}, "x" * 900),
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
def test_a_failed_call_has_its_reason(answer: Any, reason: str) -> None:
    events = [
        {"event": "call", "call": 1, "kind": "mcp", "name": "lend", "node": "n", "request": {"args": {}}},
        {"event": "answer", "call": 1, "ok": False, "latency": 0.0, **answer},
    ]
    [call] = observe.calls(events)
    assert call["reason"] == reason
    assert "refused" not in call


def test_a_model_call_has_its_prompt_and_reply() -> None:
    trace = Trace()
    call = trace.record_call(
        LLMCall(name="m", messages=(SystemMessage("Sort."), HumanMessage("Twice!"))), 0.0
    )
    reply = LLMReply(
        "billing", tool_calls=[{"name": "find", "args": {}, "id": "1"}], usage={"input_tokens": 9}
    )
    trace.record_answer(call, 0.0, 0.0, reply, None)
    trace.record_answer(trace.record_call(LLMCall(name="m"), 0.0), 0.0, 0.0, None, TimeoutError("late"))
    answered, failed = observe.calls(trace.events)
    assert {key: answered[key] for key in ("prompt", "reply", "tool_calls", "usage")} == {
        "prompt": "Twice!",
        "reply": "billing",
        "tool_calls": [{"name": "find", "args": {}, "id": "1"}],
        "usage": {"input_tokens": 9},
    }
    assert (failed["prompt"], failed["reason"]) == ("", "late")
    assert "reply" not in failed


def test_usage_is_listed_by_model_and_by_node() -> None:
    asked = [("a", "m"), ("a", "free"), ("outer/b", "m")]
    events = [
        {"event": "call", "call": at, "kind": "llm", "name": model, "node": node}
        for at, (node, model) in enumerate(asked)
    ] + [{"event": "answer", "call": at, "usage": {"input_tokens": 3, "output_tokens": 2}} for at in (0, 1)]
    usage = observe.usage(events, lambda model, *_: 0.5 if model == "m" else None)
    assert usage["by_node"] == {
        "a": {"llm_calls": 2, "input_tokens": 6, "output_tokens": 4, "cost": None},
        "outer/b": {"llm_calls": 1, "input_tokens": 0, "output_tokens": 0, "cost": 0.0},
    }
    assert {name: part["cost"] for name, part in usage["by_model"].items()} == {"m": 0.5, "free": None}
    assert (usage["llm_calls"], usage["cost"]) == (3, 0.5)


def test_each_visit_of_a_node_has_its_latency() -> None:
    def event(kind: str, node: str, at: float, latency: float = 0.0) -> dict[str, Any]:
        return {"event": kind, "graph": "", "node": node, "at": at, "latency": latency}

    events = [
        event("node_start", "a", 0),
        event("node_start", "a", 1),  # both run at once
        event("node_end", "a", 3, 2),
        event("node_pause", "a", 4, 4),
        event("node_start", "b", 4),
        event("node_end", "b", 5, 1),
        event("node_resume", "a", 10),  # the visit that paused goes on
        event("node_end", "a", 11, 1),
        event("node_start", "a", 11),  # and one does not end
    ]
    assert observe.latency(events, 0, 13) == {
        "total": 13,
        "nodes": {"a": 9, "b": 1},
        "visits": {"a": [5, 2, 2]},
    }
