"""Static analysis of expressions: the names that an expression looks up, and if it can be false at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from lark import Token

from harness.errors import ExpressionError
from harness.expressions import operators as literals
from harness.expressions.cel import ITEM, Path
from harness.expressions.macros import MACROS
from harness.expressions.syntax import SYMBOLS, Node, child, core, operands, parse, token
from harness.units import is_number

_AMOUNTS: Final = (
    ("latency", "total"),
    *(("usage", key) for key in ("llm_calls", "input_tokens", "output_tokens", "cost")),
)


class NameLookup(NamedTuple):
    """A name that an expression looks up: a key or item of the value at `path`, or (`is_value`) that value itself.

    `calls.exists(c, c.name == "x")` looks for the value "x" at ("calls", "*", "name").
    """

    path: Path
    name: str
    is_value: bool


def looked_up_names(source: str) -> list[NameLookup]:
    """Return the names that an expression looks up, without duplicates.

    Raises:
        ExpressionError: `source` is not a valid expression.
    """
    return list(dict.fromkeys(_lookups(parse(source), {})))


@lru_cache(maxsize=1024)
def always_true_reason(source: str) -> str:
    """Return the reason why an expression is true of every run; empty if its form allows it to be false.

    Raises:
        ExpressionError: `source` is not a valid expression.
    """
    from harness.expressions.cel import compile as compile_cel

    expression = compile_cel(source)
    if not expression.names:
        try:
            return "reads nothing of the run" if expression.evaluate({}) is True else ""
        except ExpressionError:
            return ""
    return "holds for every run" if _is_always_true(parse(source)) else ""


def _is_always_true(node: Node) -> bool:
    node = core(node)
    if node.data in ("conditionalor", "conditionaland"):
        parts = [_is_always_true(child(node, 0)), _is_always_true(child(node, 1))]
        return any(parts) if node.data == "conditionalor" else all(parts)
    return _is_tautology(node) if node.data == "relation" else _literal(node) == "true"


def _is_tautology(node: Node) -> bool:
    """True if a comparison compares a value with itself, or requires of an amount only that it is not negative."""
    sign, left, right = _relation(node)
    if sign in ("==", "<=", ">=") and left == right:
        return True
    amount, bound = (left, right) if sign.startswith(">") else (right, left)
    least = _number(bound) if sign[0] in "<>" and _is_amount(amount) else None
    return least is not None and (least < 0 or (least == 0 and sign.endswith("=")))


def _is_amount(node: Node) -> bool:
    """True for sizes, latency and usage: values that every run has and that are never negative."""
    node = core(node)
    if node.data in ("ident_arg", "dot_ident_arg", "member_dot_arg"):
        return token(node, 1 if node.data == "member_dot_arg" else 0) == "size"
    return _path(node, {}) in _AMOUNTS


@lru_cache(maxsize=1024)
def universal_ranges(source: str) -> tuple[str, ...]:
    """Return the lists of which an expression requires something of all items: `calls` in `calls.all(c, c.ok)`.

    Raises:
        ExpressionError: `source` is not a valid expression.
    """
    return tuple(source[node.meta.start_pos : node.meta.end_pos] for node in _universal(parse(source)))


def _universal(node: Node) -> Iterator[Node]:
    node = core(node)
    if node.data == "conditionaland":
        yield from _universal(child(node, 0))
        yield from _universal(child(node, 1))
    elif node.data == "member_dot_arg" and token(node, 1) == "all":
        yield child(node, 0)


# ---------------------------------------------------------------- walking


def _lookups(node: Node, scope: Mapping[str, Path | None]) -> Iterator[NameLookup]:
    node = core(node)
    inner = scope
    if node.data in ("member_dot", "member_index"):
        path = _path(node, scope)
        if path is not None and len(path) > 1:
            yield NameLookup(path[:-1], path[-1], False)
    elif node.data == "relation":
        yield from _relation_lookups(node, scope)
    elif node.data == "member_dot_arg" and token(node, 1) in MACROS and (given := operands(node, 2)):
        base, variable = _path(child(node, 0), scope), core(given[0])
        if variable.data == "ident":
            inner = {**scope, token(variable, 0): (*base, ITEM) if base is not None else None}
    for below in _children(node):
        yield from _lookups(below, inner)


def _relation_lookups(node: Node, scope: Mapping[str, Path | None]) -> Iterator[NameLookup]:
    sign, left, right = _relation(node)
    if sign == "in":
        name, path = _text(left), _path(right, scope)
        if name is not None and path is not None:
            yield NameLookup(path, name, False)
        items = core(right)
        path = _path(left, scope)
        if path is not None and items.data == "list_lit":
            names = (_text(item) for item in operands(items, 0))
            yield from (NameLookup(path, name, True) for name in names if name is not None)
    elif sign in ("==", "!="):
        for one, other in ((left, right), (right, left)):
            name, path = _text(one), _path(other, scope)
            if name is not None and path is not None:
                yield NameLookup(path, name, True)


def _path(node: Node, scope: Mapping[str, Path | None]) -> Path | None:
    """Return the names and string keys that lead to a value, through `filter` too; None if the node is not a path."""
    node = core(node)
    if node.data == "ident":
        name = token(node, 0)
        return scope.get(name, (name,))
    if node.data in ("member_dot", "member_index"):
        base = _path(child(node, 0), scope)
        step = token(node, 1) if node.data == "member_dot" else _text(child(node, 1))
        return None if base is None or step is None else (*base, step)
    if node.data == "member_dot_arg" and token(node, 1) == "filter":
        return _path(child(node, 0), scope)
    return None


def _relation(node: Node) -> tuple[str, Node, Node]:
    sign = child(node, 0)
    return SYMBOLS[sign.data], core(child(sign, 0)), core(child(node, 1))


def _children(node: Node) -> Iterator[Node]:
    return (each for each in node.children if not isinstance(each, Token))


def _literal(node: Node) -> str:
    """Return the source of a literal; empty if the node is not a literal."""
    node = core(node)
    return token(node, 0) if node.data == "literal" else ""


def _text(node: Node) -> str | None:
    value = _constant(node)
    return value if isinstance(value, str) else None


def _number(node: Node) -> float | None:
    node = core(node)
    if node.data == "unary" and SYMBOLS[child(node, 0).data] == "-":
        value = _number(child(node, 1))
        return None if value is None else -value
    literal = _constant(node)
    return float(literal) if is_number(literal) else None


def _constant(node: Node) -> object:
    node = core(node)
    if node.data != "literal" or not isinstance(node.children[0], Token):
        return None
    try:
        return literals.constant(node.children[0])
    except (ValueError, TypeError, OverflowError):
        return None
