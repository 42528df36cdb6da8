"""Snapshots of a trace: the same JSON as `to_json` makes, with long values shared and hashed once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from harness.graph.effects import LLMCall
from harness.graph.messages import MessageLog
from harness.graph.snapshots import LONG_LIST, LONG_TEXT, Snapshots
from harness.graph.to_json import to_json
from harness.graph.trace import Trace

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.integers() | st.text(), inner)
    ),
    max_leaves=8,
)
LONG = st.builds(lambda items: [*items, *range(LONG_LIST)], st.lists(VALUES, max_size=3))


@given(VALUES | st.dictionaries(st.text(), LONG, max_size=2))
def test_a_snapshot_equals_to_json_even_the_second_time(value: Any) -> None:
    snapshots = Snapshots()
    assert repr(snapshots.of(value)) == repr(snapshots.of(value)) == repr(to_json(value))


def test_a_value_that_contains_itself_is_cut_off() -> None:
    value: list[Any] = [0] * LONG_LIST
    value.append(value)
    assert Snapshots().of(value)[-1] == "…"


def test_a_long_list_that_is_unchanged_is_shared_and_counted_once() -> None:
    snapshots, items = Snapshots(), [{"n": n} for n in range(LONG_LIST)]
    first, size = snapshots.of({"items": items}), snapshots.size
    again = snapshots.of({"items": items, "n": 1})
    assert again["items"] is first["items"]
    assert snapshots.of(first)["items"] is first["items"]
    assert snapshots.size < size * 1.1


def test_a_long_list_that_was_changed_in_place_is_copied_again() -> None:
    snapshots, items = Snapshots(), [{"n": str(n)} for n in range(LONG_LIST)]
    before = snapshots.of(items)
    items[7]["n"] = "changed"
    assert (before[7], snapshots.of(items)[7]) == ({"n": "7"}, {"n": "changed"})


def test_a_list_whose_items_refuse_to_be_compared_is_copied_again() -> None:
    class Vague:
        def __eq__(self, other: object) -> bool:
            raise ValueError("ambiguous")

        __hash__ = None  # type: ignore[assignment]

    snapshots, items = Snapshots(), [Vague()] * LONG_LIST
    assert snapshots.of(items) == snapshots.of(items) == to_json(items)


def test_a_message_is_converted_once_and_counted_each_time() -> None:
    snapshots, said = (
        Snapshots(),
        AIMessage("x" * 1600, tool_calls=[{"id": "c", "name": "t", "args": {"n": 1}}]),
    )
    first, size = snapshots.of({"messages": [said]}), snapshots.size
    again = snapshots.of({"messages": MessageLog([said, said])})
    assert again["messages"] == to_json([said, said])
    assert all(shown is first["messages"][0] for shown in again["messages"])
    assert size > 100
    assert snapshots.size > 2.5 * size


@pytest.mark.parametrize(
    "change",
    [
        lambda message: setattr(message, "content", "changed"),
        lambda message: message.tool_calls[0]["args"].update(n=2),
        lambda message: message.additional_kwargs.update(changed=True),
    ],
    ids=["content", "tool calls", "additional_kwargs"],
)
def test_a_message_that_was_changed_in_place_is_converted_again(change: Any) -> None:
    snapshots, said = Snapshots(), AIMessage("hi", tool_calls=[{"id": "c", "name": "t", "args": {"n": 1}}])
    before, plain = snapshots.of([said]), to_json([said])
    change(said)
    assert (before, snapshots.of([said])) == (plain, to_json([said]))
    assert before != to_json([said])


def test_the_messages_of_requests_to_models_are_counted() -> None:
    trace, said = Trace(), [HumanMessage(str(n)) for n in range(100)]
    trace.record_call(LLMCall(name="m", messages=said), 0.0)
    assert trace.snapshots.size >= 100


def test_the_digest_depends_on_long_values_and_not_on_whether_they_are_shared() -> None:
    def digest(*values: Any) -> str:
        trace = Trace()
        for value in values:
            trace.record("input", 0.0, value=trace.snapshot(value))
        return trace.digest()

    items, text = list(range(LONG_LIST)), "x" * LONG_TEXT
    assert digest(items, items, text, text) == digest(items, list(items), text, "".join(text))
    assert digest(items) != digest([*items[:-1], 0])
    assert digest(text) != digest(f"{text}y")
