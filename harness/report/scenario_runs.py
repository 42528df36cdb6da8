"""The scenarios of a run with the figures of each repeat, the basis of comparing two runs.

`read_run` reads them from results; `pair` pairs those of two runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness.errors import CassetteError, FormatError, Problem, ProviderError, SourceError, Span
from harness.report.formatting import percent, plural
from harness.report.group import GraphCoverage
from harness.report.reading import Check, read_lines, results_file
from harness.report.repeats import NOT_PASSED, Key, Line, label, worst
from harness.report.summary import nothing_ran, summary_of, why_incomplete
from harness.scenario.outcome import Observation, Outcome
from harness.source.display import clip
from harness.source.document import shown_path
from harness.units import is_number

FILE: Final = "(file)"
"""The name of the scenario entry that stands for a file that cannot be read."""
PENALTY: Final = "latency_penalty"
"""The name listed with the failed checks of a run that lost score to its latency."""
_UNANSWERED: Final = frozenset(
    error.code for kind in (CassetteError, ProviderError) for error in (kind, *kind.__subclasses__())
)
"""Codes of errors that no agent causes: a recording, a key, a provider or a budget is missing."""
_NEVER_RAN: Final = ("invalid", "skipped")
_MESSAGE_LENGTH: Final = 300


_UPPER: Final = ("latency", "usage", "max_visits")
"""Checks whose values are upper bounds."""
_LARGER_IS_WIDER: Final = {"$lt": True, "$lte": True, "$gt": False, "$gte": False}
"""Matchers with a bound."""
_ALL: Final = "$all"
"""The matcher that lists several for one place. In other lists, items have no place of their own: they may move."""


@dataclass(slots=True)
class Strictness:
    """The strictness of a scenario, as far as its results tell.

    checks  the weight of each check, by name. A gate, such as `status`, has 0
    bounds  the numbers that are bounds, by where they are: `latency.nodes.read`, `state.count.$lte`
    """

    checks: dict[str, float] = field(default_factory=dict)
    bounds: dict[str, float] = field(default_factory=dict)

    def add(self, checks: Iterable[Check]) -> None:
        """Add the checks of a run; one that ended early lacks those of the turns that it did not reach."""
        for check in checks:
            name = check["name"]
            self.checks[name] = check["weight"]
            self.bounds.update(_bounds(name, check["expected"], always=_lists_upper_bounds(name)))


def _bounds(place: str, expected: Any, *, always: bool) -> Iterator[tuple[str, float]]:
    if is_number(expected):
        if always or place.rpartition(".")[2] in _LARGER_IS_WIDER:
            yield place, expected
    elif isinstance(expected, Mapping):
        for key, value in expected.items():
            if key == _ALL and isinstance(value, list):
                for each in value:
                    yield from _bounds(place, each, always=always)
            else:
                yield from _bounds(f"{place}.{key}", value, always=always)


def weaker(before: Strictness, after: Strictness) -> list[str]:
    """Return what is expected less than before, a text each. Empty if one of the two is not known.

    A check that another one replaces is not weaker: which of the two expects more cannot be told.
    """
    if not before.checks or not after.checks:
        return []
    gone = sorted(before.checks.keys() - after.checks.keys())
    found = [f"no check '{name}'" for name in gone] if len(after.checks) < len(before.checks) else []
    for name, weight in sorted(after.checks.items()):
        if weight < before.checks.get(name, 0.0):
            found.append(f"the weight of '{name}' {before.checks[name]:g} → {weight:g}")
    for place, bound in sorted(after.bounds.items()):
        was = before.bounds.get(place, bound)
        if bound > was if _LARGER_IS_WIDER.get(place.rpartition(".")[2], True) else bound < was:
            found.append(f"{place} {was:g} → {bound:g}")
    lost = sorted(before.bounds.keys() - after.bounds.keys())
    found += [f"no bound {place}" for place in lost if _is_of_upper_bounds(place, after.checks)]
    return found


def _is_of_upper_bounds(place: str, checks: Mapping[str, float]) -> bool:
    """True for a bound in one of these checks in which everything is a bound; others may expect a value instead."""
    check = place.partition(".")[0]
    return check in checks and _lists_upper_bounds(check)


def _lists_upper_bounds(check: str) -> bool:
    return check.rpartition(": ")[2] in _UPPER


class Repeat(NamedTuple):
    """The figures of one run of a scenario.

    latency  virtual seconds; None if the run was not judged
    tokens   input and output tokens
    cost     US dollars; None if a model that reported tokens has no price
    """

    verdict: str
    score: float
    latency: float | None
    tokens: int
    cost: float | None


@dataclass(slots=True)
class ScenarioRuns:
    """A scenario with its runs, by repeat number.

    varies        True if its runs may differ although nothing changed: real calls were made, faults were drawn at
                  random, or each repeat has a recording of its own
    failed        failed checks of the first run with less than the full score: message by name
    cause         why that run did not pass, on one line; "" if it passed
    expectations  digest of its expectations; "" if unknown
    strictness    the weights and bounds of its checks
    unanswered    the repeats that could not be judged because nothing answered a call, which no agent causes
    """

    id: str
    variant: str | None = None
    suite: str = ""
    manifest: str = ""
    tags: tuple[str, ...] = ()
    weight: float = 1.0
    varies: bool = False
    failed: Mapping[str, str] = field(default_factory=dict)
    cause: str = ""
    expectations: str = ""
    repeats: dict[int, Repeat] = field(default_factory=dict)
    unanswered: set[int] = field(default_factory=set)
    strictness: Strictness = field(default_factory=Strictness)

    @property
    def key(self) -> Key:
        """The id and the variant ("" for none), which identify it within a run."""
        return self.id, self.variant or ""

    @property
    def label(self) -> str:
        """Its id, followed by its variant in brackets."""
        return label(self.id, self.variant)

    @property
    def is_file(self) -> bool:
        """True for an entry that stands for a scenario file that cannot be read."""
        return self.id == f"{self.suite}::{FILE}" and self.verdict == "error"

    @property
    def is_unread(self) -> bool:
        """True for a scenario of a file that cannot be read, whose manifest is not known."""
        return not self.manifest and self.verdict == "error"

    @property
    def verdict(self) -> str:
        """The worst verdict of its runs; `skipped` only if all were."""
        return worst(repeat.verdict for repeat in self.repeats.values())

    @property
    def score(self) -> float:
        """The mean score of its runs."""
        return math.fsum(repeat.score for repeat in self.repeats.values()) / len(self.repeats)


@dataclass(frozen=True)
class Run:
    """A run that has ended.

    name        its folder or file, for display
    scenarios   in the order of the results
    incomplete  why it is not a complete run; "" if it is
    coverage    by manifest, for nodes, edges and branches: (taken, all)
    files       digests of its scenario files and manifests; empty if unknown
    """

    name: str
    scenarios: Mapping[Key, ScenarioRuns]
    incomplete: str = ""
    coverage: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def unread(self) -> list[str]:
        """Scenario files that could not be read."""
        found = (each for each in self.scenarios.values() if each.is_file or each.is_unread)
        return [*dict.fromkeys(each.suite for each in found)]


class ScenarioCollector:
    """Collects the scenarios of a run from its lines."""

    def __init__(self) -> None:
        self.scenarios: dict[Key, ScenarioRuns] = {}
        self._recordings: dict[Key, Any] = {}
        self._lost: dict[Key, int] = {}

    def add(self, line: Line) -> None:
        """Add the run of a line.

        Raises:
            ValueError: this repeat was added before, or its verdict and `passed` contradict each other.
        """
        if line["passed"] != (line["verdict"] == "passed"):
            raise ValueError(f"verdict is '{line['verdict']}', and passed is {str(line['passed']).lower()}")
        key = line["id"], line["variant"] or ""
        scenario = self.scenarios.get(key)
        if scenario is None:
            self._recordings[key] = line.get("recording")
            scenario = self.scenarios[key] = ScenarioRuns(
                line["id"], line["variant"], line["suite"], line["manifest"], tuple(line["tags"])
            )
        if line["repeat"] in scenario.repeats:
            raise ValueError(f"repeat {line['repeat']} of '{scenario.label}' is listed twice")
        repeat = scenario.repeats[line["repeat"]] = _repeat(line)
        if is_unanswered(line["verdict"], line["error"]):
            scenario.unanswered.add(line["repeat"])
        scenario.weight = line["weight"]
        scenario.strictness.add(line["checks"])
        scenario.expectations = line.get("expectations") or scenario.expectations
        scenario.varies = bool(
            scenario.varies or line.get("varies", True) or line.get("recording") != self._recordings[key]
        )
        loses = repeat.verdict in NOT_PASSED or (repeat.verdict == "passed" and repeat.score < 1)
        if loses and line["repeat"] < self._lost.get(key, math.inf):
            self._lost[key] = line["repeat"]
            scenario.failed = _failed(line)
            scenario.cause = clip(line.get("cause") or "", _MESSAGE_LENGTH)


def is_unanswered(verdict: str, error: Mapping[str, Any] | None) -> bool:
    """True for a run that could not be judged because nothing answered a call, as without a recording."""
    return verdict == "error" and (error or {}).get("code") in _UNANSWERED


def read_run(path: Path, listeners: Iterable[Callable[[Line], object]] = ()) -> Run:
    """Read a run from its folder or results.jsonl. Each `listener` is called with every line.

    Raises:
        FormatError: there are no results (`results-missing`), a line is invalid or a duplicate (`results-line`),
            summary.json does not belong to the results (`results-damaged`), or nothing ran (`no-runs`).
    """
    collector, graphs, count = ScenarioCollector(), GraphCoverage(), 0
    listeners = (graphs.add, *listeners)
    file = results_file(path)
    for count, line in enumerate(read_lines(path), start=1):
        try:
            collector.add(line)
        except ValueError as error:
            raise FormatError(
                Problem("results-line", str(error), Span(shown_path(file), count, 1))
            ) from error
        for listener in listeners:
            listener(line)
    if not count:
        raise nothing_ran(path)
    coverage = {
        manifest: {part: (found["taken"], found["all"]) for part, found in parts.items()}
        for manifest, parts in graphs.summary().items()
    }
    summary = summary_of(path)
    incomplete = _incomplete(path, summary, count)
    files = summary.get("files")
    known = files if isinstance(files, dict) else {}
    return Run(shown_path(path), collector.scenarios, incomplete, coverage, known)


def _incomplete(run: Path, summary: Mapping[str, Any], count: int) -> str:
    """Return why results with this number of lines are not of a complete run; "" if they are."""
    counted = (summary.get("total") or {}).get("runs")
    if counted != count:
        message = f"{shown_path(run)} has {plural(count, 'run')}, and its summary.json counts {counted}"
        raise FormatError(Problem("results-damaged", message, hint="run the scenarios again"))
    return why_incomplete(summary)


def _failed(line: Line) -> dict[str, str]:
    failed = {check["name"]: check["message"] for check in line["checks"] if not check["passed"]}
    if line["latency_penalty"]:
        failed[PENALTY] = f"{percent(line['latency_penalty'])} of the score"
    return {name: clip(message, _MESSAGE_LENGTH) for name, message in failed.items()}


def _repeat(line: Line) -> Repeat:
    verdict, usage = line["verdict"], line["usage"]
    judged = verdict in ("passed", "failed") and line["status"] not in _NEVER_RAN
    costs = [model.get("cost", 0.0) for model in usage["by_model"].values()]
    return Repeat(
        verdict,
        min(line["score"] or 0.0, 1.0),
        line["latency"]["total"] or 0.0 if judged else None,
        (usage["input_tokens"] or 0) + (usage["output_tokens"] or 0),
        None if None in costs else usage["cost"] or 0.0,
    )


@dataclass(frozen=True, slots=True)
class Pair:
    """A scenario that both runs have."""

    before: ScenarioRuns
    after: ScenarioRuns

    @property
    def repeats(self) -> list[tuple[Repeat, Repeat]]:
        """The repeats that both runs have and judged, in pairs."""
        both = sorted(self.before.repeats.keys() & self.after.repeats.keys())
        found = [(self.before.repeats[number], self.after.repeats[number]) for number in both]
        return [pair for pair in found if "skipped" not in (pair[0].verdict, pair[1].verdict)]

    @property
    def unpaired(self) -> int:
        """The number of repeats that only one of the runs has."""
        return len(self.before.repeats.keys() ^ self.after.repeats.keys())

    @property
    def expects_other(self) -> bool:
        """True if the scenario's expectations changed. False if a run does not record them."""
        return "" != self.before.expectations != self.after.expectations != ""

    @property
    def changed_checks(self) -> list[str]:
        """`name: message` of each check that fails now and did not before.

        If no other checks fail than before, all that fail; if none fails, the cause of the failure.
        """
        failed = self.after.failed
        changed = [name for name in failed if name not in self.before.failed] or list(failed)
        lines = [f"{name}: {failed[name]}" if failed[name] else name for name in changed]
        return lines or ([self.after.cause] if self.after.cause else [])


