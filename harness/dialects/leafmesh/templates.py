"""Texts: `{{field}}` in templates, and values as texts for models and people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from harness.dialects.kit.templates import fill, placeholders
from harness.graph.to_json import as_text

_FIELD: Final = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")


def fields_of(template: Any) -> list[str]:
    """The fields that a template, or a mapping of templates, names."""
    return [found[1] for found in placeholders(template, _FIELD)]


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """A template, or a mapping of templates, with the fields of `values` in it. Unknown fields stay as they are."""

    def text_of(found: re.Match[str]) -> str:
        value: Any = values
        for key in found[1].split("."):
            if not isinstance(value, Mapping) or key not in value:
                return found.group()
            value = value[key]
        return as_text(value)

    return fill(template, _FIELD, text_of)
