"""Placeholders, `{{name}}`, in the texts of a component. spec: "Specifying inputs through placeholders"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from harness.dialects.kit.templates import fill, placeholders

PLACEHOLDER: Final = re.compile(r"{{\s*(\w+)\s*}}")


def names(value: Any) -> list[str]:
    """Return the names of the placeholders in a value, each once, in order."""
    return list(dict.fromkeys(found[1] for found in placeholders(value, PLACEHOLDER)))


def render(value: Any, values: Mapping[str, Any]) -> Any:
    """Return a text, list or mapping with each placeholder replaced by the `str` of its value.

    Placeholders without a value, and other braces, stay as they are.
    """
    return fill(value, PLACEHOLDER, lambda found: str(values.get(found[1], found[0])))
