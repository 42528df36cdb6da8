"""Compilation of names, fields and elements."""

from __future__ import annotations

from itertools import chain
from typing import Any

from celpy.celtypes import MapType

from harness.expressions.failure import LITERALS, Failure, Fragment
from harness.expressions.operators import Code, Frame
from harness.expressions.values import TYPES, Null, to_python, type_of, view


def name(text: str, fragment: Fragment, null: Null) -> Code:
    """Return code for a bound name, or the name of a type."""

    def run(frame: Frame) -> Any:
        bindings = frame[0]
        if text in bindings:
            return _viewed(bindings[text], null, fragment)
        if text in TYPES:
            return TYPES[text]
        raise Failure(f"undeclared name {text!r}", fragment, text, chain(bindings, LITERALS))

    return run


def variable(slot: int) -> Code:
    """Return code for a macro variable."""
    return lambda frame: frame[slot]


def _viewed(value: Any, null: Null, fragment: Fragment) -> Any:
    try:
        return view(value, null)
    except OverflowError as error:
        raise Failure(str(error), fragment) from None


def field(container: Code, name: str, fragment: Fragment) -> Code:
    """Return code for `container.name`; only maps have fields."""

    def run(frame: Frame) -> Any:
        value = container(frame)
        if not isinstance(value, MapType):
            raise Failure(f"no field {name!r} in a value of type {type_of(value)}", fragment)
        try:
            return value[name]
        except KeyError:
            raise Failure(f"no such key: {name!r}", fragment, name, value.keys()) from None
        except OverflowError as error:
            raise Failure(str(error), fragment) from None

    return run


def element(container: Code, key: Code, fragment: Fragment) -> Code:
    """Return code for `container[key]`. A negative index counts from the end, as in cel-python."""

    def run(frame: Frame) -> Any:
        value, index = container(frame), key(frame)
        if not isinstance(value, (dict, list, str, bytes)):
            raise Failure(f"a value of type {type_of(value)} has no elements", fragment)
        try:
            return value[index]
        except KeyError:
            raise Failure(f"no such key: {to_python(index)!r}", fragment, index, value) from None
        except IndexError:
            raise Failure(f"index {to_python(index)} is out of range (size {len(value)})", fragment) from None
        except TypeError:
            raise Failure(f"no such overload: {type_of(value)}[{type_of(index)}]", fragment) from None
        except OverflowError as error:
            raise Failure(str(error), fragment) from None

    return run
