"""The outcome of one run of a scenario, which becomes a line of results.jsonl (docs/results.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Flag, auto
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from harness.errors import HarnessError, SourceError, Span, UnscriptedCall
from harness.graph.model import Graph
from harness.graph.to_json import error_text
from harness.graph.trace import Trace
from harness.settings import Price
from harness.source.frames import frames, own_frames

if TYPE_CHECKING:
    from harness.recording.interactions import RunRecording, Traffic


Status = Literal["completed", "interrupted", "failed", "timeout", "invalid", "skipped"]
Verdict = Literal["passed", "failed", "error", "skipped"]
JSON = Any


@dataclass(frozen=True)
class CustomVerdict:
    """The verdict of a custom check: a score from 0 to 1, and the reason. `broken`: it could not be evaluated."""

    score: float
    reason: str = ""
    broken: bool = False


@dataclass
class Observation:
    """The observed behaviour of one run, or of one turn of it. All values are JSON; times are virtual seconds.

    path        nodes in the order they started; a nested list is one superstep, if the graph `has_supersteps`
    causes      why nodes ran again, left by their fallback or used a default, see `harness.graph.narration`
    error       {type, code, message, node, where, traceback} or None; where is "file:line:column", "node" or None,
                traceback the frames in the user's own code, see `harness.source.frames`
    frames      all frames of the error
    raised      other exceptions raised by tools, handlers and hooks, as in error: {type, message, traceback}
    latency     {total, nodes: {name: seconds}}, summed over visits
    store       [{namespace, key, value}] of a LangGraph app; None for other agents
    usage       {llm_calls, input_tokens, output_tokens, cost, by_model, by_node}, see `harness.graph.observe.usage`
    calls       [{kind, name, node, args, ok, latency}] in order; `reason`, `refused` if the call failed
    routes      [[from, to], …] transitions taken, in order (`__start__` and `__end__` included)
    unused      one text for each stub with uses left, with its location
    grades      (grade, reason) of judges, by their index as text; `ungraded`: the reason why one gave no grade
    custom_verdicts  the verdicts of custom checks, by index
    """

    status: Status = "completed"
    path: list[Any] = field(default_factory=list)
    causes: list[str] = field(default_factory=list)
    has_supersteps: bool = True
    visits: dict[str, int] = field(default_factory=dict)
    routes: list[list[str]] = field(default_factory=list)
    state: JSON = None
    output: JSON = None
    store: list[dict[str, Any]] | None = None
    error: dict[str, Any] | None = None
    frames: list[dict[str, Any]] = field(default_factory=list)
    raised: list[dict[str, Any]] = field(default_factory=list)
    interrupts: list[JSON] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    latency: dict[str, Any] = field(default_factory=lambda: {"total": 0.0, "nodes": {}})
    usage: dict[str, Any] = field(
        default_factory=lambda: {
            "llm_calls": 0,
            "input_tokens": 0,
            "output_tokens": 0,
            "cost": 0.0,
            "by_model": {},
            "by_node": {},
        }
    )
    calls: list[dict[str, Any]] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    grades: dict[str, tuple[float, str]] = field(default_factory=dict)
    ungraded: dict[str, str] = field(default_factory=dict)
    custom_verdicts: list[CustomVerdict] = field(default_factory=list)

    def but(self, **changes: Any) -> Observation:
        """Return a shallow copy with other values, in a tenth of the time that `dataclasses.replace` takes."""
        changed = object.__new__(Observation)
        changed.__dict__.update(self.__dict__, **changes)
        return changed

    def rewrite(self, rewritten: Callable[[JSON], JSON]) -> None:
        """Apply a function to all values that may come from outside the scenario, for example to remove secrets."""
        for name in _FROM_OUTSIDE:
            setattr(self, name, rewritten(getattr(self, name)))
        self.grades = {index: (grade, rewritten(reason)) for index, (grade, reason) in self.grades.items()}
        self.ungraded = rewritten(self.ungraded)
        self.custom_verdicts = [
            replace(verdict, reason=rewritten(verdict.reason)) for verdict in self.custom_verdicts
        ]


_FROM_OUTSIDE: Final = (
    *("causes", "state", "output", "error", "frames", "raised", "interrupts", "warnings", "calls"),
)


class Origin(Flag):
    """The origin of the failure of a check, by which `harness.report.cause` tells causes from consequences.

    RESULT  what the run came to; an early end explains it
    EXCESS  something happened that should not have; an early end cannot explain it
    PATH    the path, whatever else it says: it fails where the path is not the expected one
    LOOP    an endless loop explains it
    """

    RESULT = 0
    EXCESS = auto()
    PATH = auto()
    LOOP = auto()


@dataclass
class CheckResult:
    """The result of one check. `score` and `weight` are those of docs/scenario-format.md.

    `broken`: the check could not be evaluated; its score is 0.
    """

    name: str
    passed: bool
    score: float
    weight: float
    expected: JSON
    actual: JSON
    message: str = ""
    span: Span | None = None
    broken: bool = False
    origin: Origin = Origin.RESULT


@dataclass
class Gate(CheckResult):
    """A check that sets the score to 0 if it fails, and does not count (weight 0) while it holds."""


@dataclass(frozen=True)
class RecordingResult:
    """The result of recording a scenario.

    folder   the folder of its cassette
    traffic  the requests that were sent to real services
    unused   number of interactions recorded earlier that are no longer requested
    files    names of the files that were written in the folder
    problem  the reason why nothing was written; "" if there is none
    """

    folder: Path
    traffic: Traffic
    unused: int = 0
    files: tuple[str, ...] = ()
    problem: str = ""


@dataclass
class Outcome:
    """One line of results.jsonl, with `wall` (real seconds) and fields that are only shown on the console.

    too_late   the bounds of `latency.total` that were exceeded, which cause the penalty; they are no checks
    recording  the number of the recording that was replayed
    recorded   the result of recording so far, if the scenario is being recorded
    made       what this run adds to the cassette, until it has been collected
    varies     real services were called, or faults were drawn: a repeat may behave differently
    seeded     something was drawn from the seed, such as an id: a repeat may have another digest
    events     the trace as it is written to a file (`harness.graph.sharing`); empty if it is not to be kept
    traced     the trace is to be kept
    expectations  digest of the expectations; "" if nothing was checked
    now        the instant at which its virtual time began, such as 2026-01-31T12:00:00Z
    kinds      the kinds of the nodes, by name
    """

    suite: str
    scenario: str
    manifest: str
    dialect: str
    agent: str
    observed: Observation
    verdict: Verdict
    score: float
    weight: float = 1.0
    latency_penalty: float = 0.0
    checks: list[CheckResult] = field(default_factory=list)
    too_late: list[CheckResult] = field(default_factory=list)
    variant: str | None = None
    tags: list[str] = field(default_factory=list)
    repeat: int = 0
    seed: int = 0
    wall: float = 0.0
    coverage: dict[str, Any] = field(default_factory=lambda: {"nodes": [], "edges": [], "branches": []})
    shape: dict[str, Any] = field(default_factory=lambda: {"nodes": [], "edges": [], "branches": []})
    digest: str = ""
    now: str = ""
    expectations: str = ""
    span: Span | None = None
    reason: str = ""
    narration: list[str] = field(default_factory=list)
    recording: int | None = None
    varies: bool = False
    seeded: bool = False
    recorded: RecordingResult | None = None
    made: RunRecording | None = None
    events: list[dict[str, Any]] = field(default_factory=list, repr=False)
    traced: bool = False
    kinds: dict[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """`file::name`, as in pytest."""
        return f"{self.suite}::{self.scenario}"

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that identify the run: the first ones of its line in results.jsonl, and of its trace."""
        return {
            "suite": self.suite,
            "scenario": self.scenario,
            "id": self.id,
            "manifest": self.manifest,
            "dialect": self.dialect,
            "agent": self.agent,
            "variant": self.variant,
        }

    @property
    def passed(self) -> bool:
        """True if the verdict is `passed`."""
        return self.verdict == "passed"


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


