"""The JSON Schema of an expected value, derived from the matchers, so that editors complete and check them."""

from __future__ import annotations

from typing import Any

from harness.matchers.value import MATCHERS, VALUE_REF


def expected_value_schema() -> dict[str, Any]:
    """Return the JSON Schema of an expected value, to which `VALUE_REF` refers."""
    value = {"$ref": VALUE_REF}
    names = {"enum": [*MATCHERS]}
    return {
        "description": "A value, in which `{$name: argument}` is a matcher.",
        "properties": {
            name: {"description": kind.meaning, **kind.argument} for name, kind in MATCHERS.items()
        },
        "additionalProperties": value,
        "items": value,
        # As in `malformed`: a matcher is the only key of its mapping, and an only key with `$` is a matcher.
        "if": {"maxProperties": 1},
        "then": {"propertyNames": {"anyOf": [names, {"not": {"pattern": r"^\$"}}]}},
        "else": {"propertyNames": {"not": names}},
    }
