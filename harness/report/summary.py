"""The summary of a run, from the lines of its results: summary.json (docs/results.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness.report.coverage import GraphCoverage
from harness.report.encoding import encode
from harness.scenario.score import pass_at_k, pass_hat_k, suite_fitness, wilson

Line = Mapping[str, Any]
Key = tuple[str, str]
"""What tells scenarios apart: id and variant ("" for none)."""

FORMAT: Final = "harness-summary/1"
_PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}
_RAN: Final = ("completed", "interrupted", "failed", "timeout")
_COUNTED: Final = {"passed": "passed", "failed": "failed", "error": "errors", "skipped": "skipped"}
_DID: Final = ("verdict", "score", "status", "path", "output", "latency", "usage")
"""What runs have in common that did the same."""
_USAGE: Final = ("llm_calls", "input_tokens", "output_tokens")
_SLOWEST: Final = 5
_SOME: Final = 5
_MESSAGE_LENGTH: Final = 500
_REPEATS: Final = (1, 2, 3, 5, 10, 20, 50, 100)


def summarise(lines: Iterable[Line]) -> dict[str, Any]:
    """The summary of these lines, see `Summary.as_json`."""
    summary = Summary()
    for line in lines:
        summary.add(line)
    return summary.as_json()


class Summary:
    """Adds up the lines of a run; their order makes no difference."""

    def __init__(self) -> None:
        self._total = _Group()
        self._groups: dict[str, dict[str, _Group]] = {
            part: {} for part in ("suites", "tags", "dialects", "manifests", "variants")
        }
        self._failures: list[dict[str, Any]] = []
        self._losses: list[dict[str, Any]] = []
        self._warnings: dict[str, list[str]] = {}
        self._slowest: dict[Key, tuple[float, int]] = {}
        self._coverage = GraphCoverage()

    def add(self, line: Line) -> None:
        """Count a line of results.jsonl."""
        did = "" if line.get("varies", True) else encode([line[name] for name in _DID])
        self._total.add(line, did)
        names: dict[str, Iterable[str]] = {
            "suites": (line["suite"],),
            "tags": set(line["tags"]),
            "dialects": (line["dialect"],),
            "manifests": (line["manifest"],),
            "variants": (line["variant"],) if line["variant"] else (),
        }
        for part, of_line in names.items():
            groups = self._groups[part]
            for name in of_line:
                if name not in groups:
                    groups[name] = _Group()
                groups[name].add(line, did)
        if line["verdict"] in ("failed", "error"):
            self._failures.append(_failure(line))
        elif line["verdict"] == "passed" and line["score"] < 1:
            self._losses.append(_loss(line))
        for text in line["warnings"]:
            self._warnings.setdefault(text, []).append(line["id"])
        if _ran(line):
            key, run = _key(line), (-_latency(line), line["repeat"])
            self._slowest[key] = min(run, self._slowest.get(key, run))
        self._coverage.add(line)

    def as_json(self, incomplete: str = "") -> dict[str, Any]:
        """The summary of the lines so far; `incomplete` says why they are not all of a run.

        format     "harness-summary/1"
        complete   False when the run was ended early or only a part was selected; `reason`: why, or null
        total      a group, see `_Group.as_json`
        suites     a group by name; so are `tags`, `dialects`, `manifests`, `variants` (a run counts in
                   the group of each of its tags, one without a variant in none of `variants`)
        failures   runs that did not pass and were not skipped: {id, variant, repeat, seed, verdict, score,
                   checks: [{name, message}] that failed, error: text or null, fault: as in the line}
        losses     runs that passed below the full score: {id, variant, repeat, score, latency_penalty, checks}
        warnings   by text, the most frequent first: {text, times, scenarios: how many, names: the ids of some}
        slowest    at most five scenarios, by virtual latency: {id, variant, repeat, latency} of the slowest repeat
        coverage   by manifest, see `GraphCoverage.summary`
        """
        groups = {
            part: {name: groups[name].as_json() for name in sorted(groups)}
            for part, groups in self._groups.items()
        }
        slowest = sorted((latency, key, repeat) for key, (latency, repeat) in self._slowest.items())
        return {
            "format": FORMAT,
            "complete": not incomplete,
            "reason": incomplete or None,
            "total": self._total.as_json(),
            **groups,
            "failures": sorted(self._failures, key=_failure_order),
            "losses": sorted(self._losses, key=_failure_order),
            "warnings": [
                _warning(text, ids) for text, ids in sorted(self._warnings.items(), key=_most_first)
            ],
            "slowest": [
                _named(key) | {"repeat": repeat, "latency": -latency}
                for latency, key, repeat in slowest[:_SLOWEST]
            ],
            "coverage": self._coverage.summary(),
        }


@dataclass(slots=True)
class _Alike:
    """Runs with the same answers: of one scenario, from its stubs or from one recording.

    They count once if nothing real was asked, no fault was drawn, and all did the same, so that a tool that draws is
    seen as soon as it shows. Digests cannot say so: ids come from the seed, which is another one in each repeat.
    """

    runs: int = 0
    passed: int = 0
    varies: bool = False
    did: set[str] = field(default_factory=set)

    def add(self, line: Line, did: str) -> None:
        self.runs += 1
        self.passed += line["verdict"] == "passed"
        self.varies = self.varies or not did
        self.did.add(did)

    @property
    def distinct(self) -> tuple[int, int]:
        once = not self.varies and len(self.did) == 1
        return (1, min(self.passed, 1)) if once else (self.runs, self.passed)


@dataclass(slots=True)
class _Scenario:
    """The runs of one scenario that were judged; `alike` has those that could not differ, by recording."""

    weight: float = 0.0
    scores: list[float] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)
    alike: dict[int | None, _Alike] = field(default_factory=dict)

    def add(self, line: Line, did: str) -> None:
        self.weight = max(self.weight, line["weight"])
        self.scores.append(line["score"] or 0.0)
        self.verdicts.append(line["verdict"])
        self.alike.setdefault(line.get("recording"), _Alike()).add(line, did)

    @property
    def passed(self) -> int:
        return self.verdicts.count("passed")

    @property
    def distinct(self) -> tuple[int, int]:
        """How many distinct runs there were, and how many of them passed."""
        counts = [of_recording.distinct for of_recording in self.alike.values()]
        return sum(runs for runs, _ in counts), sum(passed for _, passed in counts)

    @property
    def score(self) -> float:
        """The mean over its repeats."""
        return math.fsum(self.scores) / len(self.scores)


@dataclass(slots=True)
class _Model:
    """What the calls of one model came to."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_USAGE, 0))
    costs: list[float | None] = field(default_factory=list)

    def add(self, counts: Mapping[str, Any]) -> None:
        for name in _USAGE:
            self.counts[name] += counts[name]
        # A line of before there were prices has none.
        self.costs.append(counts.get("cost", 0.0))

    def as_json(self) -> dict[str, Any]:
        known = [cost for cost in self.costs if cost is not None]
        return {**self.counts, "cost": math.fsum(known) if len(known) == len(self.costs) else None}


