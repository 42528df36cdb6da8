"""Change of a single value in the text of a document."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.source.document import Document, parse
from harness.source.editing import replace_text, replace_value

DOCUMENTS = {
    "plain": "# head\nname: it # why\nprompt: Answer briefly.   # kept\nlast: [1, 2]\n",
    "single": "prompt: 'Isn''t it'\nlast: {a: b}\n",
    "double": 'a:\n  - prompt: "Say \\"no\\"."\n    other: x\n',
    "literal": "a:\n  prompt: |\n    One.\n\n    Two.\n  # kept\n  b: 1\n",
    "folded": "prompt: >-\n  One\n  two.\nb: |\n  text\n",
    "flow": "nodes: [{prompt: Answer, b: 2}, {c: 3}]\n",
    "at the end": "prompt: |\n  One.",
    "json": '{"b": 1, "prompt": "Say \\"no\\".", "c": [true]}',
}
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"], include_characters="\n"), max_size=40
)


def parser(name: str) -> Any:
    return partial(parse, file="it", yaml="1.2", json=name == "json")


def place(document: Document) -> tuple[tuple[Any, ...], int, int]:
    """The path of the prompt, and its location."""

    def below(value: Any, path: tuple[Any, ...]) -> Any:
        if isinstance(value, dict) and "prompt" in value:
            return (*path, "prompt")
        items = (
            value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
        )
        return next((found for key, item in items if (found := below(item, (*path, key)))), None)

    path = below(document.value, ())
    span = document.span(path)
    return path, span.line, span.column


@pytest.mark.parametrize("name", DOCUMENTS)
@given(text=TEXTS)
def test_any_text_can_replace_another(name: str, text: str) -> None:
    document = parser(name)(DOCUMENTS[name])
    path, line, column = place(document)
    after = replace_text(document, line, column, text, parser(name))
    assert after is not None
    read = parser(name)(after)
    assert read.at(path).value == text
    assert read.value == document.with_texts({(line, column): text}).value
    assert [comment in after for comment in ("# head", "# why", "# kept")] == [
        comment in DOCUMENTS[name] for comment in ("# head", "# why", "# kept")
    ]


@pytest.mark.parametrize(
    ("text", "path", "value", "after"),
    [
        ("a: {t: 0.7, b: 1}\n", ("a", "t"), 0.4, "a: {t: 0.4, b: 1}\n"),
        ("a:\n  t: 0.7 # warm\n", ("a", "t"), 0.4, "a:\n  t: 0.4 # warm\n"),
        ("a:\n  b: 1\n", ("a", "t"), 0.4, "a:\n  t: 0.4\n  b: 1\n"),
        ("a: {b: 1}\n", ("a", "t"), 0.4, "a: {t: 0.4, b: 1}\n"),
        ("a: {}\n", ("a", "t"), 0.4, None),
        ("tools:\n  - look\n  - ask # last\nb: 1\n", ("tools",), ["look"], "tools:\n  - look\nb: 1\n"),
        ("tools: [look, ask]\n", ("tools",), ["ask"], "tools: [ask]\n"),
        ("tools: [look, ask] # both\n", ("tools",), [], "tools: [] # both\n"),
    ],
)
def test_a_value_is_written_in_the_style_of_its_neighbours(
    text: str, path: tuple[str, ...], value: Any, after: str | None
) -> None:
    parse_it = parser("yaml")
    document = parse_it(text)
    made = replace_value(document, path, value, parse_it)
    assert made is not None
    if after is not None:
        assert made == after
    assert parse_it(made).at(path).value == value


def test_json_stays_json() -> None:
    document = parser("json")('{"a": {"b": 1}}')
    made = replace_value(document, ("a", "t"), 0.4, parser("json"))
    assert json.loads(made or "") == {"a": {"t": 0.4, "b": 1}}


@pytest.mark.parametrize(
    ("text", "path", "value", "after"),
    [
        ("k: >- # c\n  was\n  so\n\n\nj: 1\n", ("k",), "two words", ">- # c\n  two\n  words\n\n\nj: 1\n"),
        ("k: |\n  was\n\n# c\n", ("k",), "a\nb\n", "|\n  a\n  b\n\n# c\n"),
        ("k: |+\n  was\n\nj: 1\n", ("k",), "a\n\n\n", "|+\n  a\n\n\nj: 1\n"),
        ("k: |\n  was\n\nj: 1\n", ("k",), "a\n\n\n", '"a\\n\\n\\n"\n\nj: 1\n'),
        ("k: 'was' # c\n", ("k",), "it's", "'it''s' # c\n"),
        ("k: was # c\n", ("k",), "a: b", '"a: b" # c\n'),
        ("k: !!str 5 # c\n", ("k",), 6, "6 # c\n"),
        ("k: # c\nj: 1\n", ("k",), "x", "x # c\nj: 1\n"),
        ("k: [\n  a, # 1\n  b, # 2\n]\n", ("k",), ["a", "c", "b"], "[\n  a,\n  c, # 1\n  b, # 2\n]\n"),
        ("k:\n- a # 1\n- 'b'", ("k",), ["a", "b", "c"], "- a # 1\n- 'b'\n- 'c'"),
        ("k:\n  # of b\n  - a\n  - b", ("k",), ["b"], "# of b\n  - b"),
        ("k:\n  - - a\n    - b\n  - c\n", ("k", 0), ["b"], "- - b\n  - c\n"),
        ("k:\n- a\nj: 1\n", ("k",), [], "[]\nj: 1\n"),
    ],
)
def test_the_style_of_the_old_value_stays(text: str, path: tuple[Any, ...], value: Any, after: str) -> None:
    parse_it = parser("yaml")

    made = replace_value(parse_it(text), path, value, parse_it)

    assert made is not None
    assert made.removeprefix("k:").lstrip() == after


SHARED = "a: &x {p: [1, 2]} # c\nb: *x\nc:\n  <<: *x\n  q: 1\n"


@pytest.mark.parametrize(
    ("path", "also", "after"),
    [
        (("b", "p"), [], SHARED.replace("b: *x", "b: {p: [1]}")),
        (("c", "p"), [], SHARED.replace("c:\n", "c:\n  p: [1]\n")),
        (("a", "p"), [("b", "p"), ("c", "p")], SHARED.replace("[1, 2]", "[1]")),
        (("a", "p"), [], SHARED.replace("&x {p: [1, 2]}", "{p: [1]}").replace("b: *x", "b: &x {p: [1, 2]}")),
    ],
)
def test_a_text_that_others_read_stays_for_them(path: Any, also: Any, after: str) -> None:
    parse_it = parser("yaml")

    assert replace_value(parse_it(SHARED), path, [1], parse_it, also) == after


def test_an_anchor_that_cannot_move_is_refused() -> None:
    parse_it = parser("yaml")

    assert replace_value(parse_it("a: &x\n  p: 1\nb: *x\n"), ("a", "p"), 2, parse_it) is None
