"""CEL, the Common Expression Language: the engine of the sherma dialect and of scenario files.

    compile("size(state.messages) > 3").evaluate({"state": state})

On top of cel-python, with the functions of the sherma document (`harness.expressions.functions`). Python
values go in and come out; what an expression does not read is not touched. Importing this module is
cheap: cel-python is loaded by the first `compile`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from harness.errors import ExpressionError

if TYPE_CHECKING:
    from harness.expressions.lowering import Program


class Expression:
    """A compiled expression. It keeps nothing of an evaluation, so it may be shared and re-entered.

    `source` is its text. `names` are its free identifiers. `reads` are the (name, field) pairs it reads
    outright, such as ("state", "count"). `reference` is the path of an expression that is one and nothing
    else: ("state", "x") for `state.x` and `state["x"]`, None otherwise.
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
        """Refuse what no evaluation can find: a function that does not exist, or a name that is none of these.

        Raises:
            ExpressionError: for the first; its message has the nearest name, `line` and `column` say where.
        """
        for missing in self._program.undefined(variables):
            raise missing.error()

    def evaluate(self, bindings: Mapping[str, Any]) -> Any:
        """The value with these names bound: None, bool, int, float, str, bytes, list or dict.

        Bound values may be plain data, messages, pydantic models, dataclasses, or any object, mapping or
        sequence. Lists and maps of the result are new.

        Raises:
            ExpressionError: there is no value, such as for a missing key; its message names what failed.
        """
        return self._program.run(bindings)


def written_keys(source: str) -> frozenset[str]:
    """The keys written out in an expression that is a map, or a choice between maps.

    Raises:
        ExpressionError: the text is not an expression.
    """
    from harness.expressions.lowering import written_keys

    return written_keys(source)


@lru_cache(maxsize=4096)
def compile(source: str, *, null_as_false: bool = False) -> Expression:
    """The expression of a text; compiled once while it is in use.

    Args:
        source: the text, at most 100,000 characters and 100 levels deep.
        null_as_false: read a null that is stored in the bindings, at any depth, as `false` (sherma). Nulls
            written in the expression, or in text it parses with `json`, are null all the same.

    Raises:
        ExpressionError: the text is not an expression; `line` and `column` say where.
    """
    from harness.expressions.lowering import lower
    from harness.expressions.values import FALSE

    try:
        return Expression(source, lower(source, FALSE if null_as_false else None))
    except RecursionError:
        raise ExpressionError("the expression is nested too deeply", source=source) from None
