"""The material of a judge: the parts of a run that it is shown, taken from the events of the trace."""

from __future__ import annotations

from typing import Any

import pytest

from harness.judges.material import material_of

Event = dict[str, Any]


def call(number: int, kind: str, name: str, args: Any, answer: Event) -> list[Event]:
    """Return the events of a call and of its answer."""
    request = args if kind == "llm" else {"args": args}
    asked = {"event": "call", "call": number, "kind": kind, "name": name, "node": "n", "request": request}
    return [asked, {"event": "answer", "call": number, "ok": "error" not in answer, **answer}]


def said(event: str, **data: Any) -> Event:
    return {"event": event, "graph": "", **data}


@pytest.mark.parametrize(
    ("kind", "args", "answer", "shown"),
    [
        ("tool", {"a": 1}, {"value": 7}, {"from": "tool x", "args": {"a": 1}, "content": 7}),
        ("tool", {}, {"error": {"type": "E", "message": "gone"}}, {"from": "tool x", "error": "gone"}),
        (
            "retrieval",
            {},
            {"value": {"context": "", "sources": []}},
            {"from": "retrieval x", "content": {"context": "", "sources": []}},
        ),
        (
            "retrieval",
            {"query": "q"},
            {"value": {"context": "a b", "sources": ["s"], "passages": [{"text": "a"}, {"text": "b"}]}},
            {"from": "retrieval x", "args": {"query": "q"}, "content": [{"text": "a"}, {"text": "b"}]},
        ),
        (
            "http",
            {"method": "GET", "query": {"key": "k"}, "headers": {"authorization": "secret"}},
            {"value": {"status": 200, "text": "fine", "headers": {"set-cookie": "c"}}},
            {"from": "http x", "args": {"method": "GET"}, "content": {"status": 200, "text": "fine"}},
        ),
    ],
)
def test_answers_of_tools_retrieval_and_http_are_context_without_headers_and_keys(
    kind: str, args: Any, answer: Event, shown: Event
) -> None:
    assert material_of(call(1, kind, "x", args, answer), "out")["context"] == [shown]


@pytest.mark.parametrize("kind", ["handler", "script", "agent", "human", "llm"])
def test_answers_that_may_be_the_output_itself_are_not_context(kind: str) -> None:
    assert "context" not in material_of(call(1, kind, "x", {}, {"value": {"text": "out"}}), "out")


def test_a_refused_call_is_not_context() -> None:
    events = call(1, "tool", "x", {}, {"error": {"type": "E", "message": "no such tool"}, "refused": True})
    assert "context" not in material_of(events, "out")


def test_a_turn_has_its_own_calls_and_the_context_of_earlier_turns() -> None:
    asks = {"value": {"text": "", "tool_calls": [{"name": "x", "args": {}, "id": "1"}]}}
    first = [*call(1, "llm", "m", {"tools": ["x"]}, asks), *call(2, "tool", "x", {}, {"value": 7})]
    second = call(3, "llm", "m", {}, {"value": {"text": "done"}})
    whole = material_of([*first, *second], "done")
    assert (whole["tools"], whole["tool_calls"]) == ([{"name": "x"}], [{"name": "x", "args": {}}])
    turn = material_of([*first, *second], "done", since=len(first))
    assert turn == {"context": whole["context"], "output": "done", "tool_calls": []}


def test_a_conversation_ends_with_the_last_user_message_and_repeats_nothing() -> None:
    question = {"value": "really?"}
    events = [
        said("input", value="Order"),
        said("node_pause", values=["really?"]),
        *call(1, "human", "n", question, {"value": "yes"}),
        said("end", status="completed", output="Ordered."),
        said("input", value="Thanks"),
        said("node_pause", values=["sure?"]),
        said("end", status="interrupted", output={"half": 1}),
        said("resume", value="yes"),
        said("end", status="completed", output="Bye."),
    ]
    assert [(each["role"], each["content"]) for each in material_of(events, "Bye.")["input"]] == [
        ("user", "Order"),
        ("agent", ["really?"]),
        ("user", "yes"),
        ("agent", "Ordered."),
        ("user", "Thanks"),
        ("agent", ["sure?"]),
        ("user", "yes"),
    ]


def test_an_empty_run_has_only_an_empty_list_of_tool_calls() -> None:
    assert material_of([said("input", value=None)], None) == {"tool_calls": []}
