"""Conversion of any value to plain JSON data, for traces, results and reports, and parsing of JSON text."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from enum import Enum
from functools import cache
from typing import Any

MAX_DEPTH = 100
LONGEST_ERROR = 20_000
"""The most characters of an error message: some libraries put a whole document into it."""

_JSON_AS_IT_IS = frozenset({str, bool, type(None)})  # a lookup of the exact type is faster than isinstance
_TOO_LARGE = 1 << 10_000  # Python converts no integers of more than 4300 digits to text or back
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def from_json(text: str) -> Any:
    """Parse JSON text. None if it is not valid, or nested too deeply."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def texts_in(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield each text in JSON data, with its path. Keys are none."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts_in(item, (*path, key))


def compact_json(value: Any) -> str:
    """Return the value as JSON text without blanks, with the keys in their order."""
    return json.dumps(to_json(value), ensure_ascii=False, separators=(",", ":"))


def as_text(value: Any) -> str:
    """Return text as it is, and any other value as compact JSON."""
    return value if isinstance(value, str) else compact_json(value)


def to_json(value: Any, inside: tuple[int, ...] = ()) -> Any:
    """Return the value as JSON data that shares nothing mutable with it.

    Messages become mappings (`message_json`), and so do dataclasses, pydantic models and other objects, with
    their public fields. Sets become sorted lists, objects that define `__str__` that text, and anything else its
    type's name in angle brackets. A value that contains itself, or is nested deeper than 100 levels, is cut off
    with "…". `inside` has the ids of the containers around the value, for recursive calls.
    """
    kind = type(value)
    if kind in _JSON_AS_IT_IS:
        return value
    if kind is not dict and kind is not list:
        if isinstance(value, int):
            return int.__pos__(value) if -_TOO_LARGE < value < _TOO_LARGE else hex(value)
        if isinstance(value, str):  # of an enumeration of the app, which no other process may know
            return str.__str__(value)
        if isinstance(value, float):
            return float.__pos__(value) if math.isfinite(value) else str(value)
    if id(value) in inside or len(inside) > MAX_DEPTH:
        return "…"
    inside = (*inside, id(value))
    if kind is dict or isinstance(value, Mapping):
        return {
            key if type(key) is str else key_text(key): item
            if type(item) in _JSON_AS_IT_IS
            else to_json(item, inside)
            for key, item in value.items()
        }
    if kind is list or (isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray))):
        return [item if type(item) in _JSON_AS_IT_IS else to_json(item, inside) for item in value]
    if isinstance(value, Set):
        return sorted((to_json(item, inside) for item in value), key=repr)
    return _plain_object(value, inside)


def key_text(key: Any) -> str:
    """Return a key of a mapping as text."""
    if isinstance(key, str):
        return str.__str__(key)
    try:
        return str(key)
    except Exception:  # an integer that is too large, or a user's __str__
        return str(to_json(key))


@cache
def _of_messages() -> tuple[type, Callable[[Any], dict[str, Any]]]:
    from langchain_core.messages import BaseMessage

    from harness.graph.messages import message_json

    return BaseMessage, message_json


def _plain_object(value: Any, inside: tuple[int, ...]) -> Any:
    message, message_json = _of_messages()
    if isinstance(value, message):
        return to_json(message_json(value), inside)
    if isinstance(value, Enum):
        return to_json(value.value, inside)
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {error_text(value)}"
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, type):
        return f"<{value.__name__}>"
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    if hasattr(value, "model_dump"):
        return to_json(value.model_dump(), inside)
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return to_json(fields, inside)
    if "__str__" in {name for kind in type(value).__mro__[:-1] for name in vars(kind)}:
        return _own_text(value)
    if hasattr(value, "__dict__"):
        public = {key: item for key, item in vars(value).items() if not key.startswith("_")}
        return to_json(public, inside)
    return f"<{type(value).__name__}>"


def _own_text(value: Any) -> str:
    try:
        return without_addresses(str(value))
    except BaseException:  # a user's __str__ may raise anything
        return f"<{type(value).__name__}>"


def error_text(error: BaseException) -> str:
    """Return the message of an error, the same in every rerun: without memory addresses, and not too long."""
    if isinstance(error, CancelledError):  # it may name tasks and scopes of this process
        return ""
    try:
        text = without_addresses(": ".join([str(error), *_reasons(error)]))
    except Exception:  # a user's __str__
        return "(its text cannot be made)"
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]}… ({len(text)} characters)"


def _reasons(error: BaseException) -> list[str]:
    """Return what the errors inside an exception group say: the text of the group names only their number."""
    if not isinstance(error, BaseExceptionGroup):
        return []
    inside = [_reasons(each) or [f"{type(each).__name__}: {each}"] for each in error.exceptions]
    return list(dict.fromkeys(reason for reasons in inside for reason in reasons))


def told_error(kind: str, message: str) -> str:
    """Return the message of an error; one of a single word, like that of a KeyError, after the type of the error."""
    if not message:
        return kind
    return message if len(message.split()) > 1 else f"{kind}: {message}"


def without_addresses(text: str) -> str:
    """Remove memory addresses (` at 0x7f…`), which differ from run to run."""
    return _ADDRESS.sub("", text) if " at 0x" in text else text
