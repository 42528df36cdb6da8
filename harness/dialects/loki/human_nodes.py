"""Approval and input nodes, which ask the user. A question without an answer pauses the run.

spec: "approval", "input".
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Final

from harness.dialects.loki.document import ApprovalNode, InputNode
from harness.dialects.loki.json_text import text_of
from harness.dialects.loki.routing import ON_OTHER, AnswerExit, exit_update
from harness.dialects.loki.state import apply_state_updates
from harness.dialects.loki.templates import render, render_leniently
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.model import State, Update

_OPERATORS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
}
_PREDICATE: Final = re.compile(r"len\(input\)\s*(>=|<=|==|>|<)\s*(\d{1,1000})", re.ASCII)

PREDICATE_FORM: Final = f"len(input) <op> <integer>, where <op> is one of {' '.join(_OPERATORS)}"
"""The grammar of a `validation`, for messages. spec: "validation"."""


class InvalidInput(HarnessError):
    """An answer that does not satisfy `validation`, or a `validation` that cannot be parsed."""

    code = "invalid-input"


async def ask_approval(node: ApprovalNode, state: State, ctx: NodeContext) -> Update:
    """Ask the question, and take the route whose key equals the answer, else `on_other`."""
    question = render(node.question, state)
    choice = text_of(await ctx.pause({"question": question, "options": node.options}))
    return exit_update(
        apply_state_updates(state, node, choice), AnswerExit(choice) if choice in node.routes else ON_OTHER
    )


async def ask_input(node: InputNode, state: State, ctx: NodeContext) -> Update:
    """Ask the question. An empty answer is replaced by the default, which is not validated.

    Raises:
        InvalidInput: the answer does not satisfy `validation`, or that cannot be parsed.
    """
    answer = text_of(await ctx.pause({"question": render(node.question, state)}))
    if not answer and node.default is not None:
        answer = render_leniently(node.default, state)
    elif node.validation is not None and not satisfies(answer, node.validation):
        text = f"the answer does not fit the validation `{node.validation}`: its length is {_length(answer)}"
        raise InvalidInput(text)
    return exit_update(apply_state_updates(state, node, answer))


def is_predicate(validation: str) -> bool:
    """True if a validation can be parsed."""
    return _PREDICATE.fullmatch(validation.strip()) is not None


def satisfies(answer: str, validation: str) -> bool:
    """True if an answer satisfies a validation. spec: "validation". `len` counts bytes of UTF-8.

    Raises:
        InvalidInput: the validation cannot be parsed.
    """
    found = _PREDICATE.fullmatch(validation.strip())
    if found is None:
        raise InvalidInput(f"the validation `{validation}` cannot be read: expected {PREDICATE_FORM}")
    return _OPERATORS[found[1]](_length(answer), int(found[2]))


def _length(answer: str) -> int:
    return len(answer.encode("utf-8", "surrogatepass"))
