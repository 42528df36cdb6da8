"""Helpers to walk cel-python's parse trees, which have ten grammar levels between an expression and a name."""

from __future__ import annotations

from typing import Final

from lark import Token

from harness.expressions.syntax import Node

SYMBOLS: Final = {
    "relation_lt": "<",
    "relation_le": "<=",
    "relation_gt": ">",
    "relation_ge": ">=",
    "relation_eq": "==",
    "relation_ne": "!=",
    "relation_in": "in",
    "addition_add": "+",
    "addition_sub": "-",
    "multiplication_mul": "*",
    "multiplication_div": "/",
    "multiplication_mod": "%",
    "unary_not": "!",
    "unary_neg": "-",
}
_LEVELS: Final = frozenset(
    {
        *("expr", "conditionalor", "conditionaland", "relation", "addition", "multiplication", "unary"),
        *("member", "primary", "paren_expr"),
    }
)
"""Grammar levels that have no meaning if they have only one child."""


def core(node: Node) -> Node:
    """Return the first node at or below `node` that is not a grammar level with only one child."""
    while node.data in _LEVELS and len(node.children) == 1:
        node = child(node, 0)
    return node


def child(node: Node, index: int) -> Node:
    """Return the child at an index, which must be a node and not a token."""
    found = node.children[index]
    assert not isinstance(found, Token)
    return found


def token(node: Node, index: int) -> str:
    """Return the text of the token at an index."""
    return str(node.children[index])


def operands(node: Node, index: int) -> list[Node]:
    """Return the expressions of the argument list at an index; an empty list is absent from the tree."""
    if len(node.children) <= index:
        return []
    return [found for found in child(node, index).children if not isinstance(found, Token)]
