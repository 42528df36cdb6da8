"""Explain why a scenario changed: the checks that changed, and the first difference of its traces."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import FormatError
from harness.report.compare.comparison import Change, Comparison
from harness.report.compare.first_difference import Difference, first_difference
from harness.report.reading import read_lines
from harness.report.repeats import NOT_PASSED, Key
from harness.report.traces import RunTrace, read_trace

Line = Mapping[str, Any]


class CheckChange(NamedTuple):
    """A check whose result or expectation changed; a side is None if that run has no such check."""

    name: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None

    @property
    def has_new_expectation(self) -> bool:
        """True if the expectation changed."""
        return self.before is None or self.after is None or self.before["expected"] != self.after["expected"]

    def as_json(self) -> dict[str, Any]:
        """Return the check as JSON data."""
        kept = ("passed", "score", "expected", "actual", "message", "where")
        sides = {"before": self.before, "after": self.after}
        return {"name": self.name} | {
            side: None if check is None else {key: check.get(key) for key in kept}
            for side, check in sides.items()
        }


@dataclass(frozen=True)
class Explanation:
    """The explanation of a change, from one of its repeats.

    lines       the results of this repeat in both runs; None for a run without it
    checks      the checks that changed
    difference  the first difference of the traces; None if they are equal, or unknown
    where       `file:line` of the node in the manifest; "" if unknown
    unknown     why there is no difference; "" if there is one, or none is needed
    notes       remarks: different seeds, a truncated trace
    """

    change: Change
    lines: tuple[Line | None, Line | None]
    checks: Sequence[CheckChange] = ()
    difference: Difference | None = None
    where: str = ""
    unknown: str = ""
    notes: Sequence[str] = ()


def explain(comparison: Comparison, changes: Iterable[Change]) -> Iterator[Explanation]:
    """Explain each change by the first repeat that changed in its direction, or else the first that differs."""
    wanted = {change.scenario.key: (change, _repeat(change)) for change in changes}
    found = [
        _lines_of(side.path, {(key, repeat) for key, (_, repeat) in wanted.items()})
        for side in (comparison.before, comparison.after)
    ]
    folders = [side.folder for side in (comparison.before, comparison.after)]
    for key, (change, repeat) in wanted.items():
        lines = found[0].get((key, repeat)), found[1].get((key, repeat))
        yield _explanation(change, lines, folders)


def _repeat(change: Change) -> int:
    """Return the number of the most telling repeat: with a changed verdict or score, or else any difference."""
    if change.before is None or change.after is None:
        repeats = change.scenario.repeats
        failed = (number for number, repeat in repeats.items() if repeat.verdict in NOT_PASSED)
        return next(failed, next(iter(repeats)))
    before, after = change.before.repeats, change.after.repeats
    both = sorted(before.keys() & after.keys())
    worse = change.kind != "better"
    moved = [number for number in both if before[number][:2] != after[number][:2]]
    fits = [number for number in moved if _is_worse(before[number], after[number]) == worse]
    return next(iter([*fits, *moved, *change.repeats, *both]), next(iter(after)))


def _is_worse(before: Any, after: Any) -> bool:
    ranks = [
        (repeat.verdict == "passed", repeat.verdict != "error", repeat.score) for repeat in (before, after)
    ]
    return bool(ranks[1] < ranks[0])


def _lines_of(path: Path | None, wanted: Collection[tuple[Key, int]]) -> dict[tuple[Key, int], Line]:
    found: dict[tuple[Key, int], Line] = {}
    if not wanted or path is None:
        return found
    for line in read_lines(path):
        if len(found) == len(wanted):
            break
        key = (line["id"], line["variant"] or ""), line["repeat"]
        if key in wanted:
            found[key] = line
    return found


def _explanation(
    change: Change, lines: tuple[Line | None, Line | None], folders: Sequence[Path]
) -> Explanation:
    before, after = lines
    if before is None or after is None:
        in_both = change.before is not None and change.after is not None
        why = "a baseline file has no checks and no traces to compare with" if in_both else ""
        return Explanation(change, lines, unknown=why)
    checks, notes = [*changed_checks(before, after)], list[str]()
    explained = partial(Explanation, change, lines, checks, notes=notes)
    if before["seed"] != after["seed"]:
        notes.append(f"the seeds differ: {before['seed']} before, {after['seed']} now")
    if before["digest"] == after["digest"]:
        only = "; only the expectations differ" if any(each.has_new_expectation for each in checks) else ""
        return explained(unknown=f"both runs behaved the same{only}")
    traces = []
    for name, line, folder in zip(("earlier", "later"), (before, after), folders, strict=True):
        trace = trace_of(line, folder)
        if isinstance(trace, str):
            return explained(unknown=f"no trace of the {name} run: {trace}")
        if trace.damage is not None:
            notes.append(f"the trace of the {name} run is cut off: {_first_problem(trace.damage)}")
        traces.append(trace)
    difference = first_difference(traces[0].events, traces[1].events)
    if difference is None:
        return explained(
            unknown="their traces are the same, as far as they were kept, but their digests differ"
        )
    return explained(difference=difference, where=location_of(difference, before, after))


def trace_of(line: Line, folder: Path) -> RunTrace | str:
    """Return the trace of a run, or the reason why there is none."""
    if line.get("trace") is None:
        if line["verdict"] == "skipped":
            return "it was skipped"
        if not line["path"] and line["error"]:
            return f"it failed before it ran ({line['error']['type']})"
        return "none was kept (--traces)"
    try:
        trace = read_trace(folder / str(line["trace"]))
    except FormatError as error:
        return _first_problem(error)
    if trace.head.get("digest") != line["digest"]:
        return f"{line['trace']} belongs to another run"
    return trace


def _first_problem(error: FormatError) -> str:
    return error.problems[0].one_line


def changed_checks(before: Line, after: Line) -> Iterator[CheckChange]:
    """Yield the checks whose result, score or expectation changed."""
    one, other = (
        {_name(at, line): check for at, check in enumerate(line["checks"])} for line in (before, after)
    )
    for name in dict.fromkeys([*other, *one]):
        found = CheckChange(name, one.get(name), other.get(name))
        results = [None if check is None else (check["passed"], check["score"]) for check in found[1:]]
        if results[0] != results[1] or found.has_new_expectation:
            yield found


def _name(at: int, line: Line) -> str:
    """Return the name of a check, with a number if it is not unique."""
    names = [check["name"] for check in line["checks"][: at + 1]]
    count = names.count(names[-1])
    return str(names[-1]) + (f" ({count})" if count > 1 else "")


def location_of(difference: Difference, before: Line, after: Line) -> str:
    """Return `file:line` of the node or edge in the manifest, preferably of the later run; "" if unknown."""
    for line in (after, before):
        shape = line.get("shape") or {}
        lines = shape.get("lines") or {}
        # The manifest has no lines for nodes of nested graphs, so the outer nodes are tried, too.
        outer = [*accumulate(difference.node.split("/"), "{}/{}".format)]
        wanted: list[tuple[str, Any]] = [("nodes", node) for node in reversed(outer)]
        if difference.edge is not None:
            wanted.insert(0, ("edges", [*difference.edge]))
        for part, item in wanted:
            known = shape.get(part) or []
            if (
                item in known
                and (places := lines.get(part))
                and (at := places[known.index(item)]) is not None
            ):
                return at if isinstance(at, str) else f"{line['manifest']}:{at}"
    return ""
