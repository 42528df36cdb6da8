"""Finds secrets by names: in JSON by the key, or a name beside or around them; in other text by the name before.

Also what JSON needs for this: parsing and formatting, the strings of a stream, and texts that were cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from harness.secrets.encodings import PLACEHOLDER, Edit, placeholder
from harness.secrets.policy import (
    ABOUT,
    MIN_LENGTH,
    holds_secret,
    holds_secrets,
    is_common,
    is_reference,
    looks_random,
    may_name_secrets,
    numbers_below,
    secret_field,
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
                name = header if number else ""
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


# Patterns are only tried at the start of a word or after a name, so that the search is fast for any text.
_NAME: Final = re.compile(
    r"(?<![\w.-])([\w.-]{2,80}+)(\\*[\"'])?\s{0,9}+([=:])\s{0,9}+(?:[bru]{0,2}(\\*)([\"']))?"
)
_BARE: Final = re.compile(r"[^\s&;,\"'<>()\[\]{}\\]{1,512}+(?!\()")
_SCHEME: Final = re.compile(r"(?:Bearer|Basic|Token)\s+([A-Za-z0-9._~+/=-]{6,4096}+)", re.IGNORECASE)
_LOGIN: Final = re.compile(r"(?<=://)[^\s/?#@\"'<>:]*+:[^\s/?#@\"'<>]{1,400}+(?=@)")
_LONGEST: Final = 4096
_HEADERS: Final = ("authorization", "cookie")


def secrets_in(text: str) -> Iterator[tuple[str, str, Edit]]:
    """Yield the name and value of each secret after its name in a text, with the edit that replaces it."""
    for found in _found(text):
        name, start, end = found
        if not PLACEHOLDER.fullmatch(text, start, end):
            yield name, text[start:end], (start, end, placeholder(name))


def _found(text: str) -> Iterator[tuple[str, int, int]]:
    if "://" in text:
        yield from (("userinfo", *login.span()) for login in _LOGIN.finditer(text))
    if not may_name_secrets(text):
        return
    at = 0
    for head in _NAME.finditer(text):
        if head.start() < at:  # inside a value
            continue
        name, closes, sign, escape, quote = head.groups()
        is_header = sign == ":" and not closes and not quote
        if is_header and secret_header(name) and (given := _SCHEME.match(text, head.end())):
            at = given.end()
            yield name, *given.span(1)
        elif not secret_field(name):
            continue
        elif quote:
            at = end = _end_of(text, head.end(), escape + quote)
            value = text[head.end() : end]
            if value and (closes or not _is_word(value)) and holds_secret(name, value, {}):
                yield name, head.end(), end
        elif bare := _BARE.match(text, head.end()):
            at = bare.end()
            if _is_bare(name, bare[0], is_json=bool(closes), sign=sign):
                yield name, *bare.span()


def _end_of(text: str, start: int, quote: str) -> int:
    """Return the end of a quoted value: the next quote with the same escapes, else the end of the line or text."""
    at = start
    while (at := text.find(quote, at, start + _LONGEST)) >= 0:
        if text[at - 1] != "\\" or at == start:
            return at
        at += 1
    end = text.find("\n", start, start + _LONGEST)
    return end if end >= 0 else min(len(text), start + _LONGEST)


def _is_word(value: str) -> bool:
    return is_common(value) or is_reference(value)


def _is_bare(name: str, value: str, *, is_json: bool, sign: str) -> bool:
    """True if a value without quotes is a secret, and not a number, a call or a word of a sentence."""
    if value.isdecimal():
        return is_json and secret_number(name, value)
    if is_json or _is_word(value):
        return False
    if sign == ":":
        return looks_random(value) and ("-" in name or name.lower() in _HEADERS)
    return looks_random(value) or (len(value) >= 6 and any(map(str.isdecimal, value)))


_CUT: Final = "…"


def without_cut_values(value: Any, names: Mapping[str, str]) -> Any:
    """Return JSON data without parts of secrets beside cuts; the same object if nothing changes.

    `names` maps each secret to its name.
    """
    if isinstance(value, str):
        return _scrubbed(value, names) if _CUT in value else value
    if isinstance(value, dict):
        kept = {key: without_cut_values(item, names) for key, item in value.items()}
        return kept if any(kept[key] is not item for key, item in value.items()) else value
    if isinstance(value, list):
        items = [without_cut_values(item, names) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def _scrubbed(text: str, names: Mapping[str, str]) -> str:
    pieces = text.split(_CUT)
    for at, piece in enumerate(pieces):
        kept = piece
        if at < len(pieces) - 1:
            size, name = max((_overlap(kept, secret), name) for secret, name in names.items())
            kept = kept[: len(kept) - size] + placeholder(name) if size else kept
        if at > 0:
            size, name = max((_overlap(secret, kept), name) for secret, name in names.items())
            kept = placeholder(name) + kept[size:] if size else kept
        pieces[at] = kept
    scrubbed = _CUT.join(pieces)
    return text if scrubbed == text else scrubbed


def _overlap(text: str, other: str) -> int:
    """Return the length of the longest suffix of `text` that is a prefix of `other`; 0 if it is too short."""
    start = other[:MIN_LENGTH]
    at = text.find(start, max(len(text) - len(other), 0)) if len(start) == MIN_LENGTH else -1
    while at >= 0:
        if other.startswith(text[at:]):
            return len(text) - at
        at = text.find(start, at + 1)
    return 0
