"""Groups of runs: what is added up as lines come in, and the figures of any of them.

A line goes to one `Stratum`, the runs of one suite, manifest, dialect, variant and set of tags, and there to one
`Alike`, the runs of one scenario with the same answers. All that is kept of each line is its latency, in eight bytes.
A group (a suite, a tag, …) is a list of strata, and `figures` puts them together.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from math import fsum
from operator import attrgetter
from typing import Any, Final

from harness.report.encoding import encode
from harness.report.figures import ExactSum, percentiles, total
from harness.scenario.score import pass_at_k, pass_hat_k, suite_fitness, wilson

Line = Mapping[str, Any]
Key = tuple[str, str]
"""What tells scenarios apart: id and variant ("" for none)."""

COUNTED: Final = {"passed": "passed", "failed": "failed", "error": "errors", "skipped": "skipped"}
_RAN: Final = ("completed", "interrupted", "failed", "timeout")
_USAGE: Final = ("llm_calls", "input_tokens", "output_tokens")
_DID: Final = ("verdict", "score", "status", "path", "output", "latency", "usage")
"""What runs have in common that did the same."""
_REPEATS: Final = (1, 2, 3, 5, 10, 20, 50, 100)


@dataclass(slots=True)
class Counts:
    """How many runs had which verdict."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0

    @property
    def judged(self) -> int:
        """How many were not skipped."""
        return self.passed + self.failed + self.errors

    @property
    def flaky(self) -> bool:
        """Those that were judged had different verdicts."""
        return self.judged not in (self.passed, self.failed, self.errors)


@dataclass(slots=True)
class _Repeats:
    """Scores and latencies of several runs."""

    scores: ExactSum = field(default_factory=ExactSum)
    latencies: array[float] = field(default_factory=lambda: array("d"))
    slowest: tuple[float, int] | None = None

    def add(self, score: float, latency: float | None, repeat: int) -> None:
        self.scores.add(score)
        if latency is not None:
            self.latencies.append(latency)
            self.slowest = min((-latency, repeat), self.slowest or (1.0, 0))


@dataclass(slots=True)
class Alike(Counts):
    """Runs of one scenario with the same answers: from its stubs, or from one recording, in one run of scenarios.

    They count once if nothing real was asked, no fault was drawn, and all did the same, so that a tool that draws is
    seen as soon as it shows. Digests cannot say so: ids come from the seed, which is another one in each repeat.

    did      what the first of them did, as a hash
    differs  another did something else
    """

    key: Key = ("", "")
    run: str | None = None
    recording: int | None = None
    weight: float = 0.0
    differs: bool = False
    did: bytes = b""
    _first: tuple[float, float | None, int] | None = None
    _repeats: _Repeats | None = None  # most scenarios run once, and need none

    def add(self, line: Line) -> None:
        """Count a run."""
        counted = COUNTED[line["verdict"]]
        setattr(self, counted, getattr(self, counted) + 1)
        if counted == "skipped":
            return
        self.weight = max(self.weight, line["weight"])
        self._add_figures(
            line["score"] or 0.0,
            float(line["latency"]["total"] or 0.0) if ran(line) else None,
            line["repeat"],
        )
        if not self.differs:
            did = _did(line)
            self.differs = not did or bool(self.did and did != self.did)
            self.did = did

    def _add_figures(self, score: float, latency: float | None, repeat: int) -> None:
        if self._first is None:
            self._first = score, latency, repeat
            return
        if self._repeats is None:
            self._repeats = _Repeats()
            self._repeats.add(*self._first)
        self._repeats.add(score, latency, repeat)

    @property
    def scores(self) -> Sequence[float]:
        """Floats that add up to the scores of the runs."""
        if self._repeats is not None:
            return self._repeats.scores.parts
        return () if self._first is None else self._first[:1]

    @property
    def latencies(self) -> Sequence[float]:
        """The virtual seconds of the runs that count for latency."""
        if self._repeats is not None:
            return self._repeats.latencies
        return () if self._first is None or self._first[1] is None else (self._first[1],)

    @property
    def slowest(self) -> tuple[float, int] | None:
        """Minus the seconds of the slowest run, and its repeat."""
        if self._repeats is not None:
            return self._repeats.slowest
        return (-self._first[1], self._first[2]) if self._first and self._first[1] is not None else None

    @property
    def distinct(self) -> tuple[int, int]:
        """How many distinct runs there were, and how many of them passed."""
        return (self.judged, self.passed) if self.differs else (1, min(self.passed, 1))


