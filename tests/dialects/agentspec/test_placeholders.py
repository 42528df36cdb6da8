"""Placeholders. spec: "Specifying inputs through placeholders"."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.dialects.agentspec.properties import placeholder_names, render


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
def test_names_in_order_of_appearance(value: Any, found: Any) -> None:
    assert placeholder_names(value) == found


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
def test_placeholders_are_replaced_by_values(template: Any, rendered: Any) -> None:
    assert render(template, {"name": "Ada", "count": 6, "on": True, "list": ["x"]}) == rendered


def test_inserted_values_are_not_expanded() -> None:
    values = {"a": "{{b}}", "b": r"\1 {{a}}"}

    assert render("{{a}} {{b}}", values) == r"{{b}} \1 {{a}}"


def test_rendering_does_not_change_the_template() -> None:
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
def test_law_with_a_value_for_every_name_no_placeholder_is_left(template: Any) -> None:
    rendered = render(template, dict.fromkeys(placeholder_names(template), "-"))

    assert placeholder_names(rendered) == []