class _Group:
    """Adds up the runs of a suite, a tag, a dialect or a variant."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(_COUNTED.values(), 0)
        self._usage = dict.fromkeys(_USAGE, 0)
        self._models: dict[str, _Model] = {}
        self._warnings = 0
        self._costs: list[float] = []
        self._walls: list[float] = []
        self._latencies: list[float] = []
        self._scenarios: dict[Key, _Scenario] = {}

    def add(self, line: Line, did: str) -> None:
        """Count a line; `did` is what its run did, as text, or "" if another run of it may do something else."""
        verdict, usage = line["verdict"], line["usage"]
        self._counts[_COUNTED[verdict]] += 1
        for name in _USAGE:
            self._usage[name] += usage[name] or 0
        self._costs.append(usage["cost"] or 0.0)
        for name, counts in usage["by_model"].items():
            self._models.setdefault(name, _Model()).add(counts)
        self._walls.append(line["wall"] or 0.0)
        self._warnings += len(line["warnings"])
        if _ran(line):
            self._latencies.append(_latency(line))
        scenario = self._scenarios.setdefault(_key(line), _Scenario())
        if verdict != "skipped":
            scenario.add(line, did)

    def as_json(self) -> dict[str, Any]:
        """The figures of the group.

        runs = passed + failed + errors + skipped; `scenarios` counts a scenario once for each variant.
        distinct_runs counts repeats that could not differ once. Of these, without the skipped ones, is pass_rate: the
        share that passed, with its 95 % Wilson interval; null when nothing was judged.
        fitness is Σ weight × score ÷ Σ weight over scenarios, a scenario's score being the mean of its repeats,
        so that repeating it does not make it heavier.
        models has, by model, {llm_calls, input_tokens, output_tokens, cost}; a cost of null: it has no price, and
        counts as 0 in the cost of the group.
        latency has percentiles of the total virtual seconds of runs that were judged; wall is in real seconds.
        pass_at_k and pass_hat_k have, by k, the mean over the scenarios with at least k distinct runs.
        """
        judged = {key: found for key, found in sorted(self._scenarios.items()) if found.verdicts}
        distinct = [found.distinct for found in judged.values()]
        runs, passed = (sum(counts) for counts in zip(*distinct, strict=True)) if distinct else (0, 0)
        tokens = {kind: self._usage[f"{kind}_tokens"] for kind in ("input", "output")}
        latencies = sorted(self._latencies)
        return {
            "runs": sum(self._counts.values()),
            "distinct_runs": runs + self._counts["skipped"],
            "scenarios": len(self._scenarios),
            **self._counts,
            "pass_rate": passed / runs if runs else None,
            "pass_rate_interval": list(wilson(passed, runs)),
            "fitness": suite_fitness((each.weight, each.score) for each in judged.values()) if runs else None,
            "latency": {name: percentile(latencies, share) for name, share in _PERCENTILES.items()},
            "wall": math.fsum(self._walls),
            "llm_calls": self._usage["llm_calls"],
            "tokens": tokens | {"total": sum(tokens.values())},
            "cost": math.fsum(self._costs),
            "models": {name: model.as_json() for name, model in sorted(self._models.items())},
            "warnings": self._warnings,
            "flaky": [
                _named(key) | {"passed": found.passed, "runs": len(found.verdicts)}
                for key, found in judged.items()
                if len(set(found.verdicts)) > 1
            ],
            "pass_at_k": _over_repeats(pass_at_k, distinct),
            "pass_hat_k": _over_repeats(pass_hat_k, distinct),
        }


def _key(line: Line) -> Key:
    return line["id"], line["variant"] or ""


def _ran(line: Line) -> bool:
    return line["verdict"] in ("passed", "failed") and line["status"] in _RAN


def _latency(line: Line) -> float:
    return float(line["latency"]["total"] or 0.0)


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The value below which this share lies, interpolated between the two nearest; None of no values."""
    if not ordered:
        return None
    whole, part = divmod((len(ordered) - 1) * share, 1)
    low = ordered[int(whole)]
    return low + (ordered[int(whole) + 1] - low) * part if part else low


