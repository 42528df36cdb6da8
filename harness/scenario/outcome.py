"""The outcome of one run of a scenario, which becomes a line of results.jsonl (docs/results.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness.errors import Span

if TYPE_CHECKING:
    from harness.recording.interactions import Traffic

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
    error       {type, code, message, node, where, traceback} or None; where is "file:line:column", "node" or None,
                traceback the frames in the user's own code, see `harness.source.frames`
    frames      all frames of the error
    raised      other exceptions raised by tools, handlers and hooks, as in error: {type, message, traceback}
    latency     {total, nodes: {name: seconds}}, summed over visits
    usage       {llm_calls, input_tokens, output_tokens, cost, by_model, by_node}, see `harness.graph.observe.usage`
    calls       [{kind, name, node, args, ok, latency}] in order; `reason`, `refused` if the call failed
    routes      [[from, to], …] transitions taken, in order (`__start__` and `__end__` included)
    unused      one text for each left-over stub, with its location
    grades      (grade, reason) of judges, by their index as text; `ungraded`: the reason why one gave no grade
    custom_verdicts  the verdicts of custom checks, by index
    """

    status: Status = "completed"
    path: list[Any] = field(default_factory=list)
    has_supersteps: bool = True
    visits: dict[str, int] = field(default_factory=dict)
    routes: list[list[str]] = field(default_factory=list)
    state: JSON = None
    output: JSON = None
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

    def rewrite(self, rewritten: Callable[[JSON], JSON]) -> None:
        """Apply a function to all values that may come from outside the scenario, for example to remove secrets."""
        for name in ("state", "output", "error", "frames", "raised", "interrupts", "warnings", "calls"):
            setattr(self, name, rewritten(getattr(self, name)))
        self.grades = {index: (grade, rewritten(reason)) for index, (grade, reason) in self.grades.items()}
        self.ungraded = rewritten(self.ungraded)
        self.custom_verdicts = [
            replace(verdict, reason=rewritten(verdict.reason)) for verdict in self.custom_verdicts
        ]


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

    recording  the number of the recording that was replayed
    recorded   the result of recording so far, if the scenario is being recorded
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
