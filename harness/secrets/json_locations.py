"""The location of a value in JSON, and the secret it is there: by its key, or by a name beside or around it.

For JSON data (`Location.within`, `Inside.member`, `Inside.item`) and for literals of JSON text (`Locations`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from harness.secrets.json_text import Holder, Literal
from harness.secrets.placeholders import PLACEHOLDER
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

Members = Mapping[Any, Any]

_NONE: Final[Members] = {}
# `{"name": "Authorization", "value": …}`, as browsers and clouds write headers and settings.
_NAME_KEYS: Final = ("name", "key", "header", "field")
_VALUE_KEYS: Final = frozenset({"value", "values"})
_HEADER: Final = re.compile(r"[\w.-]+")
# A float is a measure, and a negative number a logprob.
_WHOLE: Final = re.compile(r"\d+(?:\.0+)?")

# A JSON Schema describes a field; only its defaults and examples are values of it.
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


@dataclass(frozen=True, slots=True)
class Location:
    """Where a value stands. The values beside it count only where there is no `cover`, which may replace them too.

    key       its key, or its index in a list; "" at the top
    name      the secret name it goes by itself, "" if it has none
    cover     the secret name of what it is a part of, "" if there is none
    siblings  the object it is a member of; nothing in a list
    around    the key of the object or list it is in
    """

    key: str | int
    name: str
    cover: str
    siblings: Members
    around: str | int

    def secret_string(self, value: str) -> str:
        """The name of the secret that a string is here, "" if it is none."""
        if self.cover:
            return (self.name or self.cover) if value else ""
        return self.name if self.name and holds_secret(self.name, value, self.siblings) else ""

    def secret_number(self, number: object) -> str:
        """The name of the secret that a number is here, "" if it is none."""
        if not (self.name or self.cover) or not _WHOLE.fullmatch(digits := _digits(number)):
            return ""
        if self.name and secret_number(self.name, digits):
            return self.name
        names_itself = not isinstance(self.key, int) and not ABOUT.isdisjoint(words(self.key))
        return (
            (self.name or self.cover) if self.cover and not names_itself and numbers_below(self.cover) else ""
        )

    def within(self, members: Members | None) -> Inside:
        """The inside of an object with these members at this location; None for a list."""
        if self is TOP:
            return _IN_TOP
        if self is _ITEM:
            return _IN_ITEM
        is_item = isinstance(self.key, int)
        cover, described = self.cover, ""
        if self.name and not cover and holds_secrets(self.name, members, self.siblings):
            if members is not None and _is_schema(members, self.around):
                described = self.name
            else:
                cover = self.name
        return Inside(self.key, is_item, cover, described)


@dataclass(frozen=True, slots=True)
class Inside:
    """The inside of an object or list: what the locations of its values share.

    key        the key, or index, of the object or list itself
    is_item    it is an item of a list
    cover      as in `Location`
    described  the secret name of which it is the JSON Schema
    """

    key: str | int
    is_item: bool
    cover: str
    described: str

    def member(self, key: str, members: Members) -> Location:
        """The location of a member of an object."""
        cover = self.cover
        if self.described and key in _EXAMPLES:
            cover = self.described
        kind = _kind(key)
        name = key if kind == "secret" else ""
        if kind == "value" and not cover:
            name = _named_beside(members)
        if not name and not cover and key not in _SCHEMAS:
            return TOP
        return Location(key, name, cover, members, self.key)

    def item(self, at: int, first: object, count: int) -> Location:
        """The location of an item of a list, by its first item and its length. Lists of pairs are headers."""
        if self.cover:
            return Location(at, "", self.cover, _NONE, self.key)
        if self.is_item and (at, count) == (1, 2) and isinstance(first, str) and _names_secret(first):
            return Location(at, first, "", _NONE, self.key)
        return _ITEM

    def items(self, items: Sequence[object]) -> Sequence[Location]:
        """The locations of all items of a list."""
        count = len(items)
        if not self.cover and count != 2:
            return [_ITEM] * count
        return [self.item(at, items[0], count) for at in range(count)]


# Shared: most values are at no location that matters.
TOP: Final = Location("", "", "", _NONE, "")
_ITEM: Final = Location(0, "", "", _NONE, "")
_IN_TOP: Final = Inside("", False, "", "")
_IN_ITEM: Final = Inside(0, True, "", "")


class Locations:
    """Finds the locations of literals in JSON texts; the literals must stay alive meanwhile.

    `renamed` returns a key as it will be written.
    """

    def __init__(self, renamed: Callable[[str], str]) -> None:
        self._renamed = renamed
        self._insides: dict[int, Inside] = {}

    def location(self, literal: Literal) -> Location:
        """The location of a string or number."""
        unknown, outer = [], literal.holder
        while outer is not None and id(outer) not in self._insides:
            unknown.append(outer)
            outer = outer.parent
        for one in reversed(unknown):
            location = self._in(one.parent, one.at)
            self._insides[id(one)] = location.within(one.members if one.kind == "{" else None)
        return self._in(literal.holder, literal.name)

    def _in(self, holder: Holder | None, at: str | int) -> Location:
        if holder is None:
            return TOP
        inside = self._insides[id(holder)]
        if isinstance(at, str):
            return inside.member(self._renamed(at), holder.members)
        return inside.item(at, holder.members.get(0), holder.count)


@lru_cache(maxsize=4096)
def _kind(key: str) -> str:
    key = PLACEHOLDER.sub("", key)  # what was known there says nothing of the value
    return "secret" if secret_key(key) else "value" if key.lower() in _VALUE_KEYS else ""


def _named_beside(members: Members) -> str:
    """The secret name that stands beside a value: `{"name": NAME, "value": …}`."""
    for key, name in members.items():
        if isinstance(name, str) and str(key).lower() in _NAME_KEYS and _names_secret(name):
            return name
    return ""


def _names_secret(name: str) -> bool:
    return len(name) <= 100 and bool(_HEADER.fullmatch(name)) and (secret_header(name) or secret_key(name))


def _is_schema(members: Members, around: str | int) -> bool:
    if not all(key in _KEYWORDS or str(key).startswith("x-") for key in members):
        return False
    if "type" in members:
        kind = members["type"]
        is_scalar = isinstance(kind, (str, int, float)) and not isinstance(kind, bool)
        return not is_scalar or str(kind).lower() in _TYPES
    return around in _SCHEMAS or not _TELLING.isdisjoint(members)


def may_be_secret(number: object) -> bool:
    """True if a number can be a secret at some location."""
    return _WHOLE.fullmatch(_digits(number)) is not None


def _digits(number: object) -> str:
    try:
        return str(number)
    except ValueError:  # an integer of more digits than Python writes
        return "0" * 13
