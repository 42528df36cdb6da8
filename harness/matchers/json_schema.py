"""Validation of values with JSON Schema (2020-12).

Nothing is fetched: a schema must contain every document that it refers to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from harness.errors import FormatError, Problem
from harness.matchers.regex import searcher
from harness.source.display import clip

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

LONGEST_MESSAGE = 200
MOST_ERRORS = 50


def schema_errors(schema: Any, value: Any) -> list[str]:
    """Return one text (`path: reason`) for each error of `value`, sorted by path; empty if it is valid.

    At most `MOST_ERRORS` errors are collected.

    Raises:
        FormatError: `schema` is not a JSON Schema, or a reference in it cannot be resolved.
    """
    from referencing.exceptions import Unresolvable

    validator = schema_validator(schema)
    try:
        found = islice(validator.iter_errors(value), MOST_ERRORS)
        errors = sorted(found, key=lambda error: [str(part) for part in error.path])
    except (Unresolvable, re.error) as error:
        raise _bad_schema(str(error)) from error
    return [_error_text(error) for error in errors]


def schema_validator(schema: Any) -> Draft202012Validator:
    """Return the validator of a schema; equal schemas share one.

    Raises:
        FormatError: `schema` is not a JSON Schema.
    """
    try:
        text = json.dumps(schema, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise _bad_schema(str(error)) from error
    return _validator(text)


@lru_cache(maxsize=256)
def _validator(schema_text: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from referencing import Registry

    schema = json.loads(schema_text)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise _bad_schema(f"{error.json_path}: {clip(error.message, LONGEST_MESSAGE)}") from error
    # With an empty registry: jsonschema's default would fetch a remote $ref over the network.
    return _validator_class()(schema, registry=Registry())


@cache
def _validator_class() -> type[Draft202012Validator]:
    """Return jsonschema's validator class, extended to search patterns in the same way as `$regex`."""
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend

    def pattern(_validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
        if isinstance(value, str) and not searcher(pattern)(value):
            yield ValidationError(f"{value!r} does not match {pattern!r}")

    def pattern_properties(
        validator: Any, schemas: Any, value: Any, _schema: Any
    ) -> Iterator[ValidationError]:
        for pattern, schema in schemas.items() if isinstance(value, dict) else ():
            for name in filter(searcher(pattern), value):
                yield from validator.descend(value[name], schema, path=name, schema_path=pattern)

    def additional_properties(
        validator: Any, allowed: Any, value: Any, schema: Any
    ) -> Iterator[ValidationError]:
        known = [searcher(pattern) for pattern in schema.get("patternProperties", ())]
        if known and isinstance(value, dict):
            value = {name: item for name, item in value.items() if not any(fits(name) for fits in known)}
            schema = {key: item for key, item in schema.items() if key != "patternProperties"}
        yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, allowed, value, schema)

    keywords = {
        "pattern": pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional_properties,
    }
    validator: type[Draft202012Validator] = extend(Draft202012Validator, keywords)  # type: ignore[no-untyped-call]
    return validator


def _error_text(error: ValidationError) -> str:
    path = error.json_path.removeprefix("$").removeprefix(".")
    message = clip(error.message, LONGEST_MESSAGE)
    return f"{path}: {message}" if path else message


def _bad_schema(reason: str) -> FormatError:
    return FormatError(Problem("bad-schema", f"not a JSON Schema (2020-12): {reason}"))
