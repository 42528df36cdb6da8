"""Conversations: the log behaves as LangGraph's add_messages, and appending does not change older views."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.graph.message import add_messages

from harness.graph.messages import (
    MessageLog,
    MessageViews,
    append_messages,
    message_json,
    to_message,
    to_messages,
)

ids = st.sampled_from(["a", "b", "c", "d", "e"])
new_messages = st.builds(lambda id_, text: HumanMessage(text, id=id_), ids, st.text(max_size=3))


@given(st.lists(st.lists(new_messages, max_size=3), max_size=6))
def test_the_log_grows_as_with_add_messages(batches: Any) -> None:
    log = MessageLog()
    reference: Any = []
    for batch in batches:
        log = append_messages(log, batch)
        reference = add_messages(reference, batch)
    assert list(log) == reference


@given(st.lists(new_messages, max_size=4), st.lists(new_messages, max_size=4))
def test_an_older_view_does_not_see_what_is_appended_to_it(first: Any, second: Any) -> None:
    old = MessageLog().merged(first)
    before = list(old)
    old.merged(second)
    old.merged(list(reversed(second)))
    assert list(old) == before
    assert len(old) == len(before)


def test_a_log_written_to_an_empty_one_replaces_it() -> None:
    log = MessageLog([HumanMessage("x", id="1")])
    assert append_messages(MessageLog(), log) is log
    longer = append_messages(log, [AIMessage("y", id="2")])
    assert ([m.id for m in log], [m.id for m in longer]) == (["1"], ["1", "2"])


def test_removal_follows_add_messages() -> None:
    log = MessageLog([HumanMessage("x", id="1"), HumanMessage("y", id="2")])
    assert [m.id for m in log.merged([RemoveMessage(id="1")])] == ["2"]
    assert [m.id for m in log.merged([RemoveMessage(id="__remove_all__"), AIMessage("z", id="3")])] == ["3"]


def test_a_log_reads_like_a_list() -> None:
    log = MessageLog(to_messages(["a", "b", "c"]))
    assert [m.content for m in log] == ["a", "b", "c"]
    assert log[-1].content == "c"
    assert [m.content for m in log[1:]] == ["b", "c"]
    assert [m.content for m in [*log, HumanMessage("d")]][2:] == ["c", "d"]
    with pytest.raises(IndexError):
        log[3]


@pytest.mark.parametrize(
    ("written", "type_"),
    [
        ("hello", "human"),
        ({"role": "user", "content": "x"}, "human"),
        ({"type": "human", "content": "x"}, "human"),
        ({"role": "assistant", "content": "x"}, "ai"),
        ({"role": "ai", "content": None}, "ai"),
        ({"role": "system", "content": "x"}, "system"),
        ({"role": "tool", "content": "x", "tool_call_id": "1"}, "tool"),
    ],
)
def test_messages_are_written_as_text_or_with_role_or_type(written: Any, type_: Any) -> None:
    assert to_message(written).type == type_


@pytest.mark.parametrize("written", [3, None, {}, {"role": "ghost", "content": "x"}, {"role": "ai"}, [1]])
def test_other_values_are_refused(written: Any) -> None:
    with pytest.raises(ValueError, match="not a message"):
        to_message(written)


def test_a_message_as_json_has_the_fields_of_its_type() -> None:
    call = {"name": "f", "args": {"x": 1}, "id": "c1", "type": "tool_call"}
    ai = AIMessage("hi", tool_calls=[call])
    assert message_json(ai) == {
        "type": "ai",
        "content": "hi",
        "tool_calls": [{"name": "f", "args": {"x": 1}, "id": "c1"}],
        "additional_kwargs": {},
    }
    tool = message_json(ToolMessage("r", tool_call_id="c1", name="f"))
    assert (tool["tool_call_id"], tool["name"]) == ("c1", "f")
    assert "tool_calls" not in tool


def test_message_views_have_role_as_well_as_type() -> None:
    view = MessageViews([HumanMessage("x")])[0]
    assert (view["role"], view["type"]) == ("human", "human")
