"""Reading: names, fields and elements."""

from __future__ import annotations

from typing import Any

from celpy.celtypes import MapType

from harness.expressions.failure import Failure, Place
from harness.expressions.operators import Code, Frame
from harness.expressions.values import TYPES, Null, plain, type_of, view


def name(text: str, place: Place, null: Null) -> Code:
    """A bound name, or the name of a type."""

    def run(frame: Frame) -> Any:
        bindings = frame[0]
        if text in bindings:
            return _viewed(bindings[text], null, place)
        if text in TYPES:
            return TYPES[text]
        raise Failure(f"undeclared name {text!r}", place, text, bindings)

    return run


def variable(slot: int) -> Code:
    """A macro's variable."""
    return lambda frame: frame[slot]


def _viewed(value: Any, null: Null, place: Place) -> Any:
    try:
        return view(value, null)
    except OverflowError as error:
        raise Failure(str(error), place) from None


def field(container: Code, name: str, place: Place) -> Code:
    """`container.name`, of maps alone."""

    def run(frame: Frame) -> Any:
        value = container(frame)
        if not isinstance(value, MapType):
            raise Failure(f"no field {name!r} in a value of type {type_of(value)}", place)
        try:
            return value[name]
        except KeyError:
            raise Failure(f"no such key: {name!r}", place, name, value.keys()) from None
        except OverflowError as error:
            raise Failure(str(error), place) from None

    return run


def element(container: Code, key: Code, place: Place) -> Code:
    """`container[key]`. An index below zero counts from the end, as in cel-python."""

    def run(frame: Frame) -> Any:
        value, index = container(frame), key(frame)
        if not isinstance(value, (dict, list, str, bytes)):
            raise Failure(f"a value of type {type_of(value)} has no elements", place)
        try:
            return value[index]
        except KeyError:
            raise Failure(f"no such key: {plain(index)!r}", place, index, value) from None
        except IndexError:
            raise Failure(f"index {plain(index)} is out of range (size {len(value)})", place) from None
        except TypeError:
            raise Failure(f"no such overload: {type_of(value)}[{type_of(index)}]", place) from None
        except OverflowError as error:
            raise Failure(str(error), place) from None

    return run
