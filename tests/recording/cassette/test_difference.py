"""Differences between two JSON values are described for people."""

import copy
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.recording.difference import differences, distance, word_diff
from harness.source.display import printable

CHAT = {
    "model": "gpt",
    "temperature": 0.5,
    "messages": [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "What is the weather in Paris?"},
        {"role": "assistant", "content": "It is sunny."},
    ],
}


def chat(**changes: Any) -> Any:
    return copy.deepcopy(CHAT) | changes


def test_equal_values_have_no_differences() -> None:
    assert differences(CHAT, chat()) == []
    assert differences({"a": 1}, {"a": 1.0}) == []


def test_a_changed_word_is_marked_and_the_message_named() -> None:
    asked = chat()
    asked["messages"][0]["content"] = "You are a terse assistant."
    assert differences(CHAT, asked) == ['messages[0] (system): "You are a [-helpful-]{+terse+} assistant."']


def test_other_values_show_both() -> None:
    assert differences(CHAT, chat(temperature=0.7, model=None)) == [
        'model: [-"gpt"-]{+null+}',
        "temperature: [-0.5-]{+0.7+}",
    ]
    assert differences({"a": 1}, {"a": True}) == ["a: [-1-]{+true+}"]
    assert differences({"a": [1, 2]}, {"a": {}}) == ["a: [-[1, 2]-]{+{}+}"]


def test_keys_that_only_one_has() -> None:
    asked = chat(seed=7)
    del asked["temperature"]
    assert differences(CHAT, asked) == [
        "temperature: only in the recording: 0.5",
        "seed: not in the recording: 7",
    ]


def test_a_message_put_in_or_left_out_is_one_difference() -> None:
    asked = chat()
    asked["messages"].insert(1, {"role": "user", "content": "Hello"})
    assert differences(CHAT, asked) == [
        'messages[1] (user): not in the recording: {"role": "user", "content": "Hello"}'
    ]
    assert differences(asked, CHAT) == [
        'messages[1] (user): only in the recording: {"role": "user", "content": "Hello"}'
    ]


def test_an_inserted_message_is_distinguished_from_a_changed_one() -> None:
    asked = chat()
    asked["messages"][1]["content"] = "What is the weather in Rome?"
    asked["messages"].insert(1, {"role": "user", "content": "Hello"})
    assert differences(CHAT, asked) == [
        'messages[1] (user): not in the recording: {"role": "user", "content": "Hello"}',
        'messages[2] (user): "What is the weather in [-Paris-]{+Rome+}?"',
    ]


def test_paths_lead_into_messages_tools_and_odd_keys() -> None:
    one: dict[str, Any] = {
        "messages": [
            {
                "role": "assistant",
                "tool_calls": [{"function": {"name": "f", "arguments": '{"city": "Paris"}'}}],
            }
        ],
        "tools": [{"type": "function", "function": {"name": "weather", "strict": True}}],
        "a.b": 1,
    }
    other = copy.deepcopy(one)
    other["messages"][0]["tool_calls"][0]["function"]["arguments"] = '{"city": "Rome"}'
    other["tools"][0]["function"]["strict"] = False
    other["a.b"] = 2
    assert differences(one, other) == [
        'messages[0] (assistant).tool_calls[0] (f).function.arguments: "{"city": "[-Paris-]{+Rome+}"}"',
        "tools[0] (weather).function.strict: [-true-]{+false+}",
        '["a.b"]: [-1-]{+2+}',
    ]


def test_a_changed_role_is_a_separate_difference() -> None:
    assert differences([{"role": "user"}], [{"role": "system"}]) == ['[0].role: "[-user-]{+system+}"']


def test_values_without_a_path_and_with_one_given() -> None:
    assert differences("a", "b") == ['"[-a-]{+b+}"']
    assert differences("a", "b", path="body") == ['body: "[-a-]{+b+}"']


def test_long_texts_show_the_changes_with_some_context() -> None:
    before, after = "first words of it " * 50, " and the last of them" * 50
    [said] = differences({"x": before + "Paris" + after}, {"x": before + "Rome" + after})
    assert "[-Paris-]{+Rome+}" in said
    assert len(said) < 120


def test_the_last_letter_of_a_long_word_is_shown() -> None:
    [said] = differences("x" * 500 + "1", "x" * 500 + "2")
    assert "x1-]" in said
    assert "x2+}" in said
    assert len(said) < 200


def test_texts_that_have_little_in_common_are_not_marked_word_by_word() -> None:
    assert word_diff("how are you my friend", "what is it") == "[-how are you my friend-]{+what is it+}"


def test_line_breaks_and_spaces_that_changed_can_be_seen() -> None:
    assert word_diff("a\nb", "a b") == r"a[-\n-]{+ +}b"
    assert word_diff("a\xa0b", "a b") == r"a[-\xa0-]{+ +}b"
    assert word_diff("a\tb\r\n", "a\tb\n") == r"a\tb[-\r\n-]{+\n+}"


def test_a_list_of_numbers_is_one_difference() -> None:
    [said] = differences({"input": [0.5] * 3000}, {"input": [0.5] * 2999})
    assert "… 3000 items" in said
    assert "… 2999 items" in said


def test_no_more_than_asked_for() -> None:
    one, other = ({str(n): value for n in range(500)} for value in (1, 2))
    assert len(differences(one, other)) == 100
    assert len(differences(one, other, limit=3)) == distance(one, other, limit=3) == 3


def noise(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices("ab", k=200)) for _ in range(count)]


@pytest.mark.parametrize(
    "made",
    [
        lambda: (" ".join(noise(1, 2000)), " ".join(noise(2, 2000))),
        lambda: (noise(1, 3000), noise(2, 2900)),
        lambda: ([{"content": text} for text in noise(1, 20)], [{"content": text} for text in noise(2, 19)]),
        lambda: ("x" * 1_000_000, "x" * 1_000_001),
        lambda: ([{"a": 1}] * 30_000, [{"a": 2}, {"a": 1}] * 15_000),
    ],
    ids=["text", "list", "messages", "word", "items"],
)  # fmt: skip
def test_huge_values_are_compared_in_bounded_time(made: Callable[[], tuple[Any, Any]]) -> None:
    one, other = made()
    began = time.process_time()
    assert differences(one, other, limit=5)
    assert time.process_time() - began < 5


def test_deep_values_are_compared() -> None:
    def deep(levels: Any, inside: Any) -> Any:
        return inside if not levels else [deep(levels - 1, inside)]

    assert differences(deep(150, 1), deep(150, 1)) == []
    assert len(differences(deep(150, 1), deep(150, 2))) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


@given(JSON, JSON)
def test_values_have_differences_if_they_differ_and_these_are_printable(one: Any, other: Any) -> None:
    assert differences(one, copy.deepcopy(one)) == []
    for said in differences(one, other):
        assert said == printable(said)
    assert distance(one, other) == len(differences(one, other))
    assert bool(differences(one, other)) == (canonical(one) != canonical(other))


def canonical(value: Any) -> Any:
    """Compare by JSON's equality: true is not a number."""
    if isinstance(value, dict):
        return {key: canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [canonical(item) for item in value]
    return (isinstance(value, bool), value)
