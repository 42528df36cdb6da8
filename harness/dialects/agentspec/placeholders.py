"""Placeholders: `{{name}}` in the texts of a component ("Specifying inputs through placeholders")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from harness.dialects.kit.templates import fill, placeholders

PLACEHOLDER: Final = re.compile(r"{{\s*(\w+)\s*}}")


def names(value: Any) -> list[str]:
    """The names in the texts of a value, each once, in the order they come up."""
    return list(dict.fromkeys(found[1] for found in placeholders(value, PLACEHOLDER)))


def render(value: Any, values: Mapping[str, Any]) -> Any:
    """The same text, list or mapping with the values in place of their names, as Python's `str` writes them.

    A name without a value stays, as do other braces.
    """
    return fill(value, PLACEHOLDER, lambda found: str(values.get(found[1], found[0])))
