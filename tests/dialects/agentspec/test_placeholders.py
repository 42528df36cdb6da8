"""Placeholders: "Specifying inputs through placeholders"."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.dialects.agentspec.placeholders import names, render


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("no names", []),
        ("Help with {{request}}, {{ user }}, {{\trequest\n}}", ["request", "user"]),
        ("{one} {{two words}} {{}} {{a.b}} {{ }} {{% x %}} { {y} }", []),
        ("{{{name}}} {{größe}}", ["name", "größe"]),
        ({"{{b}}": ["{{c}}", {"x": "{{a}}"}], "y": "{{b}}"}, ["b", "c", "a"]),
        (("{{a}}", 1, None, True, 2.5), ["a"]),
        (None, []),
    ],
)
def test_names_in_the_order_they_come_up(value: Any, found: Any) -> None:
    assert names(value) == found


@pytest.mark.parametrize(
    ("template", "rendered"),
    [
        ("Hi {{ name }}, {{name}}!", "Hi Ada, Ada!"),
        ("{{count}} {{on}} {{list}}", "6 True ['x']"),
        ("{{unknown}} {name} {{}} {{{name}}}", "{{unknown}} {name} {{}} {Ada}"),
        ({"{{name}}": [{"n": "{{count}}"}, 3, None]}, {"Ada": [{"n": "6"}, 3, None]}),
        (7, 7),
    ],
)
def test_values_take_the_place_of_their_names(template: Any, rendered: Any) -> None:
    assert render(template, {"name": "Ada", "count": 6, "on": True, "list": ["x"]}) == rendered


def test_what_a_value_brings_in_is_text() -> None:
    values = {"a": "{{b}}", "b": r"\1 {{a}}"}

    assert render("{{a}} {{b}}", values) == r"{{b}} \1 {{a}}"


def test_a_template_is_left_as_it_was() -> None:
    template = {"x": ["{{a}}"]}

    render(template, {"a": 1})

    assert template == {"x": ["{{a}}"]}


words = st.text("ab{} ", max_size=12)
templates = st.recursive(
    words | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


@given(templates)
def test_law_without_values_a_template_is_itself(template: Any) -> None:
    assert render(template, {}) == template


@given(templates)
def test_law_when_every_name_has_a_value_none_is_left(template: Any) -> None:
    rendered = render(template, dict.fromkeys(names(template), "-"))

    assert names(rendered) == []
