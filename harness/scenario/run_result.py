"""What one run of a scenario did, before it is checked; and how results show the error that ended it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.errors import HarnessError, SourceError
from harness.graph.model import Graph
from harness.graph.to_json import error_text
from harness.graph.trace import Trace
from harness.scenario.outcome import Observed


@dataclass(repr=False)  # asyncio formats the result of a loop's main task, for nothing
class RunResult:
    """What a run did: as a whole, and turn by turn.

    graph            None: it could not be loaded
    varies           the real thing was asked, or faults were drawn: a repeat may do something else
    without_secrets  takes secrets out of JSON data; None: the run had no backend, and so no secrets
    """

    observed: Observed
    turns: list[Observed] = field(default_factory=list)
    graph: Graph | None = None
    trace: Trace | None = None
    without_secrets: Callable[[Any], Any] | None = None
    varies: bool = False


def error_json(error: BaseException, node: str | None = None, graph: Graph | None = None) -> dict[str, Any]:
    """An error as results show it. `where` is the place of the node in the manifest, or that of the error."""
    spans = {n.name: n.span for n in graph.nodes} if graph is not None else {}
    span = spans.get(node or "") or getattr(error, "span", None)
    if isinstance(error, SourceError) and error.problems:
        span = error.problems[0].span
    return {
        "type": type(error).__name__,
        "code": error.code if isinstance(error, HarnessError) else None,
        "message": error_text(error),
        "node": node,
        "where": str(span) if span is not None else None,
    }


def failed(error: BaseException) -> RunResult:
    """The result of a run that an error kept from starting."""
    return RunResult(Observed(status="failed", error=error_json(error)))


def refused(error: SourceError) -> RunResult:
    """The result of a run whose manifest is refused."""
    return RunResult(Observed(status="invalid", error=error_json(error)))
