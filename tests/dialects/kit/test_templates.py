"""Finding and filling placeholders at any depth of a value."""

import re
from typing import Any

import pytest

from harness.dialects.kit.manifest import fill, placeholders

NAME = re.compile(r"{{(\w+)}}")
PATH = re.compile(r"{{([\w.\[\]]+)}}")


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("{{a}} and {{b}}, {{a}}", ["a", "b", "a"]),
        ({"{{key}}": ["{{item}}", {"x": "{{deep}}"}], "y": 3}, ["key", "item", "deep"]),
        (("{{a}}", None, 1.5, True), ["a"]),
        ("{a} {{}} {{ a }}", []),
    ],
)
def test_placeholders_are_found_in_order_at_any_depth_keys_included(value: Any, names: list[str]) -> None:
    assert [found[1] for found in placeholders(value, NAME)] == names


def test_the_dialect_gives_the_text_of_a_placeholder() -> None:
    value = {"{{a}}": ["{{b.c[0]}}!", 7]}
    assert fill(value, PATH, lambda found: found[1].upper()) == {"A": ["B.C[0]!", 7]}


def test_inserted_text_is_not_filled_again() -> None:
    assert fill("{{a}}", NAME, lambda _: "{{a}}{{b}}") == "{{a}}{{b}}"
