"""The result of one run before its checks, and the JSON form of the error that ended it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.errors import HarnessError, SourceError, UnscriptedCall
from harness.graph.model import Graph
from harness.graph.to_json import error_text
from harness.graph.trace import Trace
from harness.scenario.outcome import Observation, Status
from harness.source.frames import frames, own_frames


@dataclass(repr=False)  # asyncio formats the result of a loop's main task, for nothing
class RunResult:
    """The observed behaviour of a run, as a whole and turn by turn.

    graph            None if it could not be loaded
    narration        the run in words, if the settings ask for it
    varies           real services were called, or something was drawn at random: a repeat may behave differently
    seeded           something was drawn from the seed, such as an id: a repeat may have another digest
    now              the instant at which virtual time began
    without_secrets  removes secrets from JSON data; None if the run had no backend, and so no secrets
    """

    observed: Observation
    turns: list[Observation] = field(default_factory=list)
    graph: Graph | None = None
    trace: Trace | None = None
    without_secrets: Callable[[Any], Any] | None = None
    varies: bool = False
    seeded: bool = False
    now: str = ""
    narration: list[str] = field(default_factory=list)


def error_json(error: BaseException, node: str | None = None, graph: Graph | None = None) -> dict[str, Any]:
    """Return an error as results show it. `where` is the location in the error, or else that of its node."""
    span = getattr(error, "span", None) if isinstance(error, HarnessError) else None
    if isinstance(error, SourceError) and error.problems:
        span = error.problems[0].span
    if span is None and graph is not None:
        span = next((known.span for known in graph.nodes if known.name == node), None)
    return {
        "type": type(error).__name__,
        "code": error.code if isinstance(error, HarnessError) else None,
        "message": error_text(error) + _example(error),
        "node": node,
        "where": str(span) if span is not None else None,
        "traceback": own_frames(error),
    }


def _example(error: BaseException) -> str:
    if not isinstance(error, UnscriptedCall) or not error.example:
        return ""
    return f"\n  the shortest stub that answers: `{error.example}`"


def recovered_exceptions(
    raised: Iterable[BaseException], ended_by: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """Return the exceptions of the user's code that a fallback, a retry or a message to the model recovered from.

    `ended_by` is the error that ended the run, if there is one; it is left out.
    """
    at_the_end = ended_by["traceback"] if ended_by is not None else []
    found = [error_json(error) for error in raised if not isinstance(error, HarnessError)]
    return [error for error in found if error["traceback"] and error["traceback"][-1] not in at_the_end]


def failure_observation(error: BaseException, status: Status) -> Observation:
    """Return the observation of a run that could not start because of an error."""
    return Observation(status=status, error=error_json(error), frames=frames(error))


def failed_result(error: BaseException) -> RunResult:
    """Return the result of a run that could not start because of an error."""
    return RunResult(failure_observation(error, "failed"))


def refused_result(error: SourceError) -> RunResult:
    """Return the result of a run whose manifest is refused, or cannot be judged because its front end is broken."""
    broken = error.code in ("broken-dialect", "harness-broke")
    return RunResult(failure_observation(error, "failed" if broken else "invalid"))
