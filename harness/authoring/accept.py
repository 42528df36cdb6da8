"""The failed expectations of the last run, each with the value with which it would hold (docs/authoring.md)."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from harness.authoring.places import NoPlace, Place, Source
from harness.authoring.proposal import BY_HAND, Change, changes
from harness.errors import FormatError, Problem, Span
from harness.graph import observe
from harness.graph.model import START
from harness.report.cause import reasons
from harness.report.compare.explanation import trace_of
from harness.report.compare.first_difference import first_difference
from harness.report.encoding import encode
from harness.report.input_files import changed_files
from harness.report.reading import read_lines
from harness.report.results import bounded
from harness.report.summary import written_summary
from harness.report.traces import RunTrace, last_whole_run
from harness.scenario import SUFFIXES
from harness.scenario.believed import unfailing_parts
from harness.scenario.checks.finding import as_list
from harness.scenario.document_expect import CHECKS, Expect
from harness.scenario.model import Expectations, Scenario
from harness.scenario.outcome import CheckResult, Observation, Origin, Outcome
from harness.scenario.perturbation import Limits
from harness.settings import Settings
from harness.source.display import did_you_mean
from harness.source.document import DocumentPath, parse, shown_path
from harness.source.editing import changed
from harness.source.models import validate

Line = Mapping[str, Any]
_TURN: Final = re.compile(r"(?:turn (\d+): )?(.*)", re.DOTALL)
_CUT: Final = re.compile(r"… \(\d+ characters\)\Z|\A… \d+ more\Z|…\Z")
_FIELDS: Final = ("status", "path", "state", "output", "error", "interrupts", "warnings", "latency", "usage")


@dataclass(frozen=True)
class Finding:
    """A failed check.

    Attributes:
        expect: the expected values of its run or turn, by check.
        key: the check.
        actual: what it found.
        observed: the run or turn, as far as it is known.
        limits: what is the same in all runs.
    """

    expect: Mapping[str, Any]
    key: str
    actual: Any
    observed: Observation
    limits: Limits

    def objection(self, path: DocumentPath, new: Any) -> str:
        """Return why a new value at a path of `expect` cannot be written; "" if it can be."""
        value = changed(self.expect[self.key], path[1:], new)
        try:
            written = parse(encode({self.key: value}), file="value", json=True, error=FormatError)
            validate(Expect, written, error=FormatError)
        except FormatError as error:
            return error.problems[0].message
        if path != ("latency", "total"):
            left = changes({**self.expect, self.key: value}, self.key, self.actual)
            if any(each.path[: len(path)] == path for each in left):
                return "it does not hold for this run"
        told = [*self._always(value)]
        before = [*self._always(self.expect[self.key])] if told else []
        return next((text for text in told if text not in before), "")

    def _always(self, value: Any) -> Iterator[str]:
        """Yield what of a value any run satisfies."""
        check = CHECKS[self.key]
        expect = {self.key: value}
        expect |= {check.option: self.expect[check.option]} if check.option in self.expect else {}
        yield from (part.message for rule in check.vacuous for part in rule(self.key, expect))
        for problem in unfailing_parts(Expectations(expect), self.observed, self.limits):
            yield problem.message


@dataclass
class Proposal:
    """A new value for an expectation that did not hold.

    Attributes:
        names: the scenario and the check of each that has it.
        path: the place in `expect`.
        places: the places of the value, which are the same text.
        cause: equal for proposals of one cause.
        reason: why the run differs, a line each.
    """

    names: list[str]
    path: DocumentPath
    places: list[Place]
    new: Any
    finding: Finding
    cause: str
    reason: Sequence[str]


@dataclass
class Review:
    """What can be accepted of a run, and the failed expectations that cannot be, each with the reason."""

    proposals: list[Proposal] = field(default_factory=list)
    refused: list[tuple[str, Span | str | None, str]] = field(default_factory=list)


def review(settings: Settings, paths: Sequence[str], holds: Callable[[Line], bool] | None = None) -> Review:
    """Return what can be accepted of the last run of a project.

    Args:
        settings: those of the project.
        paths: files, folders or `FILE::NAME` that the scenarios are in; none stands for all.
        holds: true for the lines of results to look at.

    Raises:
        FormatError: there is no last run, or its results are damaged; a path was not in it, or nothing is left.
    """
    report = settings.report
    ids = _selected(report, settings.project, paths, holds)
    by_id: dict[str, list[Line]] = {}
    for line in read_lines(report) if ids else ():
        if line["id"] in ids:
            by_id.setdefault(line["id"], []).append(line)
    digests = (written_summary(report) or {}).get("files")
    if by_id and digests is None:
        text = f"the last run did not end: {shown_path(report)} has no summary"
        raise FormatError(Problem("results-missing", text, hint="run the scenarios again"))
    reader = _Reader(settings, digests or {})
    for lines in by_id.values():
        reader.read(lines)
    return reader.found()


def _selected(
    report: Path, project: Path, paths: Sequence[str], holds: Callable[[Line], bool] | None
) -> set[str]:
    """Return the ids of the scenarios that did not pass."""
    met = dict.fromkeys(paths, False)
    known, failed, any_held = dict[str, None](), set[str](), False
    for line in read_lines(report):
        known |= {line["suite"]: None, line["id"]: None}
        inside = [path for path in paths if _is_inside(path, line, project)]
        met |= dict.fromkeys(inside, True)
        held = holds is None or holds(line)
        any_held = any_held or (held and bool(inside or not paths))
        if held and (inside or not paths) and line["verdict"] in ("failed", "error"):
            failed.add(line["id"])
    for path in (path for path in paths if not met[path]):
        text = f"'{path}' was not in the last run ({shown_path(report)})"
        raise FormatError(Problem("unknown-scenario", text, hint=did_you_mean(path, known, listing=False)))
    if holds is not None and not any_held:
        raise FormatError(Problem("no-scenarios", "no scenario of the last run matches -k"))
    return failed


def _is_inside(path: str, line: Line, project: Path) -> bool:
    file, separator, name = path.partition("::")
    suite = os.path.abspath(_home(line, project) / line["suite"])
    at = os.path.abspath(file)
    return (suite == at and name in ("", line["scenario"])) or (
        not separator and suite.startswith(f"{at}{os.sep}")
    )


def _home(line: Line, project: Path) -> Path:
    """Return the folder that the paths of a line are relative to: the current one, or the root of the project."""
    return Path() if Path(line["suite"]).exists() or not (project / line["suite"]).exists() else project


class _Reader:
    """Reads the failures of scenarios, and collects what can be accepted."""

    def __init__(self, settings: Settings, digests: Mapping[str, str]) -> None:
        self._settings, self._digests = settings, digests
        self._sources: dict[Path, Source | str] = {}
        self._found = Review()
        self._by_place: dict[Any, list[Proposal]] = {}

    def found(self) -> Review:
        """Return what was found. Proposals of the same text are one if they agree, and are refused otherwise."""
        for proposals in self._by_place.values():
            if len({encode(each.new) for each in proposals}) > 1 and proposals[0].places[0].shared:
                for each in proposals:
                    why = f"{each.places[0].shared} needs several values"
                    self._refuse(each.names[0], each.places[0].span, why)
                continue
            merged: dict[str, Proposal] = {}
            for each in proposals:
                one = merged.setdefault(encode(each.new), each)
                if one is not each:
                    one.names += each.names
                    one.places += [place for place in each.places if place not in one.places]
            self._found.proposals += merged.values()
        order = {
            cause: at for at, cause in enumerate(dict.fromkeys(each.cause for each in self._found.proposals))
        }
        self._found.proposals.sort(key=lambda each: order[each.cause])
        return self._found

    def _refuse(self, name: str, span: Span | str | None, why: str) -> None:
        self._found.refused.append((name, span, why))

    def read(self, lines: Sequence[Line]) -> None:
        """Read the runs of one scenario, of which one did not pass."""
        line = next(each for each in lines if each["verdict"] in ("failed", "error"))
        source = self._source(line)
        scenario = source if isinstance(source, str) else source.scenario(line["scenario"])
        if isinstance(source, str) or scenario is None or isinstance(scenario, str):
            self._refuse(line["id"], None, source if isinstance(source, str) else "it is not written here")
            return
        if line["verdict"] == "error":
            self._refuse(
                line["id"], scenario.span, f"it could not be judged: {line.get('cause') or line['reason']}"
            )
            return
        run = _Run(line, scenario, self._settings.report)
        why = reasons(run.outcome)
        cause = next(
            (check for check in line["checks"] if why.cause and check["name"] == why.cause.name), None
        )
        followers = {check.name for check in why.consequences}
        for check in run.failed():
            name, where = f"{line['scenario']} · {check['name']}", check.get("where")
            if why.is_error and check["name"] in followers:
                self._refuse(name, where, f"it follows from the error: {_error(line)}")
            elif (other := _other_run(check, line, lines)) is not None:
                self._refuse(name, where, f"it varies from run to run: compare repeat {other}")
            else:
                of = cause if cause is not None and check["name"] in {*followers, cause["name"]} else None
                self._propose(run, source, check, of)

    def _source(self, line: Line) -> Source | str:
        """Return the scenario file of a line, or why nothing of it can be accepted."""
        home = _home(line, self._settings.project)
        file = home / line["suite"]
        if not file.exists():
            return f"{line['suite']} is not there any more"
        if not file.name.endswith(SUFFIXES):
            return "scenarios inside a manifest are edited by hand"
        digests = {
            name: self._digests[name] for name in (line["suite"], line["manifest"]) if name in self._digests
        }
        for name in changed_files(digests, home):
            return f"{name} changed since the run: run it again"
        if file not in self._sources:
            try:
                self._sources[file] = Source(file, self._settings)
            except FormatError as error:
                self._sources[file] = error.problems[0].one_line
        return self._sources[file]

    def _propose(
        self, run: _Run, source: Source, check: Mapping[str, Any], cause: Mapping[str, Any] | None
    ) -> None:
        name, scenario = f"{run.line['scenario']} · {check['name']}", run.line["scenario"]
        turn, key = _split(check["name"])
        above: DocumentPath = ("turns", turn - 1, "expect") if turn else ("expect",)
        expect = run.expect(turn)
        if key not in CHECKS or CHECKS[key].items or key not in expect:
            self._refuse(name, check.get("where") or run.scenario.span, _NOT_WRITTEN.get(key, _OF_A_PERSON))
            return
        finding = run.finding(check, turn, key)
        if finding is None:
            self._refuse(
                name,
                source.span(scenario, (*above, key)),
                "its results were cut: it has to be edited by hand",
            )
            return
        is_bound = check["name"].endswith("latency.total")
        total = [Change(("latency", "total"), check["actual"])]
        for path, new in total if is_bound else changes(expect, key, finding.actual):
            span = source.span(scenario, (*above, *path))
            why = (
                "only a person can tell what it should say"
                if new is BY_HAND
                else finding.objection(path, new)
            )
            if why:
                self._refuse(name, span, why)
                continue
            try:
                place = source.place(scenario, (*above, *path))
            except NoPlace as none:
                self._refuse(name, span, str(none))
                continue
            if place.offset < 0 and bounded(expect[key]) != check["expected"]:
                self._refuse(name, span, f"{shown_path(place.file)} changed since the run: run it again")
                continue
            old = check if cause is None else cause
            group = encode([old["name"], old["expected"], old["actual"], None if cause else [path, new]])
            proposal = Proposal([name], path, [place], new, finding, group, run.reason(check))
            self._by_place.setdefault(
                (place.file, place.offset if place.offset >= 0 else place.path), []
            ).append(proposal)


_OF_A_PERSON: Final = "only a person can tell what it should say"
_NOT_WRITTEN: Final = {
    "status": "no `status` is written in `expect`: write the one that is meant",
    "unused": "stubs are left over: remove them, or write `allow_unused: true`",
}


def _split(name: str) -> tuple[int, str]:
    """Return the turn of a check (0: the whole run), and its key."""
    turn, key = _TURN.fullmatch(name).groups()  # type: ignore[union-attr]
    return int(turn or 0), "latency" if key == "latency.total" else key


def _error(line: Line) -> str:
    error = line["error"] or {}
    return f"{error.get('type')}: {str(error.get('message')).partition(chr(10))[0]}"


def _other_run(check: Mapping[str, Any], line: Line, lines: Sequence[Line]) -> int | None:
    """Return the number of a repeat in which a check came out differently; None if there is none."""
    for other in lines:
        for each in other["checks"]:
            if each["name"] == check["name"] and encode(each["actual"]) != encode(check["actual"]):
                return int(other["repeat"])
    return None


class _Run:
    """A run that failed, as far as its line of results and its trace tell."""

    def __init__(self, line: Line, scenario: Scenario, report: Path) -> None:
        self.line, self.scenario, self._report = line, scenario, report
        trace = trace_of(line, report)
        self._trace = trace if isinstance(trace, RunTrace) and trace.damage is None else None
        ran = Counter(name for step in line["path"] for name in as_list(step))
        events = self._trace.events if self._trace is not None else []
        requests = [event["request"] for event in events if event["event"] == "call"]
        calls = line["calls"]  # their arguments are cut, and in the trace they are whole
        if len(requests) == len(calls):
            calls = [{**call, "args": of.get("args", {})} for call, of in zip(calls, requests, strict=True)]
        self._observed = Observation(
            **{name: line[name] for name in _FIELDS},
            visits=dict(ran),
            routes=observe.routes(events),
            calls=calls,
        )

    @property
    def outcome(self) -> Outcome:
        """The outcome, as the search for its cause needs it."""
        line = self.line
        checks = []
        for each in line["checks"]:
            found = CHECKS.get(_split(each["name"])[1])
            origin = found.origin if found is not None else Origin.RESULT
            kept = {name: each[name] for name in ("name", "passed", "score", "weight", "expected", "actual")}
            checks.append(CheckResult(**kept, origin=origin))
        names = {name: line[name] for name in ("suite", "scenario", "manifest", "dialect", "verdict")}
        return Outcome(**names, agent="", observed=self._observed, score=0.0, checks=checks)

    def failed(self) -> Iterator[Mapping[str, Any]]:
        """Yield the checks that failed, and the exceeded bound on the latency, which is none."""
        yield from (check for check in self.line["checks"] if not check["passed"])
        total, bound = self.line["latency"]["total"], (self.expect(0).get("latency") or {}).get("total")
        if bound is not None and total is not None and total > bound:
            message = f"expected at most {bound:.10g} s, was {total:.10g} s"
            yield {"name": "latency.total", "expected": bound, "actual": total, "message": message}

    def expect(self, turn: int) -> Mapping[str, Any]:
        """Return the expected values of a turn; of the whole run for 0."""
        found = self.scenario.turns[turn - 1].expect if turn else self.scenario.expect
        return found.values if found is not None else {}

    def finding(self, check: Mapping[str, Any], turn: int, key: str) -> Finding | None:
        """Return what a check found; None if that was cut."""
        actual, observed = check["actual"], self._observed
        read = CHECKS[key].reads[0]
        if not turn and key in ("state", "output", "path", "path_includes", "interrupt", "error"):
            actual = getattr(observed, read)
        elif _is_cut(actual) and not turn and key == "calls" and self._trace is not None:
            actual = CHECKS[key].function(self.expect(turn)[key], observed).actual  # type: ignore[union-attr]
        elif _is_cut(actual):
            return None
        if turn and key not in ("visits", "max_visits", "call_counts", "routes", "latency", "usage"):
            observed = replace(observed, **{read: actual})
        return Finding(self.expect(turn), key, actual, observed, self._limits())

    def _limits(self) -> Limits:
        shape = self.line.get("shape") or {}
        first = [target for source, target in shape.get("edges", ()) if source == START]
        is_sure = len(first) == 1 and not any(each.startswith(f"{START} -> ") for each in shape["branches"])
        completes = self._observed.status == self.expect(0).get("status", "completed") == "completed"
        always = first if is_sure and completes and not self.scenario.conversation else []
        return Limits(self.scenario.timeout_s, frozenset(always))

    def reason(self, check: Mapping[str, Any]) -> list[str]:
        """Return why the run differs: the first event that differs from an earlier run, and what the check says."""
        message = str(check["message"]).split("\n")[0]
        return [*([f"because: {message}"] if message else []), *self._first_event()]

    def _first_event(self) -> Iterator[str]:
        earlier = last_whole_run(self._report)
        if earlier is None or earlier == self._report or self._trace is None:
            return
        for line in read_lines(earlier):
            if (line["id"], line["variant"], line["repeat"]) == tuple(
                self.line[k] for k in ("id", "variant", "repeat")
            ):
                trace = trace_of(line, earlier)
                found = (
                    first_difference(trace.events, self._trace.events)
                    if isinstance(trace, RunTrace)
                    else None
                )
                if found is not None:
                    yield f"first event where the runs differ: {found.what}"
                    yield from (f"  {text}" for part in found.parts[:2] for text in part.lines)


def _is_cut(value: Any) -> bool:
    if isinstance(value, str):
        return _CUT.search(value) is not None
    if isinstance(value, Mapping):
        return "…" in value or any(map(_is_cut, value.values()))
    return isinstance(value, list) and any(map(_is_cut, value))
