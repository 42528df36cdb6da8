"""Compilation of literals: constants, and lists and maps of expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from celpy.celtypes import DoubleType, ListType, MapType, UintType
from celpy.evaluation import celbytes, celstr
from lark import Token

from harness.expressions.failure import Failure, Fragment
from harness.expressions.operators import Code, Frame
from harness.expressions.values import FALSE, TRUE, integer, to_python, type_of

_LITERALS: dict[str, Callable[[Token], Any]] = {
    "INT_LIT": lambda token: integer(int(token, 16 if "x" in token else 10)),
    "UINT_LIT": lambda token: UintType(token[:-1]),
    "FLOAT_LIT": DoubleType,
    "STRING_LIT": lambda token: str(celstr(token)),
    "MLSTRING_LIT": lambda token: str(celstr(token)),
    "BYTES_LIT": celbytes,
    "BOOL_LIT": lambda token: TRUE if token == "true" else FALSE,
}


def constant(token: Token) -> Any:
    """Return the CEL value of a literal.

    Raises:
        ValueError, TypeError, OverflowError: the literal has no value, for example an integer of more than 64 bits.
    """
    return None if token.type == "NULL_LIT" else _LITERALS[token.type](token)


def always(value: Any) -> Code:
    """Return code that evaluates to a constant."""
    return lambda _frame: value


def list_of(items: Sequence[Code]) -> Code:
    """Return code for `[a, b, …]`."""
    return lambda frame: ListType([item(frame) for item in items])


def map_of(entries: Sequence[tuple[Code, Code]], fragment: Fragment) -> Code:
    """Return code for `{a: b, …}`. A duplicate key is an error."""

    def run(frame: Frame) -> Any:
        made = MapType()
        for key_code, value_code in entries:
            key = key_code(frame)
            try:
                repeated = key in made
            except TypeError:
                raise Failure(f"a value of type {type_of(key)} cannot be a key", fragment) from None
            if repeated:
                raise Failure(f"duplicate key {to_python(key)!r}", fragment)
            made[key] = value_code(frame)
        return made

    return run
