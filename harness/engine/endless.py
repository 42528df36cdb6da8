"""The error of a graph that takes more steps than it may: where it went round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from langgraph import errors

from harness.engine.context import RunContext
from harness.errors import RunError

_NAMED: Final = 10  # so many steps of a way, and nodes of a step, are told
_LOOKED_AT: Final = 200  # so many of the last steps are searched for a cycle


class GraphRecursionError(RunError, errors.GraphRecursionError):
    """A graph that did not end within its steps. The name is LangGraph's, and so is one of its bases."""

    code = "too-many-steps"


def in_own_words(error: Exception, run: RunContext, supersteps: Iterable[Sequence[str]]) -> Exception:
    """An error that LangGraph raised while a graph ran; for too many steps, one that names the last of them."""
    if not isinstance(error, errors.GraphRecursionError) or isinstance(error, RunError):
        return error
    steps = [_some(list(dict.fromkeys(names)), " + ") for names in supersteps][-_LOOKED_AT:]
    cycle = _cycle(steps)
    way = f"went round {_some(cycle)}" if cycle else f"went {_some(steps[-_NAMED:])}"
    return GraphRecursionError(
        f"graph '{run.graph.name}' did not come to an end within {run.recursion_limit} steps; it last {way}"
    )


def _cycle(steps: Sequence[str]) -> Sequence[str]:
    """What repeats at the end, from where it was entered; nothing, if the last steps repeat none before them."""
    for length in range(1, len(steps) // 2 + 1):
        begin = len(steps) - length
        if steps[begin:] == steps[begin - length : begin]:
            while begin > 0 and steps[begin - 1] == steps[begin - 1 + length]:
                begin -= 1
            return steps[begin : begin + length]
    return []


def _some(names: Sequence[str], between: str = " → ") -> str:
    more = len(names) - _NAMED
    return between.join(names[:_NAMED]) + (f" … ({more} more)" if more > 0 else "")
