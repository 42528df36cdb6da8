"""Summarise runs from their lines of results, as in summary.json (docs/results.md)."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Mapping
from heapq import nsmallest
from itertools import chain
from pathlib import Path
from typing import Any, Final

from harness.errors import FormatError, Problem
from harness.report.encoding import encode
from harness.report.group import GraphCoverage, Stratum, figures, flaky_left_out, named, scenarios
from harness.report.reading import RESULTS, read_lines, results_file
from harness.report.repeats import NOT_PASSED, Key, Line, counts_for_latency, percentiles
from harness.source.document import shown_path

MAX_LISTED: Final = 5_000
_MAX_NAMES: Final = 5

Entry = Mapping[str, Any]


class Entries:
    """Entries for runs. The lowest repeats of each scenario are kept first."""

    def __init__(self, most: int = MAX_LISTED) -> None:
        self._most = most
        self._kept: list[Entry] = []
        self.left_out = 0

    def add(self, entry: Entry) -> None:
        """Add an entry {id, variant, repeat, …}, which may have the `run` of scenarios it belongs to."""
        self._kept.append(entry)
        if len(self._kept) >= 2 * self._most:
            self._truncate()

    def ordered(self) -> list[Entry]:
        """Return the entries that are kept, by scenario and repeat."""
        self._truncate()
        return sorted(self._kept, key=_by_scenario)

    def _truncate(self) -> None:
        if len(self._kept) > self._most:
            self.left_out += len(self._kept) - self._most
            self._kept = sorted(self._kept, key=_by_repeat)[: self._most]


class Warnings:
    """Texts of warnings with their counts and scenarios. If there are too many, the first by name are kept."""

    def __init__(self, most: int = MAX_LISTED) -> None:
        self._most = most
        self._times: dict[str, int] = {}
        self._ids: dict[str, set[str]] = {}
        self.left_out = 0

    def add(self, text: str, scenario: str) -> None:
        """Count a warning of the scenario with this id."""
        if text not in self._times:
            self._times[text] = 0
            self._ids[text] = set()
        self._times[text] += 1
        self._ids[text].add(scenario)
        if len(self._times) >= 2 * self._most:
            self._truncate()

    def ordered(self) -> list[dict[str, Any]]:
        """Return {text, times, scenarios: their number, names: some of their ids}, the most frequent text first."""
        self._truncate()
        found = []
        for text, times in sorted(self._times.items(), key=lambda item: (-item[1], item[0])):
            ids = sorted(self._ids[text])
            found.append({"text": text, "times": times, "scenarios": len(ids), "names": ids[:_MAX_NAMES]})
        return found

    def _truncate(self) -> None:
        for text in sorted(self._times)[self._most :]:
            self.left_out += self._times.pop(text)
            del self._ids[text]


def _by_scenario(entry: Entry) -> tuple[Any, ...]:
    return entry["id"], entry["variant"] or "", entry.get("run") or "", entry["repeat"], encode(entry)


def _by_repeat(entry: Entry) -> tuple[Any, ...]:
    return entry["repeat"], *_by_scenario(entry)


class NodeLatencies:
    """Collects the latencies of nodes from lines of results; one value is the sum of a node's visits in a run."""

    def __init__(self) -> None:
        self._graphs: dict[tuple[str, str], dict[str, array[float]]] = {}

    def add(self, line: Mapping[str, Any]) -> None:
        """Add a line of results.jsonl."""
        key = line["manifest"], line["agent"] or ""
        graph = self._graphs.setdefault(key, {})
        for node, seconds in line["latency"]["nodes"].items():
            if node not in graph:
                graph[node] = array("d")
            graph[node].append(seconds)

    def as_json(self, name_of: Callable[[str, str], str]) -> dict[str, Any]:
        """Return, by graph and node, {runs, p50, p90, p95, p99, max}. `name_of` returns the name of a graph."""
        by_name: dict[str, dict[str, array[float]]] = {}
        for key, graph in sorted(self._graphs.items()):
            for node, values in graph.items():
                by_name.setdefault(name_of(*key), {}).setdefault(node, array("d")).extend(values)
        return {
            name: {
                node: {"runs": len(values), **percentiles(values)} for node, values in sorted(graph.items())
            }
            for name, graph in by_name.items()
        }


