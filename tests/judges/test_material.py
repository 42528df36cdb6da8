"""What a judge is shown of a run, by the events of its trace."""

from __future__ import annotations

from typing import Any

import pytest

from harness.judges.material import material_of

Event = dict[str, Any]


def call(number: int, kind: str, name: str, args: Any, answer: Event) -> list[Event]:
    """A call and its answer."""
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
def test_what_was_found_is_context_without_headers_and_keys(
    kind: str, args: Any, answer: Event, shown: Event
) -> None:
    assert material_of(call(1, kind, "x", args, answer), "out")["context"] == [shown]


@pytest.mark.parametrize("kind", ["handler", "script", "agent", "human", "llm"])
def test_what_may_be_the_output_itself_is_no_context(kind: str) -> None:
    assert "context" not in material_of(call(1, kind, "x", {}, {"value": {"text": "out"}}), "out")


def test_a_call_that_was_refused_is_no_context() -> None:
    events = call(1, "tool", "x", {}, {"error": {"type": "E", "message": "no such tool"}, "refused": True})
    assert "context" not in material_of(events, "out")


def test_a_turn_has_its_own_calls_and_what_was_found_before() -> None:
    asks = {"value": {"text": "", "tool_calls": [{"name": "x", "args": {}, "id": "1"}]}}
    first = [*call(1, "llm", "m", {"tools": ["x"]}, asks), *call(2, "tool", "x", {}, {"value": 7})]
    second = call(3, "llm", "m", {}, {"value": {"text": "done"}})
    whole = material_of([*first, *second], "done")
    assert (whole["tools"], whole["tool_calls"]) == ([{"name": "x"}], [{"name": "x", "args": {}}])
    turn = material_of([*first, *second], "done", since=len(first))
    assert turn == {"context": whole["context"], "output": "done", "tool_calls": []}


def test_a_conversation_ends_with_the_last_word_of_the_user_and_says_nothing_twice() -> None:
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


def test_a_run_with_nothing_has_only_that_it_called_nothing() -> None:
    assert material_of([said("input", value=None)], None) == {"tool_calls": []}
