"""CEL, the Common Expression Language, as used by the sherma dialect and by scenario files.

    compile("size(state.messages) > 3").evaluate({"state": state})

Built on cel-python, with the additional functions of the sherma specification (`harness.expressions.functions`).
Bindings and results are Python values. Bindings are converted lazily: only what an expression reads is converted.
Importing this module is cheap; the first `compile` imports cel-python.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from harness.errors import ExpressionError

if TYPE_CHECKING:
    from harness.expressions.lowering import Program


class Expression:
    """A compiled expression. It is stateless, so it can be shared between evaluations that overlap.

    Attributes:
        source: the text of the expression.
        names: its free identifiers.
        reads: the (name, field) pairs that it reads by a literal field name, such as ("state", "count").
        reference: the path, if the expression is a path and nothing else: ("state", "x") for `state.x` and
            `state["x"]`; otherwise None.
    """

    __slots__ = ("_program", "names", "reads", "reference", "source")

    def __init__(self, source: str, program: Program) -> None:
        self.source = source
        self._program = program
        self.names = frozenset(program.names)
        self.reads = program.reads
        self.reference = program.reference

    def __repr__(self) -> str:
        return f"Expression({self.source!r})"

    def check_names(self, variables: Collection[str]) -> None:
        """Check that all functions exist and that every free name is one of `variables`.

        Raises:
            ExpressionError: for the first that does not exist. Its message suggests the nearest name; `line` and
                `column` locate it.
        """
        for missing in self._program.undefined(variables):
            raise missing.error()

    def evaluate(self, bindings: Mapping[str, Any]) -> Any:
        """Return the value of the expression: None, bool, int, float, str, bytes, list or dict.

        Bound values may be plain data, messages, pydantic models, dataclasses, or any object, mapping or
        sequence. Lists and dicts in the result are new objects.

        Raises:
            ExpressionError: the expression has no value, for example because a key is missing. The message
                names the part that failed.
        """
        return self._program.run(bindings)


def written_keys(source: str) -> frozenset[str]:
    """Return the literal string keys of an expression that is a map, or a `?:` between maps.

    Raises:
        ExpressionError: `source` is not a valid expression.
    """
    from harness.expressions.lowering import written_keys

    return written_keys(source)


@lru_cache(maxsize=4096)
def compile(source: str, *, null_as_false: bool = False) -> Expression:
    """Compile an expression. Results are cached.

    Args:
        source: the text, at most 100,000 characters and 100 levels deep.
        null_as_false: read every null stored in the bindings, at any depth, as `false` (sherma). Nulls written
            in the expression, or in text that it parses with `json`, stay null.

    Raises:
        ExpressionError: `source` is not a valid expression; `line` and `column` locate the error.
    """
    from harness.expressions.lowering import lower
    from harness.expressions.values import FALSE

    try:
        return Expression(source, lower(source, FALSE if null_as_false else None))
    except RecursionError:
        raise ExpressionError("the expression is nested too deeply", source=source) from None


ITEM: Final = "*"
"""The step of a path that stands for each item of a list."""

Path = tuple[str, ...]
