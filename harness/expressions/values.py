"""Conversion between Python values and CEL values.

`view` never copies a container: a list, mapping or object becomes a `ListView` or `MapView`, which converts an
element when it is read. So the cost of an expression depends on what it reads, not on the size of the state.
`to_python` converts back; its results contain only None, bool, int, float, str, bytes, list and dict.

Text stays `str`; every other scalar becomes cel-python's own type, whose operators implement CEL's rules
(64-bit overflow, no mixed overloads).

Both directions take the meaning of stored nulls: `view(value, null)` shows each None in `value`, at any depth, as
`null`, which is either None or `FALSE` (as sherma reads them).
"""

from __future__ import annotations

import datetime
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    Set,
    ValuesView,
)
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from celpy import celtypes
from celpy.celtypes import BoolType, DoubleType, IntType, ListType, MapType, UintType

from harness.errors import ExpressionError

TRUE = BoolType(True)
FALSE = BoolType(False)

Null = BoolType | None

TYPES: Mapping[str, type] = {
    "bool": BoolType,
    "bytes": celtypes.BytesType,
    "double": DoubleType,
    "duration": celtypes.DurationType,
    "int": IntType,
    "list": ListType,
    "map": MapType,
    "null_type": type(None),
    "string": celtypes.StringType,
    "timestamp": celtypes.TimestampType,
    "uint": UintType,
}

_CEL_SCALARS = (BoolType, IntType, UintType, DoubleType, celtypes.BytesType, celtypes.TimestampType)
_CEL_VALUES = (*_CEL_SCALARS, celtypes.DurationType, ListType, MapType)
_PLAIN_SCALARS = frozenset((str, int, float, bool, bytes))
_KEYS = (str, IntType, UintType, BoolType)


class MapView(MapType):
    """A CEL map that reads a mapping of Python values lazily."""

    __slots__ = ("fields", "null")

    def __init__(self, fields: Mapping[Any, Any], null: Null) -> None:
        self.fields, self.null = fields, null

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, _KEYS):
            raise TypeError("not a key type")
        if key not in self.fields:  # indexing a defaultdict would create the entry
            raise KeyError(key)
        return view(self.fields[key], self.null)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, _KEYS) and key in self.fields

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Any]:
        return (view(key, self.null) for key in self.fields)

    def keys(self) -> KeysView[Any]:  # type: ignore[override]
        return self.fields.keys()

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        return ValuesView(self)

    def items(self) -> ItemsView[Any, Any]:  # type: ignore[override]
        return ItemsView(self)


class ListView(ListType):
    """A CEL list that reads a sequence of Python values lazily, by its length, indexing and iteration alone."""

    __slots__ = ("elements", "null")

    def __init__(self, elements: Sequence[Any], null: Null) -> None:
        self.elements, self.null = elements, null

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, int):
            raise TypeError("not an index")
        return view(self.elements[int(index)], self.null)

    def __contains__(self, item: object) -> bool:
        return any(element == item for element in self)

    def __len__(self) -> int:
        return len(self.elements)

    def __iter__(self) -> Iterator[Any]:
        null = self.null
        return (view(element, null) for element in self.elements)


def concatenated(left: Sequence[Any], right: Sequence[Any]) -> ListType:
    """Return the elements of two CEL lists as one list. The elements of views are not read."""
    views = [side for side in (left, right) if isinstance(side, ListView)]
    if not views:
        return ListType((*left, *right))
    parts = (side.elements if isinstance(side, ListView) else side for side in (left, right))
    return ListView([element for part in parts for element in part], views[0].null)


def integer(value: int) -> IntType:
    """Return a CEL int.

    Raises:
        OverflowError: `value` does not fit in 64 bits.
    """
    if not -(2**63) <= value < 2**63:
        raise OverflowError("integer overflow")
    return int.__new__(IntType, value)


def view(value: Any, null: Null = None) -> Any:
    """Return the CEL value of a Python value without reading the content of containers.

    Raises:
        OverflowError: an int does not fit in 64 bits.
    """
    kind = type(value)
    if kind is str:
        return value
    if kind is dict:
        return MapView(value, null)
    if kind is list:
        return ListView(value, null)
    if value is None:
        return null
    if kind is bool:
        return TRUE if value else FALSE
    if kind is int:
        return integer(value)
    if kind is float:
        return float.__new__(DoubleType, value)
    return _view_other(value, null)


def _view_other(value: Any, null: Null) -> Any:
    return _viewer(type(value))(value, null)  # type: ignore[arg-type]  # types are hashable


@lru_cache(maxsize=1024)
def _viewer(kind: type) -> _Viewer:
    """Return the function that makes the CEL view of values of a Python type."""
    for kinds, viewer in _VIEWERS:
        if issubclass(kind, kinds):
            return viewer
    declared = getattr(kind, "model_fields", None)
    if isinstance(declared, Mapping):
        return partial(_view_of_model, declared.keys())
    if is_dataclass(kind):
        return partial(_view_of_dataclass, [field.name for field in fields(kind) if field.name[0] != "_"])
    return _view_of_object


def _view_of_model(declared: KeysView[str], value: Any, null: Null) -> MapView:
    """View a pydantic model (messages are such) as a map of its fields, and of extra fields if it allows them."""
    held, extra = vars(value), value.model_extra
    if held.keys() == declared and not extra:
        return MapView(held, null)
    return MapView({name: held[name] for name in declared if name in held} | (extra or {}), null)


