"""Walking cel-python's parse trees: ten grammar levels stand between an expression and a name."""

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
"""Grammar levels that mean nothing when they have one child."""


def core(node: Node) -> Node:
    """The node below grammar levels with one child, which have no meaning."""
    while node.data in _LEVELS and len(node.children) == 1:
        node = child(node, 0)
    return node


def child(node: Node, index: int) -> Node:
    """The child at an index, which is no token."""
    found = node.children[index]
    assert not isinstance(found, Token)
    return found


def token(node: Node, index: int) -> str:
    """The text of the token at an index."""
    return str(node.children[index])


def operands(node: Node, index: int) -> list[Node]:
    """The expressions of a call's argument list, which is absent when empty."""
    if len(node.children) <= index:
        return []
    return [found for found in child(node, index).children if not isinstance(found, Token)]