@dataclass(slots=True)
class Model:
    """What the calls of one model came to; `unpriced` if one of them has no price."""

    counts: list[int] = field(default_factory=lambda: [0] * len(_USAGE))
    cost: ExactSum = field(default_factory=ExactSum)
    unpriced: bool = False

    def add(self, usage: Mapping[str, Any], cost: float | None) -> None:
        """Count what a run asked of the model."""
        for at, name in enumerate(_USAGE):
            self.counts[at] += usage[name] or 0
        if cost is None:
            self.unpriced = True
        else:
            self.cost.add(cost)


class Stratum:
    """Adds up the runs of one suite, manifest, dialect, variant and set of tags."""

    def __init__(self) -> None:
        self._alike: dict[tuple[str | None, int | None], dict[str, Alike]] = {}
        self.usage = Model()
        self.models: dict[str, Model] = {}
        self.wall = ExactSum()
        self.warnings = 0

    def __iter__(self) -> Iterator[Alike]:
        return chain.from_iterable(by_id.values() for by_id in self._alike.values())

    def add(self, line: Line, run: str | None) -> None:
        """Count a line."""
        usage = line["usage"]
        self.usage.add(usage, usage["cost"] or 0.0)
        for name, of_model in usage["by_model"].items():
            if name not in self.models:
                self.models[name] = Model()
            self.models[name].add(of_model, of_model.get("cost", 0.0))  # before there were prices it had none
        self.wall.add(line["wall"] or 0.0)
        self.warnings += len(line["warnings"])
        recording = line.get("recording")
        by_id = self._alike.setdefault((run, recording), {})
        found = by_id.get(line["id"])
        if found is None:
            key = line["id"], line["variant"] or ""
            found = by_id[line["id"]] = Alike(key=key, run=run, recording=recording)
        found.add(line)


class Scenario(Counts):
    """The runs of one scenario with several answers, or in several runs of scenarios."""

    __slots__ = ("_parts", "key")

    def __init__(self, first: Alike) -> None:
        super().__init__()
        self.key = first.key
        self._parts: list[Alike] = []
        self.add(first)

    def add(self, part: Alike) -> None:
        """Add runs of the scenario."""
        self._parts.append(part)
        for name in COUNTED.values():
            setattr(self, name, getattr(self, name) + getattr(part, name))

    @property
    def weight(self) -> float:
        """The largest weight that it had."""
        return max(part.weight for part in self._parts)

    @property
    def scores(self) -> Sequence[float]:
        """Floats that add up to the scores of its runs."""
        return [score for part in self._parts for score in part.scores]

    @property
    def latencies(self) -> Sequence[float]:
        """The virtual seconds of its runs that count for latency."""
        return array("d", chain.from_iterable(part.latencies for part in self._parts))

    @property
    def distinct(self) -> tuple[int, int]:
        """How many distinct runs there were, and how many of them passed.

        What did the same with the same answers in several runs of scenarios is no more evidence than one of them.
        """
        same: dict[tuple[str | None, int | None], list[Alike]] = {}
        for part in self._parts:
            if part.judged:
                same.setdefault((part.run, part.recording), []).append(part)
        once = dict[tuple[int | None, bytes], bool]()
        runs = passed = 0
        for (_, recording), parts in same.items():
            if len({part.did for part in parts}) == 1 and not any(part.differs for part in parts):
                once[recording, parts[0].did] = parts[0].passed > 0
            else:
                runs += sum(part.judged for part in parts)
                passed += sum(part.passed for part in parts)
        return runs + len(once), passed + sum(once.values())


def scenarios(strata: Iterable[Stratum]) -> Collection[Alike | Scenario]:
    """The scenarios of these strata."""
    found: dict[Key, Alike | Scenario] = {}
    for part in chain.from_iterable(strata):
        other = found.setdefault(part.key, part)
        if other is part:
            continue
        if isinstance(other, Alike):
            other = found[part.key] = Scenario(other)
        other.add(part)
    return found.values()