def _over_repeats(
    formula: Callable[[int, int, int], float], repeats: Sequence[tuple[int, int]]
) -> dict[str, float]:
    most = max((runs for runs, _ in repeats), default=0)
    shown = dict.fromkeys([k for k in _REPEATS if k < most] + [most] * (most > 0))
    values = {k: [formula(runs, passed, k) for runs, passed in repeats if runs >= k] for k in shown}
    return {str(k): math.fsum(of_k) / len(of_k) for k, of_k in values.items()}


def _named(key: Key) -> dict[str, Any]:
    return {"id": key[0], "variant": key[1] or None}


def _failure(line: Line) -> dict[str, Any]:
    error = line["error"]
    text = f"{error['type']}: {error['message']}" if error else line.get("reason") or None
    return {
        **{name: line[name] for name in ("id", "variant", "repeat", "seed", "verdict", "score")},
        "checks": _failed_checks(line),
        "error": text[:_MESSAGE_LENGTH] if text else None,
        "fault": line.get("fault", ""),
    }


def _loss(line: Line) -> dict[str, Any]:
    """What a run that passed below the full score lost."""
    return {
        **{name: line[name] for name in ("id", "variant", "repeat", "score", "latency_penalty")},
        "checks": _failed_checks(line),
    }


def _failed_checks(line: Line) -> list[dict[str, str]]:
    return [
        {"name": check["name"], "message": check["message"][:_MESSAGE_LENGTH]}
        for check in line["checks"]
        if not check["passed"]
    ]


def _warning(text: str, ids: Sequence[str]) -> dict[str, Any]:
    scenarios = sorted(set(ids))
    return {"text": text, "times": len(ids), "scenarios": len(scenarios), "names": scenarios[:_SOME]}


def _most_first(found: tuple[str, Sequence[str]]) -> tuple[int, str]:
    return -len(found[1]), found[0]


def _failure_order(failure: Mapping[str, Any]) -> tuple[Any, ...]:
    return failure["id"], failure["variant"] or "", failure["repeat"], encode(failure)