@dataclass(frozen=True)
class Pairing:
    """The scenarios of two runs.

    pairs   scenarios of both, in the order of the later run
    gone    those of the earlier run that the later one lacks, or skipped although they were judged before
    added   those of the later run only
    """

    pairs: Sequence[Pair]
    gone: Sequence[ScenarioRuns]
    added: Sequence[ScenarioRuns]

    @property
    def by_key(self) -> Mapping[Key, Pair]:
        """The pairs by scenario."""
        return {pair.after.key: pair for pair in self.pairs}


def pair(before: Run, after: Run) -> Pairing:
    """Pair the scenarios of two runs. Entries for files that could not be read are ignored."""
    old = {key: scenario for key, scenario in before.scenarios.items() if not scenario.is_file}
    new = {key: scenario for key, scenario in after.scenarios.items() if not scenario.is_file}
    gone = [
        scenario for key, scenario in old.items() if key not in new or _is_newly_skipped(scenario, new[key])
    ]
    return Pairing(
        pairs=[Pair(old[key], scenario) for key, scenario in new.items() if key in old],
        gone=sorted(gone, key=lambda scenario: scenario.key),
        added=[scenario for key, scenario in new.items() if key not in old],
    )


def _is_newly_skipped(before: ScenarioRuns, after: ScenarioRuns) -> bool:
    return after.verdict == "skipped" != before.verdict


def unread_outcomes(file: Path, error: SourceError, names: Collection[str] = ()) -> Iterator[Outcome]:
    """Yield the outcomes by which results list a file that cannot be used.

    Args:
        file: the file.
        error: why it cannot be used.
        names: the scenarios that were to run; none stands for all. If they cannot be told, there is one outcome.
    """
    from harness.scenario.load import names_in

    first = error.problems[0]
    where = str(first.span) if first.span else None
    named = {"type": type(error).__name__, "code": error.code, "message": str(error)}
    shown: dict[str, Any] = {**named, "node": None, "where": where}
    for name in dict.fromkeys(sorted(names) or [each or FILE for each in names_in(file)] or [FILE]):
        yield Outcome(
            suite=shown_path(file),
            scenario=name,
            manifest="",
            dialect="",
            agent="",
            observed=Observation(status="invalid", error=shown),
            verdict="error",
            score=0.0,
            span=first.span,
        )
