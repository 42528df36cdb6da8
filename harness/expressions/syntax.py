"""Parses the text of an expression into cel-python's parse tree.

cel-python builds its parser once per process, at first use, which takes 0.15 s. Its tables are therefore cached
beside the bytecode of this module, if Python may write there. Text with an unclosed string is refused before it is
parsed: the pattern of cel-python for strings backtracks exponentially on it.
"""

from __future__ import annotations

import re
import sys
from functools import partial
from importlib.util import cache_from_source
from typing import Final, NoReturn

from celpy import celparser
from celpy.celparser import CELParseError, CELParser
from lark import Lark, Token, Tree

from harness.errors import ExpressionError

Node = Tree[Token]

LONGEST = 100_000
DEEPEST = 100

_LEXEME = re.compile(
    r"""
    (?P<comment> //[^\n]* )
  | (?P<string>  \"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3}
               | \"(?!\"\")(?:\\[^\n]|[^"\\\n])*\" | '(?!'')(?:\\[^\n]|[^'\\\n])*' )
  | (?P<quote>   ["'] )
  | (?P<open>    [(\[{] )
  | (?P<close>   [)\]}] )
    """,
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"\w+|\S")
_ADVICE = {
    "=": "equality is ==",
    "and": "and is &&",
    "or": "or is ||",
    "not": "not is !",
    "is": "equality is ==",
    "&": "and is &&",
    "|": "or is ||",
}


if not sys.dont_write_bytecode:
    # CELParser calls Lark without `cache`. Lark rebuilds the file if the grammar, its options or a version changes.
    setattr(celparser, "Lark", partial(Lark, cache=f"{cache_from_source(__file__)}.cel"))  # noqa: B010


def parse(source: str) -> Node:
    """Return the parse tree of an expression, with positions.

    Raises:
        ExpressionError: `source` is not a valid expression, is longer than 100,000 characters, or nests brackets
            more than 100 deep.
    """
    if len(source) > LONGEST:
        raise ExpressionError(
            f"the expression is too long ({len(source)} characters; {LONGEST} are the most)", source=source
        )
    _check_quotes_and_brackets(source)
    try:
        return CELParser().parse(source)
    except CELParseError as error:
        _refuse(source, error)


def _check_quotes_and_brackets(source: str) -> None:
    depth = 0
    for lexeme in _LEXEME.finditer(source):
        if lexeme.lastgroup == "quote":
            raise _error("a string is not closed", source, lexeme.start())
        if lexeme.lastgroup == "close":
            depth -= 1
        elif lexeme.lastgroup == "open":
            depth += 1
            if depth > DEEPEST:
                raise _error("the expression is nested too deeply", source, lexeme.start())


def _refuse(source: str, error: CELParseError) -> NoReturn:
    ended = getattr(getattr(error.__context__, "token", None), "type", "") == "$END"
    if ended or error.line is None or error.column is None or not source.strip():
        problem = "the expression ends too early" if source.strip() else "the expression is empty"
        raise _error(problem, source, len(source)) from None
    lines = source.split("\n")
    offset = sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1
    word = _WORD.match(source, offset)
    found = word.group() if word else source[offset : offset + 1]
    advice = f" ({_ADVICE[found]})" if found in _ADVICE else ""
    raise _error(f"unexpected {found!r}{advice}", source, offset) from None


def _error(problem: str, source: str, offset: int) -> ExpressionError:
    line = source.count("\n", 0, offset) + 1
    column = offset - (source.rfind("\n", 0, offset) + 1) + 1
    return ExpressionError(
        f"{problem} (line {line}, column {column})", source=source, line=line, column=column
    )


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