def _view_of_dataclass(names: Sequence[str], value: Any, null: Null) -> MapView:
    return MapView({name: getattr(value, name) for name in names if hasattr(value, name)}, null)


def _view_of_object(value: Any, null: Null) -> Any:
    """View an object as a map of its public attributes; as its text if it has no `__dict__` (a UUID, a Decimal)."""
    if not hasattr(value, "__dict__"):
        return str(value)
    return MapView({name: item for name, item in vars(value).items() if not name.startswith("_")}, null)


_Viewer = Callable[[Any, Null], Any]
# The first entry that fits is used, so subclasses come before their base classes.
_VIEWERS: Sequence[tuple[tuple[type, ...], _Viewer]] = (
    ((*_CEL_VALUES, type), lambda value, _null: value),
    ((Enum,), lambda value, null: view(value.value, null)),
    ((str,), lambda value, _null: str.__str__(value)),
    ((int,), lambda value, _null: integer(int(value))),
    ((float,), lambda value, _null: DoubleType(float(value))),
    ((bytes, bytearray), lambda value, _null: celtypes.BytesType(bytes(value))),
    ((datetime.datetime,), lambda value, _null: celtypes.TimestampType(value)),
    ((datetime.timedelta,), lambda value, _null: celtypes.DurationType(value)),
    ((datetime.date, datetime.time), lambda value, _null: value.isoformat()),
    ((Mapping,), MapView),
    ((Sequence,), ListView),
    ((Set,), lambda value, null: ListView(sorted(value, key=repr), null)),
)


def to_python(value: Any, null: Null = None) -> Any:
    """Return the Python value of a CEL value, or of any value that a view may contain. Containers are new objects.

    Timestamps and durations become text (`2020-01-01T00:00:00Z`, `90s`), a type its CEL name.
    """
    kind = type(value)
    if kind in _PLAIN_SCALARS:
        return value
    if value is None:
        return None if null is None else False
    if kind is MapView:
        return to_python(value.fields, value.null)
    if kind is ListView:
        return to_python(value.elements, value.null)
    if isinstance(value, Mapping):
        return {to_python(key): to_python(item, null) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [item if type(item) in _PLAIN_SCALARS else to_python(item, null) for item in value]
    return _to_python_other(value, null)


def _to_python_other(value: Any, null: Null) -> Any:
    match value:
        case BoolType():
            return bool(value)
        case IntType() | UintType():
            return int(value)
        case DoubleType():
            return float(value)
        case celtypes.BytesType():
            return bytes(value)
        case celtypes.TimestampType() | celtypes.DurationType():
            return str(value)
        case type():
            return type_name(value)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)):
        return [to_python(item, null) for item in value]
    return to_python(_view_other(value, null))


def type_name(kind: type) -> str:
    """Return CEL's name of a type (`int`, `string`, `list`, `null_type`, …), or Python's name if CEL has none."""
    if issubclass(kind, bool):
        return "bool"
    for name, cel in TYPES.items():
        if issubclass(kind, cel):
            return name
    for python, name in ((str, "string"), (float, "double"), (int, "int")):
        if issubclass(kind, python):
            return name
    return kind.__name__


def type_of(value: Any) -> str:
    """Return CEL's name for the type of a value; the type of a type is `type`."""
    return "type" if isinstance(value, type) else type_name(type(value))


LITERALS: Final = ("true", "false", "null")
_OTHER_LANGUAGES: Final = {
    "True": "true",
    "False": "false",
    "None": "null",
    "any": "exists",
    "endswith": "endsWith",
    "find": "indexOf",
    "float": "double",
    "includes": "contains",
    "len": "size",
    "length": "size",
    "lower": "lowerAscii",
    "startswith": "startsWith",
    "str": "string",
    "strip": "trim",
    "toLowerCase": "lowerAscii",
    "toString": "string",
    "toUpperCase": "upperAscii",
    "upper": "upperAscii",
}
"""Names that other languages use, mapped to those of CEL."""


class Fragment(NamedTuple):
    """A part of an expression. `line` and `column` are 1-based; `start` and `end` are 0-based character offsets."""

    source: str
    line: int
    column: int
    start: int
    end: int

    @property
    def text(self) -> str:
        """The source of the fragment on one line, with the middle left out if it is long."""
        text = " ".join(self.source[self.start : self.end].split())
        return text if len(text) <= 80 else f"{text[:38]} … {text[-38:]}"


class Failure(Exception):
    """An evaluation without a value, and the fragment that caused it.

    `missing` and `known` are used for the suggestion: the name that was not found, and the names that exist.
    """

    def __init__(
        self, message: str, fragment: Fragment, missing: object = None, known: Iterable[object] = ()
    ) -> None:
        super().__init__(message)
        self.message, self.fragment, self.missing, self.known = message, fragment, missing, known

    def error(self) -> ExpressionError:
        """Return the error to raise: the message, the source of the fragment, and the nearest known name."""
        text = self.fragment.text
        message = self.message if text in self.message else f"{self.message} in {text}"
        return ExpressionError(
            message + self._suggestion(),
            source=self.fragment.source,
            line=self.fragment.line,
            column=self.fragment.column,
        )

    def _suggestion(self) -> str:
        if not isinstance(self.missing, str):
            return ""
        names = [name for name in self.known if isinstance(name, str)]
        meant = _OTHER_LANGUAGES.get(self.missing)
        if meant in names:
            return f" (did you mean {meant!r}?)"
        close = get_close_matches(self.missing, names, n=1)
        return f" (did you mean {close[0]!r}?)" if close else ""