def figures(strata: Sequence[Stratum]) -> dict[str, Any]:
    """The figures of a group.

    runs = passed + failed + errors + skipped; `scenarios` counts a scenario once for each variant.
    distinct_runs counts repeats that could not differ once. Of these, without the skipped ones, is pass_rate: the
    share that passed, with its 95 % Wilson interval; null when nothing was judged.
    fitness is Σ weight × score ÷ Σ weight over scenarios, a scenario's score being the mean of its repeats,
    so that repeating it does not make it heavier.
    models has, by model, {llm_calls, input_tokens, output_tokens, cost}; a cost of null: it has no price, and
    counts as 0 in the cost of the group. unpriced has the names of those.
    latency has percentiles of the total virtual seconds of runs that were judged; wall is in real seconds.
    pass_at_k and pass_hat_k have, by k, the mean over the scenarios with at least k distinct runs.
    """
    everything = scenarios(strata)
    judged = [each for each in everything if each.judged]
    distinct = [each.distinct for each in judged]
    runs, passed = (sum(counts) for counts in zip(*distinct, strict=True)) if distinct else (0, 0)
    counts = {name: sum(map(attrgetter(name), everything)) for name in COUNTED.values()}
    latencies = array("d", chain.from_iterable(each.latencies for each in judged))
    usage = _merged([each.usage for each in strata])
    models = _models(strata)
    return {
        "runs": sum(counts.values()),
        "distinct_runs": runs + counts["skipped"],
        "scenarios": len(everything),
        **counts,
        "pass_rate": passed / runs if runs else None,
        "pass_rate_interval": list(wilson(passed, runs)),
        "fitness": suite_fitness((each.weight, fsum(each.scores) / each.judged) for each in judged)
        if runs
        else None,
        "latency": percentiles(latencies),
        "wall": total(each.wall for each in strata),
        "llm_calls": usage["llm_calls"],
        "tokens": {
            "input": usage["input_tokens"],
            "output": usage["output_tokens"],
            "total": usage["input_tokens"] + usage["output_tokens"],
        },
        "cost": usage["cost"],
        "models": models,
        "unpriced": [name for name, model in models.items() if model["cost"] is None],
        "warnings": sum(each.warnings for each in strata),
        "flaky": [
            {**named(each.key), "passed": each.passed, "runs": each.judged}
            for each in sorted((each for each in judged if each.flaky), key=attrgetter("key"))
        ],
        "pass_at_k": _over_repeats(pass_at_k, distinct),
        "pass_hat_k": _over_repeats(pass_hat_k, distinct),
    }


def ran(line: Line) -> bool:
    """The run began, came to an end, and was judged: its latency counts."""
    return line["verdict"] in ("passed", "failed") and line["status"] in _RAN


def named(key: Key) -> dict[str, Any]:
    """{id, variant} of a scenario."""
    return {"id": key[0], "variant": key[1] or None}


def _did(line: Line) -> bytes:
    """What a run did, as a hash; empty if another run of it may do something else."""
    if line.get("varies", True):
        return b""
    return blake2b(encode([line[name] for name in _DID]).encode(), digest_size=16).digest()


def _models(strata: Iterable[Stratum]) -> dict[str, dict[str, Any]]:
    by_name: dict[str, list[Model]] = {}
    for stratum in strata:
        for name, model in stratum.models.items():
            by_name.setdefault(name, []).append(model)
    return {name: _merged(parts) for name, parts in sorted(by_name.items())}


def _merged(parts: Sequence[Model]) -> dict[str, Any]:
    counts = {name: sum(part.counts[at] for part in parts) for at, name in enumerate(_USAGE)}
    unpriced = any(part.unpriced for part in parts)
    return {**counts, "cost": None if unpriced else total(part.cost for part in parts)}


def _over_repeats(
    formula: Callable[[int, int, int], float], repeats: Sequence[tuple[int, int]]
) -> dict[str, float]:
    most = max((runs for runs, _ in repeats), default=0)
    shown = dict.fromkeys([k for k in _REPEATS if k < most] + [most] * (most > 0))
    found = {}
    for k in shown:
        values = {pair: formula(*pair, k) for pair in set(repeats) if pair[0] >= k}
        of_k = [values[pair] for pair in repeats if pair in values]
        found[str(k)] = fsum(of_k) / len(of_k)
    return found