def failed_result(error: BaseException, status: Status = "failed") -> RunResult:
    """Return the result of a run that could not start because of an error."""
    return RunResult(Observation(status=status, error=error_json(error), frames=frames(error)))


def crashed_result(error: BaseException, graph: Graph | None) -> RunResult:
    """Return the result of a run that an error ended. If it is not one of ours, its code marks it as such."""
    result = failed_result(error)
    result.graph = graph
    if not isinstance(error, HarnessError):  # a bug in the harness must not end the other scenarios
        result.observed.error = {**(result.observed.error or {}), "code": "harness-broke"}
        if isinstance(error, ImportError):
            from harness.installation import why_not_importable

            result.observed.error["message"] = why_not_importable(error) or str(error)
    return result


def refused_result(error: SourceError) -> RunResult:
    """Return the result of a run whose manifest is refused, or cannot be judged because its front end is broken."""
    broken = error.code in ("broken-dialect", "harness-broke")
    return failed_result(error, "failed" if broken else "invalid")


_MILLION: Final = 1_000_000
_LAST: Final = datetime(2100, 1, 1, 12, tzinfo=UTC)
"""Prices may depend on the date and hour; a fixed late moment selects the latest price, whenever a run is made."""


class PriceList:
    """Prices of models by name. Those of the project (`own`) have priority."""

    def __init__(self, own: Sequence[Price] = ()) -> None:
        self._own = {price.model: price for price in own}

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> float | None:
        """Return the cost of one call, or None if the price of the model is unknown.

        A call without tokens costs 0.
        """
        if not input_tokens and not output_tokens:
            return 0.0
        if (price := self._own.get(model)) is not None:
            return (price.input * input_tokens + price.output * output_tokens) / _MILLION
        return _listed(model, input_tokens, output_tokens)


@lru_cache(maxsize=4096)
def _listed(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """Return the cost by `genai-prices`, whose list is part of the package: nothing is fetched.

    It is imported only when needed, since that takes 0.1 s.
    """
    try:
        import genai_prices
    except ModuleNotFoundError:  # an older installation without it: only the project's own prices are known
        return None
    usage = genai_prices.Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        return float(genai_prices.calc_price(usage, model, genai_request_timestamp=_LAST).total_price)
    except LookupError:
        return None