FORMAT: Final = "harness-summary/1"
SUMMARY: Final = "summary.json"
GROUPS: Final = {
    "suites": "suite",
    "tags": "tag",
    "dialects": "dialect",
    "manifests": "manifest",
    "variants": "variant",
}
"""The ways to group runs: a field of the summary, and the noun for one of its groups."""
_SLOWEST: Final = 5
_MAX_SCENARIOS: Final = 1_000
_MESSAGE_LENGTH: Final = 500


def summarise(lines: Iterable[Line], incomplete: str = "") -> dict[str, Any]:
    """Return the summary of these lines, see `Summary.as_json`."""
    summary = Summary()
    for line in lines:
        summary.add(line)
    return summary.as_json(incomplete)


class Summary:
    """Sums up lines of results, of one or several runs of scenarios. Their order does not matter."""

    def __init__(self) -> None:
        self._strata: dict[tuple[Any, ...], Stratum] = {}
        self._groups: dict[str, dict[str, list[Stratum]]] = {part: {} for part in GROUPS}
        self._failures = Entries()
        self._losses = Entries()
        self._warnings = Warnings()
        self._coverage = GraphCoverage()
        self._nodes = NodeLatencies()

    def add(self, line: Line, run: str | None = None) -> None:
        """Add a line of results.jsonl. `run` is the name of its run of scenarios, if there are several."""
        self._stratum(line).add(line, run)
        if line["verdict"] in NOT_PASSED:
            self._failures.add(_failure(line, run))
        elif line["verdict"] == "passed" and line["score"] < 1:
            self._losses.add(_entry(line, run, "score", "latency_penalty"))
        for text in line["warnings"]:
            self._warnings.add(text, line["id"])
        self._coverage.add(line)
        if counts_for_latency(line):
            self._nodes.add(line)

    def warn(self, text: str, of: str) -> None:
        """Add a warning of the run as a whole. `of`: what it is about, named where scenarios of others are."""
        self._warnings.add(text, of)

    def _stratum(self, line: Line) -> Stratum:
        tags, variant = frozenset(line["tags"]), line["variant"] or ""
        key = line["suite"], tags, line["dialect"], line["manifest"], variant
        found = self._strata.get(key)
        if found is None:
            found = self._strata[key] = Stratum()
            names = (
                (line["suite"],),
                tags,
                (line["dialect"],),
                (line["manifest"],),
                (variant,) if variant else (),
            )
            for groups, of_line in zip(self._groups.values(), names, strict=True):
                for name in of_line:
                    groups.setdefault(name, []).append(found)
        return found

    def as_json(self, incomplete: str = "") -> dict[str, Any]:
        """Return the summary of the lines so far. `incomplete` says why they are not of a complete run.

        format     "harness-summary/1"
        complete   False if the run was ended early or only a part was selected; `reason` says why, else null
        scripted   True if stubs alone answered, and nothing was random
        total      a group, see `harness.report.group.figures`
        suites     a group by name, and likewise `tags`, `dialects`, `manifests`, `variants` (a run counts in
                   the group of each of its tags; one without a variant is in no group of `variants`)
        failures   runs that did not pass and were not skipped: {id, variant, repeat, seed, verdict, score,
                   checks: failed [{name, message}], error: text or null, fault: as in the line}
        losses     runs that passed below the full score: {id, variant, repeat, score, latency_penalty, checks}
        warnings   {text, times, scenarios: their number, names: some of their ids}, the most frequent text first
        slowest    at most five scenarios, by virtual latency: {id, variant, repeat, latency} of the slowest repeat
        coverage   by manifest, see `GraphCoverage.summary`
        latency_by_node      by manifest, see `NodeLatencies.as_json`
        latency_by_scenario  scenarios with repeats of different latency, the slowest first:
                             {id, variant, runs, p50, p90, p95, p99, max}
        left_out   number of entries missing from failures, losses, warnings (times), latency_by_scenario and the
                   flaky scenarios of total

        If there are several runs, entries of failures, losses and slowest have the name of theirs in `run`.
        """
        strata = [*self._strata.values()]
        groups = {
            part: {name: figures(groups[name]) for name in sorted(groups)}
            for part, groups in self._groups.items()
        }
        lists = {
            "failures": self._failures.ordered(),
            "losses": self._losses.ordered(),
            "warnings": self._warnings.ordered(),
        }
        by_scenario, scenarios_left_out = _latency_by_scenario(strata)
        return {
            "format": FORMAT,
            "complete": not incomplete,
            "reason": incomplete or None,
            "scripted": all(each.is_constant for each in scenarios(strata) if each.judged),
            "total": figures(strata),
            **groups,
            **lists,
            "slowest": _slowest(strata),
            "coverage": self._coverage.summary(),
            "latency_by_node": self._nodes.as_json(self._coverage.name),
            "latency_by_scenario": by_scenario,
            "left_out": {
                "failures": self._failures.left_out,
                "losses": self._losses.left_out,
                "warnings": self._warnings.left_out,
                "latency_by_scenario": scenarios_left_out,
                "flaky": flaky_left_out(strata),
            },
        }


