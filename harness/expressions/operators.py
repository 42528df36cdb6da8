"""Operators: their results, and the failed operands that they absorb.

An operation on values is cel-python's (its types carry CEL's overload rules); here it gets a failure that
names the fragment. `||` and `&&` are the exception: they decide although one side failed. So are comparisons in
scenario files: by the CEL specification nulls, and numbers of different types, can be compared.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from celpy.celtypes import (
    BoolType,
    DoubleType,
    IntType,
    ListType,
    UintType,
    logical_and,
    logical_not,
    logical_or,
)

from harness.expressions.failure import Failure, Fragment
from harness.expressions.limits import check_length
from harness.expressions.values import FALSE, TRUE, Null, integer, type_of

# The state of an evaluation: the bindings, then the variables of the enclosing macros.
Frame = list[Any]
Code = Callable[[Frame], Any]
Operation = Callable[[Any, Any], Any]

_NUMBERS = (IntType, UintType, DoubleType)
_NOT_NUMERIC = (str, bytes, list, dict)
_SIZED = (str, bytes, list)


def operation(symbol: str, null: Null) -> Operation:
    """The operation of a binary operator on two values (all but `||` and `&&`). It raises Python's errors.

    Where nulls are real (`null` is None), comparing anything with null, and numbers of different types with each
    other, is an answer and not an error: CEL's rules, which cel-python does not keep.
    """
    compared = _EQUALITY.get(symbol)
    if null is None and symbol in _ACROSS_TYPES:
        return _with_nulls(_ACROSS_TYPES[symbol]) if compared else _ACROSS_TYPES[symbol]
    return compared or _OPERATIONS[symbol]


def _truth(compare: Operation) -> Operation:
    return lambda left, right: TRUE if compare(left, right) else FALSE


def _with_nulls(compare: Operation) -> Operation:
    def compared(left: Any, right: Any) -> Any:
        if left is None or right is None:
            return TRUE if operator.is_(left, right) is (compare is _ACROSS_TYPES["=="]) else FALSE
        return compare(left, right)

    return compared


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, _SIZED) and isinstance(right, _SIZED):
        check_length(len(left) + len(right), type(left))
    if isinstance(left, list) and isinstance(right, list):
        return ListType((*left, *right))
    return operator.add(left, right)


def _numeric(compute: Operation) -> Operation:
    """Keeps Python's readings of `"%d" % 1` and `"a" * true` out."""

    def computed(left: Any, right: Any) -> Any:
        if isinstance(left, _NOT_NUMERIC) or isinstance(right, _NOT_NUMERIC):
            raise TypeError("not numbers")
        return compute(left, right)

    return computed


def _integers_first(exact: Callable[[int, int], int], compute: Operation) -> Operation:
    """A fast path for two ints: cel-python's has several conversions (5 µs)."""

    def computed(left: Any, right: Any) -> Any:
        if type(left) is IntType is type(right):
            return integer(exact(left, right))
        return compute(left, right)

    return computed


def _membership(equal: Operation) -> Operation:
    def is_in(item: Any, container: Any) -> Any:
        if isinstance(container, dict) and isinstance(item, str) and item in container:
            return TRUE
        if not isinstance(container, (list, dict, str)):
            raise TypeError("not a container")
        mismatch: TypeError | None = None
        for element in container:
            try:
                if equal(element, item):
                    return TRUE
            except TypeError as error:
                mismatch = error
        if mismatch is not None:
            raise mismatch
        return FALSE

    return is_in


def _across_numbers(compare: Operation) -> Operation:
    """The order of two numbers, whatever their types; of other values that of their type."""

    def compared(left: Any, right: Any) -> Any:
        if type(left) is not type(right) and isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
            return TRUE if compare(_exact(left), _exact(right)) else FALSE
        return TRUE if compare(left, right) else FALSE

    return compared


def _exact(number: Any) -> int | float:
    """The number as Python's, which compares integers and floats by their value."""
    return float(number) if isinstance(number, DoubleType) else int(number)


def _equal(left: Any, right: Any) -> bool:
    """Equality in which numbers of different types are equal by value, also inside lists and maps."""
    if type(left) is not type(right) and isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
        return _exact(left) == _exact(right)
    try:
        return bool(left == right)
    except TypeError:
        if isinstance(left, list) and isinstance(right, list):
            return len(left) == len(right) and all(map(_equal, left, right))
        if isinstance(left, dict) and isinstance(right, dict):
            return len(left) == len(right) and all(
                key in right and _equal(item, right[key]) for key, item in left.items()
            )
        raise


