"""Detects expected values that match everything, or everything of their kind.

Such a value may still fail, as the key of a state may be missing: it says nothing about the value that is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from harness.errors import HarnessError
from harness.matchers.regex import searcher
from harness.matchers.schema_flaws import accepts_everything, misspelt_keywords, schemas_inside
from harness.matchers.value import is_matcher, matches

_PARTICULAR: Final = re.compile(r"\(\?<?[!=]|\{\d*,?[1-9]\d*\}|\{[1-9]\d*,\}")
"""A part of a pattern that may need a particular text, or one of some length."""
_TEXTS: Final = ("", "a", "1", " ", "\n", "a\n", "\nA", "ä", "".join(map(chr, range(32, 127))))
"""Texts of every kind. A pattern that is found in these, and in each word of its own, is found everywhere."""
_FORMATS: Final = frozenset(
    (
        *("date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4"),
        *("ipv6", "uri", "uri-reference", "iri", "iri-reference", "uuid", "uri-template", "json-pointer"),
        *("relative-json-pointer", "regex"),
    )
)
"""The formats of texts that JSON Schema defines."""


class VacuousPart(NamedTuple):
    """A part of an expected value that says nothing; `path` leads to the part, or to its key if `on_key`."""

    path: tuple[str | int, ...]
    message: str
    hint: str = ""
    on_key: bool = False


def vacuous_parts(expected: Any, path: tuple[str | int, ...] = ()) -> Iterator[VacuousPart]:
    """Yield the parts of an expected value that say nothing. `$any` is not one: it requires that the value exists."""
    if is_matcher(expected):
        ((name, argument),) = expected.items()
        yield from _of_matcher(name, argument, (*path, name))
    elif isinstance(expected, Mapping):
        if not expected:
            text = "an empty mapping is contained in every mapping"
            yield VacuousPart(path, text, "{$exact: {}} matches an empty mapping alone")
        for key, value in expected.items():
            yield from vacuous_parts(value, (*path, key))
    elif isinstance(expected, list | tuple):
        for index, item in enumerate(expected):
            if item != {}:  # here `{}` is a placeholder for an item that may be any mapping
                yield from vacuous_parts(item, (*path, index))


def _matches_every_count(expected: Any) -> bool:
    """True if the expected value is a matcher that every count matches."""
    near = [int(digits) + step for digits in re.findall(r"\d+", repr(expected)) for step in (-1, 0, 1)]
    try:
        return is_matcher(expected) and all(
            matches(expected, count) for count in (0, 1, 2, 10**6, *near) if count >= 0
        )
    except HarnessError:  # it is malformed, or has no value for a count
        return False


def _of_matcher(name: str, argument: Any, path: tuple[str | int, ...]) -> Iterator[VacuousPart]:
    if name == "$all" and isinstance(argument, list):
        if not argument:
            yield VacuousPart(path, "'$all' lists nothing, so it says nothing", on_key=True)
        yield from vacuous_parts(argument, path)
    elif name in ("$some", "$json"):
        yield from vacuous_parts(argument, path)
    elif name in ("$contains", "$icontains") and argument == "":
        hint = "{$type: string} matches every text"
        yield VacuousPart(path, f"every text contains '', so '{name}' says nothing of a text", hint)
    elif name == "$regex" and _is_found_anywhere(argument):
        hint = "a pattern is found anywhere in a text; ^ and $ bind it to the ends"
        yield VacuousPart(path, f"the pattern '{argument}' is found in every text", hint)
    elif name == "$len" and _matches_every_count(argument):
        yield VacuousPart(path, "every length matches, so '$len' says nothing")
    elif name == "$not" and argument == {"$in": []}:
        yield VacuousPart(path, "nothing is in an empty list, so this says nothing")
    elif name == "$cel" and isinstance(argument, str):
        from harness.expressions.inspection import always_true_reason

        if always_true_reason(argument):
            yield VacuousPart(path, f"'{argument}' is true of every value, so it says nothing")
    elif name == "$schema":
        yield from vacuous_schema(argument, path)


def vacuous_schema(schema: Any, path: tuple[str | int, ...] = ()) -> Iterator[VacuousPart]:
    """Yield the parts of a JSON Schema that have no effect."""
    misspelt = list(misspelt_keywords(schema, path))
    for keyword in misspelt:
        text = f"'{keyword.keyword}' is not a keyword of JSON Schema, and is ignored"
        yield VacuousPart(keyword.path, text, f"did you mean '{keyword.meant}'?", on_key=True)
    if not misspelt and accepts_everything(schema):
        yield VacuousPart(path, "this schema accepts everything, so it says nothing")
    yield from _unchecked_formats(schema, path)


def _unchecked_formats(schema: Any, path: tuple[str | int, ...]) -> Iterator[VacuousPart]:
    for at, inside in schemas_inside(schema, path):
        format_ = inside.get("format")
        if (
            isinstance(format_, str)
            and format_ in _FORMATS
            and not {"pattern", "enum", "const"} & set(inside)
        ):
            text = f"'format: {format_}' is not checked: JSON Schema takes it as a remark, so it cannot fail"
            yield VacuousPart((*at, "format"), text, "a `pattern` is checked")


def _is_found_anywhere(pattern: Any) -> bool:
    """True if the pattern is found in every text."""
    if not isinstance(pattern, str) or _PARTICULAR.search(pattern):
        return False
    try:
        found = searcher(pattern)
    except re.error:
        return False
    return all(found(text) for text in (*_TEXTS, pattern, *re.findall(r"\w+", pattern)))