def _slowest(strata: Iterable[Stratum]) -> list[dict[str, Any]]:
    found: dict[Key, tuple[tuple[float, int], str]] = {}
    for part in chain.from_iterable(strata):
        if part.slowest is not None:
            run = part.slowest, part.run or ""
            found[part.key] = min(run, found.get(part.key, run))
    slowest = nsmallest(
        _SLOWEST, ((latency, key, repeat, run) for key, ((latency, repeat), run) in found.items())
    )
    return [
        _of_run(named(key) | {"repeat": repeat, "latency": -latency}, run or None)
        for latency, key, repeat, run in slowest
    ]


def _latency_by_scenario(strata: Iterable[Stratum]) -> tuple[list[dict[str, Any]], int]:
    """Return the entries, and the number of those that are left out."""
    found = []
    for scenario in scenarios(strata):
        values = scenario.latencies
        if values and min(values) != max(values):
            found.append({**named(scenario.key), "runs": len(values), **percentiles(values)})
    found.sort(key=lambda entry: (-entry["p95"], entry["id"], entry["variant"] or ""))
    return found[:_MAX_SCENARIOS], max(0, len(found) - _MAX_SCENARIOS)


def _of_run(entry: dict[str, Any], run: str | None) -> dict[str, Any]:
    return entry if run is None else {**entry, "run": run}


def _failure(line: Line, run: str | None) -> dict[str, Any]:
    error = line["error"]
    text = f"{error['type']}: {error['message']}" if error else line.get("reason") or None
    shown = text[:_MESSAGE_LENGTH] if text else None
    return _entry(line, run, "seed", "verdict", "score", error=shown, fault=line.get("fault", ""))


def _entry(line: Line, run: str | None, *names: str, **more: Any) -> dict[str, Any]:
    """Return an entry {id, variant, repeat, …, checks: those that failed, …} of the lists of runs."""
    checks = [
        {"name": check["name"], "message": check["message"][:_MESSAGE_LENGTH]}
        for check in line["checks"]
        if not check["passed"]
    ]
    named = {name: line[name] for name in ("id", "variant", "repeat", *names)}
    return _of_run({**named, "checks": checks, **more}, run)


def summary_of(run: Path) -> dict[str, Any]:
    """Return summary.json, or if the run was killed before writing it, the sum of its lines.

    Raises:
        FormatError: there are no results, nothing ran, or they cannot be read.
    """
    found = written_summary(run)
    if found is not None:
        return found
    summary = summarise(read_lines(run), "there is no summary.json next to the results")
    if not summary["total"]["runs"]:
        raise nothing_ran(run)
    return summary


def why_incomplete(summary: Mapping[str, Any]) -> str:
    """Return why a summary is not of a complete run; "" if it is."""
    return "" if summary.get("complete") is True else str(summary.get("reason") or "it does not say why")


def nothing_ran(run: Path) -> FormatError:
    """Return the error for results without a single run (code `no-runs`)."""
    return FormatError(Problem("no-runs", f"nothing ran: {shown_path(results_file(run))} is empty"))


def written_summary(run: Path) -> dict[str, Any] | None:
    """Return the summary.json in a results folder or beside a results.jsonl; None if there is none."""
    if not run.is_dir() and run.name != RESULTS:
        return None
    found = json_in(results_file(run).with_name(SUMMARY))
    return found if found.get("format") == FORMAT else None


def json_in(file: Path) -> dict[str, Any]:
    """Return the mapping in a JSON file; an empty one if there is none."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
