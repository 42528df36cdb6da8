"""Candidates for the scalars of a schema: numbers and texts, edges included, simple ones before others.

They may break other keywords of the schema than those that they were made from: the caller drops those that do.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import ceil, floor, isfinite
from random import Random
from re import UNICODE
from typing import Any, Final

_LONGEST: Final = 300
"""The length of a long text, in characters, if the schema allows it."""
_LONG: Final = "one more sentence that goes on, " * 100
_NOT_ASCII: Final = "Zoë 東京 🙂"
_WHOLE: Final = (0, 1, -1, 2, 3, 5, 10, 42, 100, 1000, -1000, 2**31, -(2**31), 2**53, -(2**53), 10**18)
_BROKEN: Final = (0.5, -0.5, 0.1, 0.99, 1.5, 1e-9, 1e300, -1e300)
_FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "date": ("2026-01-01", "2024-02-29", "1970-01-01", "1899-12-31", "9999-12-31", "0001-01-01"),
    "date-time": (
        *("2026-01-01T09:00:00Z", "2024-02-29T23:59:59.999999+14:00", "1969-12-31T23:59:59Z"),
        "9999-12-31T23:59:59-12:00",
    ),
    "time": ("09:00:00Z", "00:00:00Z", "23:59:59.999999Z", "12:30:00+05:30"),
    "duration": ("P1D", "PT0S", "PT1.5S", "P1Y2M3DT4H5M6S"),
    "email": ("ada@example.com", "a@b.co", "first.last+tag@sub.example.org"),
    "uri": ("https://example.com/", "http://localhost:8000/a?b=c#d", "https://example.com/%20/caf%C3%A9"),
    "uuid": ("00000000-0000-0000-0000-000000000000", "6fa459ea-ee8a-4ca4-894e-db77e160355e"),
    "hostname": ("example.com", "localhost", "a.b.c.example.org"),
    "ipv4": ("127.0.0.1", "0.0.0.0", "255.255.255.255"),
    "ipv6": ("::1", "::", "2001:db8::ff00:42:8329"),
    "json-pointer": ("", "/a/0"),
    "regex": ("a", "^[a-z]+$"),
}
_SAME_AS: Final = {"idn-email": "email", "uri-reference": "uri", "iri": "uri", "idn-hostname": "hostname"}


def numbers(schema: Mapping[str, Any], words: Sequence[str], *, whole: bool) -> list[int | float]:
    """Return numbers, nearest to 0 first: bounds, their neighbours, large ones, and those among the words.

    Those that need not be whole are of the type that has fractions: languages such as CEL tell 1 from 1.0.
    """
    step = schema.get("multipleOf", 1)
    near: list[Any] = [*_WHOLE, *(() if whole else _BROKEN), *(step * times for times in (1, -1, 2, 10, 100))]
    bounds = [schema[key] for key in _BOUNDS if key in schema]
    for bound in [*bounds, *_numbers_among(words)]:
        near += [bound, bound + 0.01, bound - 0.01]
        if isfinite(bound / step):
            first, last = ceil(bound / step), floor(bound / step)
            near += [times * step for at in range(4) for times in (first + at, last - at)]
    near += [sum(bounds) / len(bounds)] if len(bounds) > 1 else []
    finite = [each for each in near if isfinite(each) and not (whole and each % 1)]
    return sorted(dict.fromkeys(map(int if whole else float, finite)), key=lambda each: (abs(each), each < 0))


_BOUNDS: Final = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")


def _numbers_among(words: Sequence[str]) -> Iterator[int | float]:
    for word in words:
        try:
            found = float(word)
        except ValueError:
            continue
        if isfinite(found):
            yield int(found) if found == int(found) else found


def texts(schema: Mapping[str, Any], words: Sequence[str]) -> list[str]:
    """Return texts: of a pattern or a format, if the schema has one; otherwise words, then edges.

    Half of the words are the examples of the schema. Words are repeated so that two thirds are words. The edges: the
    empty text, one that is not ASCII, a long one.
    """
    least, most = (
        schema.get("minLength", 0),
        schema.get("maxLength", max(_LONGEST, schema.get("minLength", 0))),
    )
    if "pattern" in schema:
        return [*words, *samples(schema["pattern"], max(least, 8))]
    of_format = _FORMATS.get(_SAME_AS.get(schema.get("format", ""), schema.get("format", "")))
    if of_format is not None:
        return list(of_format)

    def fitting(text: str) -> str:
        return (text if len(text) >= least else (text or "a") * least)[:most]

    usual = list(dict.fromkeys(fitting(word) for word in words or ("a",)))
    aims = [text for text in schema.get("examples", ()) if isinstance(text, str)]
    usual = [*aims * (len(usual) // len(aims) or 1), *usual] if aims else usual
    longest = min(most, max(_LONGEST, least))
    edges = [fitting(""), fitting(_NOT_ASCII), fitting((_LONG * (longest // len(_LONG) + 1))[:longest])]
    return usual * -(-2 * len(edges) // len(usual)) + edges * max(1, len(usual) // (2 * len(edges)))


_parser: Final[Any] = importlib.import_module("re._parser")  # `re` has no public one


@lru_cache(maxsize=64)
def samples(pattern: str, most: int) -> Sequence[str]:
    """Return texts for a regular expression, short ones first; what repeats, does so at most `most` times more.

    Anchors and assertions are ignored, so not each text has to match.
    """
    parsed, chance = _parser.parse(pattern), Random(0)
    choosers: list[Callable[[int], int]] = [lambda n: 0, lambda n: n - 1, *[chance.randrange] * 40]
    drawn = dict.fromkeys(_sample(parsed, choose, most, {}) for choose in choosers)
    longer = dict.fromkeys(text + more for text in drawn for more in ("", "a", "b", "a" * most))
    return sorted(longer, key=lambda text: (len(text), text))


_CHARACTERS: Final = [
    *map(chr, [*range(97, 123), *range(48, 58), *range(65, 91), 32, *range(33, 48), *range(58, 65), *range(91, 97)]),
    *"{|}~é",
]  # fmt: skip


def _sample(parsed: Any, choose: Callable[[int], int], most: int, groups: dict[int, str]) -> str:
    text = ""
    for operation, argument in parsed:
        match str(operation):
            case "LITERAL":
                text += chr(argument)
            case "ANY" | "NOT_LITERAL" | "IN":
                fitting = _characters(operation, tuple(argument) if isinstance(argument, list) else argument)
                text += fitting[choose(len(fitting))]
            case "BRANCH":
                text += _sample(argument[1][choose(len(argument[1]))], choose, most, groups)
            case "SUBPATTERN":
                groups[argument[0]] = _sample(argument[-1], choose, most, groups)
                text += groups[argument[0]]
            case "GROUPREF":
                text += groups.get(argument, "")
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, allowed, repeated = argument
                times = least + choose(min(int(allowed) - least, most) + 1)
                text += "".join(_sample(repeated, choose, most, groups) for _ in range(times))
            case "ATOMIC_GROUP":
                text += _sample(argument, choose, most, groups)
    return text


@lru_cache(maxsize=64)
def _characters(operation: Any, argument: Any) -> list[str]:
    """Return characters of a class such as `[^a-z_]`; if it has none of `_CHARACTERS`, the first that it names."""
    pattern = _parser.SubPattern(_parser.State(), [(operation, argument)])
    matches = importlib.import_module("re._compiler").compile(pattern, UNICODE).match
    found = [each for each in _CHARACTERS if matches(each)]
    named = [each for _, each in argument if each is not None] if isinstance(argument, tuple) else []
    first = named[0][0] if named and isinstance(named[0], tuple) else named[0] if named else "a"
    return found or [chr(first) if isinstance(first, int) else "a"]
