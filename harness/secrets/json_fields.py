"""Finds secrets in JSON by names: the key, or a name beside or around them.

Also what JSON needs for this: parsing and formatting, and the strings of a stream.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from harness.secrets.encodings import PLACEHOLDER
from harness.secrets.policy import (
    ABOUT,
    holds_secret,
    holds_secrets,
    numbers_below,
    secret_header,
    secret_key,
    secret_number,
    word_set,
    words,
)

JSON = Any
_NOTHING: Final[Mapping[Any, Any]] = {}
# `{"name": "Authorization", "value": …}`, as browsers and clouds write headers and settings.
_NAME_KEYS: Final = ("name", "key", "header", "field")
_VALUE_KEYS: Final = frozenset({"value", "values"})
_HEADER: Final = re.compile(r"[\w.-]{1,100}")
# Other numbers are no secrets: a float is a measurement, a negative number a logprob.
_WHOLE: Final = re.compile(r"\d+(?:\.0+)?")

# A JSON Schema describes a field; only its defaults and examples are values of the field.
_KEYWORDS: Final = word_set(
    "type format title description default const example examples enum anyOf oneOf allOf not if then else items "
    "prefixItems properties patternProperties additionalProperties propertyNames required dependentRequired "
    "minLength maxLength pattern minItems maxItems uniqueItems contains minProperties maxProperties minimum "
    "maximum exclusiveMinimum exclusiveMaximum multipleOf nullable readOnly writeOnly deprecated contentEncoding "
    "contentMediaType definitions optional $ref $defs $schema $id $comment $anchor"
)
_TELLING: Final = frozenset({"$ref", "anyOf", "oneOf", "allOf", "enum", "not", "items", "properties"})
_TYPES: Final = word_set("string number integer boolean object array null str int float bool list dict any")
_EXAMPLES: Final = frozenset({"default", "const", "example", "examples"})
_SCHEMAS: Final = frozenset({"properties", "$defs", "definitions", "patternProperties"})


class Location(NamedTuple):
    """The location of a value in JSON data.

    key       the key, or the index in a list
    name      the name of the value if it is one for secrets, else ""
    cover     the secret name of an object or list that contains the value and is secret as a whole, else ""
    siblings  the object that has the value as a member; empty in a list. Only used without `cover`
    around    the key of the object or list that contains the value
    """

    key: str | int
    name: str = ""
    cover: str = ""
    siblings: Mapping[Any, Any] = _NOTHING
    around: str | int = ""

    def secret_string(self, value: str) -> str:
        """Return the name of the secret if a string at this location is one, else ""."""
        if self.cover:
            return (self.name or self.cover) if value else ""
        return self.name if self.name and holds_secret(self.name, value, self.siblings) else ""

    def secret_number(self, number: object) -> str:
        """Return the name of the secret if a number at this location is one, else ""."""
        if not (self.name or self.cover) or not _WHOLE.fullmatch(digits := _digits(number)):
            return ""
        if self.name and secret_number(self.name, digits):
            return self.name
        if not self.cover or not numbers_below(self.cover):
            return ""
        names_itself = isinstance(self.key, str) and not ABOUT.isdisjoint(words(self.key))
        return "" if names_itself else self.name or self.cover

    def inside(self, members: Mapping[Any, Any]) -> tuple[str, str]:
        """Return the `cover` of the values in an object or list here, and the name that it is the JSON Schema of.

        Either may be "". Of a schema, only the examples and defaults are covered.
        """
        if self.name and not self.cover and holds_secrets(self.name, members, self.siblings):
            return ("", self.name) if _is_schema(members, self.around) else (self.name, "")
        return self.cover, ""


def rewrite(
    value: JSON, renamed: Callable[[str], str], scalar: Callable[[str | int | float, Location], JSON]
) -> JSON:
    """Return a copy of JSON data of any depth, with `renamed` applied to keys and `scalar` to strings and numbers."""
    root = [value]
    todo: list[tuple[Any, Any, Location]] = [(root, 0, Location(""))]
    while todo:
        holder, at, location = todo.pop()
        item = holder[at]
        if isinstance(item, (str, int, float)):
            if not isinstance(item, bool):
                holder[at] = scalar(item, location)
        elif isinstance(item, Mapping):
            cover, described = location.inside(item)
            holder[at] = fresh = {
                renamed(key) if isinstance(key, str) else key: member for key, member in item.items()
            }
            for key in reversed(fresh):
                over = described if described and key in _EXAMPLES else cover
                name = _name_of(str(key), item, over)
                todo.append((fresh, key, Location(str(key), name, over, item, location.key)))
        elif isinstance(item, (list, tuple)):
            cover, _ = location.inside(_NOTHING)
            holder[at] = elements = list(item)
            is_pair = isinstance(location.key, int) and len(elements) == 2 and not cover
            header = elements[0] if is_pair and _names_secret(elements[0]) else ""
            for number in reversed(range(len(elements))):
                name = (header or _option(elements[number - 1], elements[number])) if number else ""
                todo.append((elements, number, Location(number, name, cover, _NOTHING, location.key)))
    return root[0]


def _name_of(key: str, members: Mapping[Any, Any], cover: str) -> str:
    kind = _kind(key)
    if kind == "value" and not cover:
        beside = (
            name for at, name in members.items() if str(at).lower() in _NAME_KEYS and _names_secret(name)
        )
        return next(beside, "")
    return key if kind == "secret" else ""


@lru_cache(maxsize=4096)
def _kind(key: str) -> str:
    key = PLACEHOLDER.sub("", key)  # the name of a secret in the key says nothing about the value
    return "secret" if secret_key(key) else "value" if key.lower() in _VALUE_KEYS else ""


def _names_secret(name: object) -> bool:
    return (
        isinstance(name, str) and bool(_HEADER.fullmatch(name)) and (secret_header(name) or secret_key(name))
    )


def _option(before: object, value: object) -> str:
    """Return the name of a secret if `before` is an option of a command (`--api-key`) and `value` is its value."""
    if not isinstance(before, str) or not before.startswith("-") or not isinstance(value, str):
        return ""
    return before.lstrip("-") if value[:1] != "-" and _names_secret(before) else ""


def _is_schema(members: Mapping[Any, Any], around: str | int) -> bool:
    if not members or not all(key in _KEYWORDS or str(key).startswith("x-") for key in members):
        return False
    if "type" in members:
        kind = members["type"]
        is_scalar = isinstance(kind, (str, int, float)) and not isinstance(kind, bool)
        return not is_scalar or str(kind).lower() in _TYPES
    return around in _SCHEMAS or not _TELLING.isdisjoint(members)


def _digits(number: object) -> str:
    try:
        return str(number)
    except ValueError:  # more digits than Python converts to text
        return "0" * 13


# ---------------------------------------------------------------- text of JSON


def parse_json(text: str) -> JSON:
    """Parse a text that is a JSON object or list; return None for any other text."""
    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    return None


def format_like(value: JSON, like: str) -> str:
    """Return JSON as text, with the spacing and escaping of another text."""
    indent = re.search(r"[{\[]\r?\n([ \t]+)", like)
    spaced = '": ' in like or '", ' in like
    separators = (",", ": ") if indent else (", ", ": ") if spaced else (",", ":")
    ascii_only = like.isascii()
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent and indent[1], separators=separators)
    return (
        text
        if ascii_only or text.isprintable()
        else re.sub("[\ud800-\udfff]", lambda char: json.dumps(char[0])[1:-1], text)
    )


# ---------------------------------------------------------------- streams

_INDEXES: Final = ("index", "output_index", "content_index", "summary_index")


def strings(value: JSON, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """Yield the strings of an event of a stream: their path, the object or list they are in, and their key in it.

    All parts of one streamed text have the same path. Items of lists are identified by their `index`, since a chunk
    only has the items it adds to.
    """
    if isinstance(value, dict):
        own = tuple(value.get(name) for name in _INDEXES)
        path = (*path, *map(str, own), None if path else value.get("type"))
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        is_indexed = isinstance(item, dict) and item.get("index") is not None and isinstance(key, int)
        step = "*" if is_indexed else key
        if isinstance(item, str):
            yield (*path, step), value, key
        elif isinstance(item, (dict, list)):
            yield from strings(item, (*path, step))
