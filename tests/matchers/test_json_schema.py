"""JSON Schema keywords whose patterns are searched as `$regex` is; how many errors, and how much of each."""

from typing import Any

import pytest

from harness.matchers.json_schema import LONGEST_MESSAGE, MOST_ERRORS, schema_errors, schema_validator

PREFIXED = {"patternProperties": {"^x-": {"type": "string"}}}
CLOSED = {**PREFIXED, "properties": {"name": {}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "^[a-z]+$"}, "bed"),
        ({"pattern": "^[a-z]+$"}, 3),
        (PREFIXED, {"x-a": "text", "y": 1}),
        (PREFIXED, ["x-a"]),
        (CLOSED, {"x-a": "text", "name": 1}),
        (CLOSED, "no mapping"),
        ({"additionalProperties": False}, {}),
        ({"additionalProperties": {"type": "integer"}}, {"y": 1}),
    ],
)
def test_a_value_is_valid(schema: Any, value: Any) -> None:
    assert schema_errors(schema, value) == []


@pytest.mark.parametrize(
    ("schema", "value", "error"),
    [
        ({"pattern": "^[a-z]+$"}, "Bed", "'Bed' does not match '^[a-z]+$'"),
        (PREFIXED, {"x-a": 1}, "['x-a']: 1 is not of type 'string'"),
        (CLOSED, {"y": 1}, "Additional properties are not allowed ('y' was unexpected)"),
        (
            {"additionalProperties": False},
            {"y": 1},
            "Additional properties are not allowed ('y' was unexpected)",
        ),
    ],
)
def test_a_value_is_invalid(schema: Any, value: Any, error: str) -> None:
    assert schema_errors(schema, value) == [error]


def test_errors_and_their_texts_are_limited() -> None:
    errors = schema_errors({"items": {"enum": ["a" * 300]}}, [0] * 60)
    assert len(errors) == MOST_ERRORS == 50
    assert {len(error.partition(": ")[2]) for error in errors} == {LONGEST_MESSAGE} == {200}


def test_schemas_that_differ_in_the_order_of_keys_share_a_validator() -> None:
    one = schema_validator({"type": "object", "required": ["a"]})
    assert schema_validator({"required": ["a"], "type": "object"}) is one