_EQUALITY: dict[str, Operation] = {"==": _truth(operator.eq), "!=": _truth(operator.ne)}
_OPERATIONS: dict[str, Operation] = {
    "<": _truth(operator.lt),
    "<=": _truth(operator.le),
    ">": _truth(operator.gt),
    ">=": _truth(operator.ge),
    "in": _membership(operator.eq),
    "+": _integers_first(int.__add__, _add),
    "-": _integers_first(int.__sub__, _numeric(operator.sub)),
    "*": _integers_first(int.__mul__, _numeric(operator.mul)),
    "/": _numeric(operator.truediv),
    "%": _numeric(operator.mod),
}
_ACROSS_TYPES: dict[str, Operation] = {
    "==": _truth(_equal),
    "!=": _truth(lambda left, right: not _equal(left, right)),
    "<": _across_numbers(operator.lt),
    "<=": _across_numbers(operator.le),
    ">": _across_numbers(operator.gt),
    ">=": _across_numbers(operator.ge),
    "in": _membership(_equal),
}


def chain(first: Code, steps: Sequence[tuple[str, Code, Fragment]], null: Null) -> Code:
    """`first + a + b …`, from the left."""
    links = [(symbol, operation(symbol, null), right, fragment) for symbol, right, fragment in steps]

    def run(frame: Frame) -> Any:
        value = first(frame)
        for symbol, compute, right, fragment in links:
            operand = right(frame)
            try:
                value = compute(value, operand)
            except (TypeError, ValueError, ArithmeticError) as error:
                raise Failure(_reason(symbol, error, value, operand), fragment) from None
        return value

    return run


def unary(symbol: str, operand: Code, fragment: Fragment) -> Code:
    """`!operand` or `-operand`."""
    compute: Callable[[Any], Any] = logical_not if symbol == "!" else operator.neg

    def run(frame: Frame) -> Any:
        value = operand(frame)
        try:
            return compute(value)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise Failure(_reason(symbol, error, value), fragment) from None

    return run


def _reason(symbol: str, error: Exception, *operands: Any) -> str:
    if isinstance(error, ZeroDivisionError):
        return "division by zero"
    if isinstance(error, TypeError):
        return f"no such overload: {symbol} of {' and '.join(map(type_of, operands))}"
    return "integer overflow" if symbol in "+-*/%" else str(error)


def choice(condition: Code, first: Code, second: Code, fragment: Fragment) -> Code:
    """`condition ? first : second`; only the chosen one is evaluated."""

    def run(frame: Frame) -> Any:
        decided = condition(frame)
        if isinstance(decided, BoolType):
            return first(frame) if decided else second(frame)
        raise Failure(f"the condition of ?: has type {type_of(decided)}, not bool", fragment)

    return run


def attempt(code: Code, frame: Frame) -> Any:
    """The value, or the Failure instead of it."""
    try:
        return code(frame)
    except Failure as failure:
        return failure


def either(operands: list[Code], fragment: Fragment) -> Code:
    """`a || b || …`: true as soon as one is true, even if others fail."""
    return _decided("||", operands, fragment)


def both(operands: list[Code], fragment: Fragment) -> Code:
    """`a && b && …`: false as soon as one is false, even if others fail."""
    return _decided("&&", operands, fragment)


def _decided(symbol: str, operands: list[Code], fragment: Fragment) -> Code:
    def run(frame: Frame) -> Any:
        return reduce_logic(symbol, (attempt(operand, frame) for operand in operands), fragment)

    return run


def reduce_logic(symbol: str, values: Any, fragment: Fragment) -> Any:
    """Folds values and Failures with `||` or `&&`, reading no further than the deciding one.

    Raises:
        Failure: undecided, and one of the values failed or two are no booleans.
    """
    deciding, combine = (TRUE, logical_or) if symbol == "||" else (FALSE, logical_and)
    result: Any = FALSE if symbol == "||" else TRUE
    for value in values:
        if isinstance(value, BoolType) and value == deciding:
            return deciding
        try:
            result = combine(result, value)
        except TypeError:
            # Two undecided sides: cel-python's rule is an error, and the first failure explains it best.
            if not isinstance(result, Failure):
                mismatch = f"no such overload: {symbol} of {type_of(result)} and {type_of(value)}"
                result = value if isinstance(value, Failure) else Failure(mismatch, fragment)
    if isinstance(result, Failure):
        raise result
    return result
