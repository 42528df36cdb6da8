"""Templates with `{{field}}` placeholders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from harness.dialects.kit.templates import fill, placeholders
from harness.graph.to_json import as_text

_MISSING: Final = object()
_FIELD: Final = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")


def template_fields(template: Any) -> list[str]:
    """Return the fields that a template, or a mapping of templates, uses."""
    return [found[1] for found in placeholders(template, _FIELD)]


def fill_template(template: Any, values: Mapping[str, Any]) -> Any:
    """Fill a template, or a mapping of templates. Placeholders of unknown fields are kept."""

    def text_of(found: re.Match[str]) -> str:
        value = _value(found[1], values)
        return found.group() if value is _MISSING else as_text(value)

    return fill(template, _FIELD, text_of)


def missing_fields(template: Any, values: Mapping[str, Any]) -> list[str]:
    """Return the fields that a template uses and `values` lacks, without duplicates."""
    return [name for name in dict.fromkeys(template_fields(template)) if _value(name, values) is _MISSING]


def _value(name: str, values: Mapping[str, Any]) -> Any:
    value: Any = values
    for key in name.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return _MISSING
        value = value[key]
    return value
