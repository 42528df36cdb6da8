"""Nodes that ask the user. spec: "approval", "input". A question without an answer pauses the run."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Final

from harness.dialects.loki.document import ApprovalNode, InputNode
from harness.dialects.loki.routing import ON_OTHER, Answered, leaving
from harness.dialects.loki.state import updated
from harness.dialects.loki.templates import render, render_leniently
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.model import State, Update
from harness.graph.to_json import as_text

_OPERATORS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
}
_PREDICATE: Final = re.compile(r"len\(input\)\s*(>=|<=|==|>|<)\s*(\d+)", re.ASCII)

PREDICATE_FORM: Final = f"len(input) <op> <integer>, where <op> is one of {' '.join(_OPERATORS)}"
"""spec: "validation"."""


class InvalidInput(HarnessError):
    """An answer that `validation` refuses, or a `validation` that cannot be read."""

    code = "invalid-input"


async def approval(node: ApprovalNode, state: State, ctx: NodeContext) -> Update:
    """Ask, and take the route of exactly this answer, or `on_other`."""
    question = render(node.question, state)
    choice = as_text(await ctx.pause({"question": question, "options": node.options}))
    return leaving(updated(state, node, choice), Answered(choice) if choice in node.routes else ON_OTHER)


async def ask_input(node: InputNode, state: State, ctx: NodeContext) -> Update:
    """Ask for text. An empty answer takes the default, which is not validated.

    Raises:
        InvalidInput: the answer is not valid.
    """
    answer = as_text(await ctx.pause({"question": render(node.question, state)}))
    if not answer and node.default is not None:
        answer = render_leniently(node.default, state)
    elif node.validation is not None:
        _check(answer, node.validation)
    return leaving(updated(state, node, answer))


def is_predicate(validation: str) -> bool:
    """True if it is of the form that a validation must have."""
    return _PREDICATE.fullmatch(validation.strip()) is not None


def _check(answer: str, validation: str) -> None:
    """spec: "validation". `len` counts the bytes of UTF-8."""
    found = _PREDICATE.fullmatch(validation.strip())
    if found is None:
        raise InvalidInput(f"the validation `{validation}` cannot be read: expected {PREDICATE_FORM}")
    length = len(answer.encode("utf-8", "surrogatepass"))
    if not _OPERATORS[found[1]](length, int(found[2])):
        raise InvalidInput(f"the answer does not fit the validation `{validation}`: its length is {length}")
