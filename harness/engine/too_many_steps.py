"""The error of a graph that does not end within LangGraph's limit of steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langgraph import errors

from harness.engine.context import RunContext
from harness.engine.standstill import LastSteps, last_steps
from harness.errors import RunError


class GraphRecursionError(RunError, errors.GraphRecursionError):
    """A graph that did not end within its recursion limit.

    It has the name of LangGraph's error, and is a subclass of it.
    """

    code = "too-many-steps"

    def __init__(self, text: str, way: LastSteps) -> None:
        self.way = way
        self.span = way.closing.span if way.closing is not None else None
        super().__init__(text)


def with_last_steps(error: Exception, run: RunContext, supersteps: Iterable[Sequence[str]]) -> Exception:
    """Return an error of LangGraph as it is, but a `GraphRecursionError` as one that names the last steps."""
    if not isinstance(error, errors.GraphRecursionError) or isinstance(error, RunError):
        return error
    last = last_steps(list(supersteps), run.graph)
    text = (
        f"graph '{run.graph.name}' did not come to an end within {run.recursion_limit} steps; it last {last}"
    )
    return GraphRecursionError(text, last)
