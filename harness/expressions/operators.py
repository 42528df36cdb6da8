"""Compilation of operators.

The operations themselves are cel-python's (its types carry CEL's overload rules); this module adds failures that name
the fragment. `||` and `&&` differ: one side can decide although the other side failed. So do comparisons in scenario
files: by the CEL specification, nulls and numbers of different types can be compared.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from celpy.celtypes import (
    BoolType,
    DoubleType,
    IntType,
    ListType,
    MapType,
    UintType,
    logical_and,
    logical_not,
    logical_or,
)
from celpy.evaluation import celbytes, celstr
from lark import Token

from harness.expressions.functions import check_length
from harness.expressions.values import (
    FALSE,
    LITERALS,
    TRUE,
    TYPES,
    Failure,
    Fragment,
    Null,
    concatenated,
    integer,
    to_python,
    type_of,
    view,
)

Frame = list[Any]
"""The state of an evaluation: the bindings, the slots of macro variables, and last the budget."""
Code = Callable[[Frame], Any]
Operation = Callable[[Any, Any], Any]

_NUMBERS = (IntType, UintType, DoubleType)
_NOT_NUMERIC = (str, bytes, list, dict)
_SIZED = (str, bytes, list)


def operation(symbol: str, null: Null) -> Operation:
    """Return the function of a binary operator (all but `||` and `&&`) on two values. It raises Python's exceptions.

    If nulls are real (`null` is None), comparing a value with null, or numbers of different types, gives a result
    and not an error. These are CEL's rules, which cel-python does not follow.
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
        return concatenated(left, right)
    return operator.add(left, right)


def _numeric(compute: Operation) -> Operation:
    """Reject operands that are not numbers, since Python would accept `"%d" % 1` and `"a" * true`."""

    def computed(left: Any, right: Any) -> Any:
        if isinstance(left, _NOT_NUMERIC) or isinstance(right, _NOT_NUMERIC):
            raise TypeError("not numbers")
        return compute(left, right)

    return computed


def _integers_first(exact: Callable[[int, int], int], compute: Operation) -> Operation:
    """Add a fast path for two ints, for which cel-python makes several conversions (5 µs)."""

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
    """Compare two numbers by value, whatever their types; compare other values as their type does."""

    def compared(left: Any, right: Any) -> Any:
        if type(left) is not type(right) and isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
            return TRUE if compare(_exact(left), _exact(right)) else FALSE
        return TRUE if compare(left, right) else FALSE

    return compared


def _exact(number: Any) -> int | float:
    """Return the number as a Python number; Python compares ints and floats exactly."""
    return float(number) if isinstance(number, DoubleType) else int(number)


def _equal(left: Any, right: Any) -> bool:
    """Compare two values; numbers of different types are equal by value, also inside lists and maps."""
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
    """Return code for `first + a + b …`, evaluated from the left."""
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
    """Return code for `!operand` or `-operand`."""
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
    """Return code for `condition ? first : second`. Only the chosen branch is evaluated."""

    def run(frame: Frame) -> Any:
        decided = condition(frame)
        if isinstance(decided, BoolType):
            return first(frame) if decided else second(frame)
        raise Failure(f"the condition of ?: has type {type_of(decided)}, not bool", fragment)

    return run


def attempt(code: Code, frame: Frame) -> Any:
    """Return the value, or the Failure that was raised."""
    try:
        return code(frame)
    except Failure as failure:
        return failure


def logic(symbol: str, operands: list[Code], fragment: Fragment) -> Code:
    """Return code for `a || b || …` or `a && b && …`, which one operand may decide even if others fail."""
    return lambda frame: reduce_logic(symbol, (attempt(operand, frame) for operand in operands), fragment)


def reduce_logic(symbol: str, values: Any, fragment: Fragment) -> Any:
    """Combine values and Failures with `||` or `&&`; stop at the first value that decides the result.

    Raises:
        Failure: no value decides, and one is a Failure or two are not booleans.
    """
    deciding, combine = (TRUE, logical_or) if symbol == "||" else (FALSE, logical_and)
    result: Any = FALSE if symbol == "||" else TRUE
    for value in values:
        if isinstance(value, BoolType) and value == deciding:
            return deciding
        try:
            result = combine(result, value)
        except TypeError:
            # Neither side decides. cel-python raises here; the first failure is the most useful explanation.
            if not isinstance(result, Failure):
                mismatch = f"no such overload: {symbol} of {type_of(result)} and {type_of(value)}"
                result = value if isinstance(value, Failure) else Failure(mismatch, fragment)
    if isinstance(result, Failure):
        raise result
    return result


def name(text: str, fragment: Fragment, null: Null) -> Code:
    """Return code for a bound name, or the name of a type."""

    def run(frame: Frame) -> Any:
        bindings = frame[0]
        if text in bindings:
            return _viewed(bindings[text], null, fragment)
        if text in TYPES:
            return TYPES[text]
        raise Failure(f"undeclared name {text!r}", fragment, text, itertools.chain(bindings, LITERALS))

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
