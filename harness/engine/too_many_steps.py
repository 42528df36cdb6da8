"""The error of a graph that does not end within LangGraph's limit of steps, of whichever scheduler.

It stands apart from the supersteps, which need a newer LangGraph than apps do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langgraph import errors

from harness.engine.context import RunContext
from harness.engine.standstill import Unending, last_steps
from harness.errors import RunError


class GraphRecursionError(Unending, errors.GraphRecursionError):
    """A graph that did not end within its recursion limit.

    It has the name of LangGraph's error, and is a subclass of it.
    """

    code = "too-many-steps"


def with_last_steps(error: Exception, run: RunContext, supersteps: Iterable[Sequence[str]]) -> Exception:
    """Return an error of LangGraph as it is, but a `GraphRecursionError` as one that names the last steps."""
    if not isinstance(error, errors.GraphRecursionError) or isinstance(error, RunError):
        return error
    text = f"graph '{run.graph.name}' did not come to an end within {run.recursion_limit} steps"
    return GraphRecursionError(text, last_steps(list(supersteps), run.graph))
