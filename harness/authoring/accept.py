"""The failed expectations of the last run, each with the value with which it would hold (docs/authoring.md)."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from harness.authoring.places import Place, Refused, Source
from harness.authoring.proposal import BY_HAND, Finding
from harness.errors import FormatError, Problem
from harness.graph import observe
from harness.graph.model import START
from harness.report.cause import reasons
from harness.report.compare.explanation import trace_of
from harness.report.compare.first_difference import first_difference
from harness.report.encoding import encode
from harness.report.input_files import changed_files
from harness.report.reading import read_lines
from harness.report.repeats import NOT_PASSED, Line
from harness.report.results import bounded
from harness.report.summary import written_summary
from harness.report.traces import RunTrace, last_whole_run
from harness.scenario import SUFFIXES
from harness.scenario.checks.finding import as_list
from harness.scenario.document_expect import CHECKS
from harness.scenario.model import Scenario
from harness.scenario.outcome import CheckResult, Observation, Origin, Outcome
from harness.scenario.perturbation import Limits
from harness.settings import Settings
from harness.source.display import did_you_mean
from harness.source.document import DocumentPath, shown_path

Check = Mapping[str, Any]
_TOTAL: Final = "latency.total"
_CUT: Final = re.compile(r"… \(\d+ characters\)\Z|\A… \d+ more\Z|…\Z")
_FIELDS: Final = ("status", "path", "state", "output", "error", "interrupts", "warnings", "latency", "usage")


@dataclass
class Proposal:
    """A new value for an expectation that did not hold.

    Attributes:
        names: the scenario and the check of each that has it.
        path: the place in `expect`.
        places: the places of the value, which are the same text.
        cause: equal for proposals of one cause.
        reason: returns why the run differs, a line each.
    """

    names: list[str]
    path: DocumentPath
    places: list[Place]
    new: Any
    finding: Finding
    cause: str
    reason: Callable[[], Iterable[str]]


@dataclass
class Review:
    """The changes of a run that can be accepted, and the failed expectations that cannot, each with the reason."""

    proposals: list[Proposal] = field(default_factory=list)
    refused: list[tuple[str, object, str]] = field(default_factory=list)


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
        if (inside or not paths) and (holds is None or holds(line)):
            any_held = True
            failed |= {line["id"]} if line["verdict"] in NOT_PASSED else set()
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
    is_under = not separator and suite.startswith(f"{at}{os.sep}")
    return is_under or (suite == at and name in ("", line["scenario"]))


def _home(line: Line, project: Path) -> Path:
    """Return the folder that the paths of a line are relative to: the current one, or the root of the project."""
    return Path() if Path(line["suite"]).exists() or not (project / line["suite"]).exists() else project


class _Reader:
    """Reads the failures of scenarios, and collects what can be accepted."""

    def __init__(self, settings: Settings, digests: Mapping[str, str]) -> None:
        self._settings, self._digests = settings, digests
        self._sources: dict[Path, Source] = {}
        self._found = Review()
        self._by_place: dict[Any, list[Proposal]] = {}

    def found(self) -> Review:
        """Return what was found. Proposals of the same text are one if they agree."""
        for proposals in self._by_place.values():
            merged: dict[str, Proposal] = {}
            for each in proposals:
                one = merged.setdefault(encode(each.new), each)
                one.names += each.names if one is not each else []
                one.places += [place for place in each.places if place not in one.places]
            shared = proposals[0].places[0].shared
            if len(merged) > 1 and shared:
                why = f"{shared} needs several values"
                self._found.refused += [
                    (x, one.places[0].span, why) for one in merged.values() for x in one.names
                ]
            else:
                self._found.proposals += merged.values()
        causes = [*dict.fromkeys(each.cause for each in self._found.proposals)]
        self._found.proposals.sort(key=lambda each: causes.index(each.cause))
        return self._found

    def read(self, lines: Sequence[Line]) -> None:
        """Read the runs of one scenario, of which one did not pass."""
        line = next(each for each in lines if each["verdict"] in NOT_PASSED)
        try:
            source = self._source(line)
            run = _Run(line, source.scenario(line["scenario"]), self._settings.report)
            if line["verdict"] == "error":
                raise Refused(f"it could not be judged: {line.get('cause') or line['reason']}")
        except (Refused, FormatError) as refused:
            self._found.refused.append((line["id"], line.get("where"), str(refused)))
            return
        why = reasons(run.outcome)
        followers = {check.name for check in why.consequences}
        for check in run.failed():
            name, where = f"{line['scenario']} · {check['name']}", check.get("where") or line.get("where")
            try:
                if why.is_error and check["name"] in followers:
                    raise Refused(f"it follows from the error: {_error(line)}")
                if (other := _other_run(check, lines)) is not None:
                    raise Refused(f"it varies from run to run: compare repeat {other}")
                finding = run.finding(check)
            except Refused as refused:
                self._found.refused.append((name, where, str(refused)))
                continue
            is_one = why.cause is not None and check["name"] in {*followers, why.cause.name}
            for path, new in finding.changes():
                cause = [check["name"], check["expected"], check["actual"], path, new]
                if is_one and why.cause is not None:
                    cause = [why.cause.name, why.cause.expected, why.cause.actual]
                at = (*finding.above, *path)
                try:
                    if new is BY_HAND:
                        raise Refused(_OF_A_PERSON)
                    place = self._place(source, line, check, finding, path, new)
                except Refused as refused:
                    self._found.refused.append((name, source.span(line["scenario"], at), str(refused)))
                    continue
                proposal = Proposal(
                    [name], path, [place], new, finding, encode(cause), partial(run.reason, check)
                )
                text = place.offset if place.offset >= 0 else place.path
                self._by_place.setdefault((place.file, text), []).append(proposal)

    def _source(self, line: Line) -> Source:
        """Return the scenario file of a line.

        Raises:
            Refused: nothing of it can be accepted.
            FormatError: it cannot be read.
        """
        home = _home(line, self._settings.project)
        file = home / line["suite"]
        if not file.exists():
            raise Refused(f"{line['suite']} is not there any more")
        if not file.name.endswith(SUFFIXES):
            kind = "expectations of a test" if file.suffix == ".py" else "scenarios inside a manifest"
            raise Refused(f"{kind} are edited by hand")
        names = [name for name in (line["suite"], line["manifest"]) if name in self._digests]
        for name in changed_files({name: self._digests[name] for name in names}, home):
            raise Refused(f"{name} changed since the run: run it again")
        if file not in self._sources:
            self._sources[file] = Source(file, self._settings)
        return self._sources[file]

    def _place(
        self, source: Source, line: Line, check: Check, finding: Finding, path: DocumentPath, new: Any
    ) -> Place:
        """Return the place of a value that may be written.

        Raises:
            Refused: it may not be.
        """
        if why := finding.objection(path, new):
            raise Refused(why)
        place = source.place(line["scenario"], (*finding.above, *path))
        if place.offset < 0 and bounded(finding.expect[finding.key]) != check["expected"]:
            raise Refused(f"{shown_path(place.file)} changed since the run: run it again")
        return place


_OF_A_PERSON: Final = "only a person can tell what it should say"
_NOT_WRITTEN: Final = {
    "status": "no `status` is written in `expect`: write the one that is meant",
    "unused": "stubs are left over: remove them, or write `allow_unused: true`",
}


def _error(line: Line) -> str:
    error = line["error"] or {}
    return f"{error.get('type')}: {str(error.get('message')).partition(chr(10))[0]}"


def _other_run(check: Check, lines: Sequence[Line]) -> int | None:
    """Return the number of a repeat in which a check came out differently; None if there is none."""
    for other in lines:
        for each in other["checks"]:
            if each["name"] == check["name"] and encode(each["actual"]) != encode(check["actual"]):
                return int(other["repeat"])
    return None


class _Run:
    """A run that failed, as far as its line of results and its trace tell."""

    def __init__(self, line: Line, scenario: Scenario, report: Path) -> None:
        self._line, self._scenario, self._report = line, scenario, report
        trace = trace_of(line, report)
        events = trace.events if isinstance(trace, RunTrace) and trace.damage is None else []
        requests = [event["request"] for event in events if event["event"] == "call"]
        calls = line["calls"]  # their arguments may be cut, and are whole in the trace
        if len(requests) == len(calls):
            calls = [{**call, "args": of.get("args", {})} for call, of in zip(calls, requests, strict=True)]
        self._observed = Observation(
            **{name: line[name] for name in _FIELDS},
            visits=dict(Counter(name for step in line["path"] for name in as_list(step))),
            routes=observe.routes(events),
            calls=calls,
        )

    @property
    def outcome(self) -> Outcome:
        """The outcome, as the search for its cause needs it."""
        checks = []
        for each in self._line["checks"]:
            found = CHECKS.get(_split(each["name"])[1])
            kept = {name: each[name] for name in ("name", "passed", "score", "weight", "expected", "actual")}
            checks.append(CheckResult(**kept, origin=found.origin if found is not None else Origin.RESULT))
        names = {name: self._line[name] for name in ("suite", "scenario", "manifest", "dialect", "verdict")}
        return Outcome(**names, agent="", observed=self._observed, score=0.0, checks=checks)

    def failed(self) -> Iterator[Check]:
        """Yield the checks that failed, and the exceeded bound on the latency, which is none."""
        yield from (check for check in self._line["checks"] if not check["passed"])
        total, bound = self._line["latency"]["total"], (self._expect(0).get("latency") or {}).get("total")
        if bound is not None and total is not None and total > bound:
            message = f"expected at most {bound:.10g} s, was {total:.10g} s"
            yield {"name": _TOTAL, "expected": bound, "actual": total, "message": message}

    def _expect(self, turn: int) -> Mapping[str, Any]:
        """Return the expected values of a turn; of the whole run for 0."""
        found = self._scenario.turns[turn - 1].expect if turn else self._scenario.expect
        return found.values if found is not None else {}

    def finding(self, check: Check) -> Finding:
        """Return what a check found.

        Raises:
            Refused: it has no value that can be changed, or that was cut in the results.
        """
        turn, key = _split(check["name"])
        expect, actual, observed = self._expect(turn), check["actual"], self._observed
        if key not in CHECKS or CHECKS[key].items or key not in expect:
            raise Refused(_NOT_WRITTEN.get(key, _OF_A_PERSON))
        read = CHECKS[key].reads[0]
        if not turn and key in ("state", "output", "path", "path_includes", "interrupt", "error"):
            actual = getattr(observed, read)
        elif not turn and key == "calls":
            found = CHECKS[key].function(expect[key], observed)
            actual = found.actual if found is not None else actual
        elif key not in ("visits", "max_visits", "call_counts", "routes", "latency", "usage"):
            observed = replace(observed, **{read: actual})
        if (turn or key not in ("state", "output")) and _is_cut(actual):
            raise Refused("what the run has there was cut in its results: edit it by hand")
        above: DocumentPath = ("turns", turn - 1, "expect") if turn else ("expect",)
        return Finding(expect, key, actual, observed, self._limits(), above, check["name"] == _TOTAL)

    def _limits(self) -> Limits:
        shape = self._line.get("shape") or {}
        first = [target for source, target in shape.get("edges", ()) if source == START]
        is_sure = len(first) == 1 and not any(each.startswith(f"{START} -> ") for each in shape["branches"])
        completes = self._observed.status == self._expect(0).get("status", "completed") == "completed"
        always = first if is_sure and completes and not self._scenario.conversation else []
        return Limits(self._scenario.timeout_s, frozenset(always))

    def reason(self, check: Check) -> Iterator[str]:
        """Yield why the run differs: what the check says, and the first event that differs from an earlier run."""
        first, *more = str(check["message"]).split("\n")
        yield f"because: {first}{' ' + more[0].strip() if more and first.endswith(':') else ''}"
        earlier = last_whole_run(self._report)
        for line in read_lines(earlier) if earlier is not None and earlier != self._report else ():
            if all(line[key] == self._line[key] for key in ("id", "variant", "repeat")):
                traces = trace_of(line, earlier or Path()), trace_of(self._line, self._report)
                if isinstance(traces[0], RunTrace) and isinstance(traces[1], RunTrace):
                    found = first_difference(traces[0].events, traces[1].events)
                    parts = found.parts[:2] if found else ()
                    yield from [f"first event where the runs differ: {found.what}"] if found else []
                    yield from (f"  {text}" for part in parts for text in part.lines)


def _split(name: str) -> tuple[int, str]:
    """Return the turn of a check (0: the whole run), and its key."""
    turn, _, key = name.rpartition(": ") if name.startswith("turn ") else ("", "", name)
    return int(turn.removeprefix("turn ") or 0), "latency" if key == _TOTAL else key


def _is_cut(value: Any) -> bool:
    if isinstance(value, str):
        return _CUT.search(value) is not None
    if isinstance(value, Mapping):
        return "…" in value or any(map(_is_cut, value.values()))
    return isinstance(value, list) and any(map(_is_cut, value))
