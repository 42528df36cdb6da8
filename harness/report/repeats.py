"""Group the runs of a scenario, and count the independent ones: repeats that cannot differ count as one.

`harness.report.group` adds each line of results.jsonl to the `RepeatGroup` it belongs to. The figures of a summary
(`harness.report.group`) are computed from these counts.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from math import fsum
from typing import Any, Final

from harness.report.encoding import encode
from harness.report.figures import PERCENTILES


class ExactSum:
    """A sum of floats without rounding errors. It is rounded once, when read, like `math.fsum` of all values.

    Source: Shewchuk 1997, "Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric Predicates",
    section 2.4 (Grow-Expansion): `parts` are non-overlapping floats with the same exact sum.
    """

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[float] = []

    def add(self, value: float) -> None:
        """Add a value."""
        kept = 0
        for part in self.parts:
            large, small = (value, part) if abs(value) >= abs(part) else (part, value)
            value = large + small
            if rest := small - (value - large):
                self.parts[kept] = rest
                kept += 1
        self.parts[kept:] = [value]


def total(sums: Iterable[ExactSum]) -> float:
    """Return the total of several sums, rounded once."""
    return fsum(part for each in sums for part in each.parts)


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return a percentile of sorted values by linear interpolation; None if there are no values."""
    if not ordered:
        return None
    whole, part = divmod((len(ordered) - 1) * share, 1)
    low = ordered[int(whole)]
    return low + (ordered[int(whole) + 1] - low) * part if part else low


def percentiles(values: Iterable[float]) -> dict[str, Any]:
    """Return {p50, p90, p95, p99, max} of the values; each is None if there are no values."""
    ordered = sorted(values)
    return {name: percentile(ordered, share) for name, share in PERCENTILES.items()}


Line = Mapping[str, Any]
Key = tuple[str, str]
"""The id and the variant of a scenario ("" for no variant), which identify it within a run."""


def label(id_: str, variant: str | None) -> str:
    """Return the name of a scenario among variants: its id, followed by its variant in brackets."""
    return f"{id_} [{variant}]" if variant else id_


COUNTERS: Final = {"passed": "passed", "failed": "failed", "error": "errors", "skipped": "skipped"}
_RAN: Final = ("completed", "interrupted", "failed", "timeout")
_BEHAVIOUR: Final = ("verdict", "score", "status", "path", "output", "latency", "usage")
"""Fields of a results line that are equal for two runs with the same behaviour."""


@dataclass(slots=True)
class Counts:
    """The number of runs with each verdict."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0

    @property
    def judged(self) -> int:
        """The number of runs that were not skipped."""
        return self.passed + self.failed + self.errors

    @property
    def flaky(self) -> bool:
        """True if the judged runs have different verdicts."""
        return self.judged not in (self.passed, self.failed, self.errors)


@dataclass(slots=True)
class _Figures:
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
class RepeatGroup(Counts):
    """Runs of one scenario within one run of scenarios, with the same answers: from its stubs, or from one recording.

    They count as one run if no real call was made, no fault was drawn at random, and all behaved the same. The last
    condition exposes a tool that returns random values. Digests are no substitute: they contain ids made from the
    seed, which differs between repeats.

    fingerprint  hash of the behaviour of the first of them
    differs      True if another one behaved differently, or might have
    """

    key: Key = ("", "")
    run: str | None = None
    recording: int | None = None
    weight: float = 0.0
    differs: bool = False
    fingerprint: bytes = b""
    _first: tuple[float, float | None, int] | None = None
    _repeats: _Figures | None = None  # created for the second run: most scenarios run once

    def add(self, line: Line) -> None:
        """Count a run."""
        counted = COUNTERS[line["verdict"]]
        setattr(self, counted, getattr(self, counted) + 1)
        if counted == "skipped":
            return
        self.weight = max(self.weight, line["weight"])
        self._add_figures(
            line["score"] or 0.0,
            float(line["latency"]["total"] or 0.0) if counts_for_latency(line) else None,
            line["repeat"],
        )
        if not self.differs:
            fingerprint = _fingerprint(line)
            self.differs = not fingerprint or bool(self.fingerprint and fingerprint != self.fingerprint)
            self.fingerprint = fingerprint

    def _add_figures(self, score: float, latency: float | None, repeat: int) -> None:
        if self._first is None:
            self._first = score, latency, repeat
            return
        if self._repeats is None:
            self._repeats = _Figures()
            self._repeats.add(*self._first)
        self._repeats.add(score, latency, repeat)

    @property
    def scores(self) -> Sequence[float]:
        """Floats with the same exact sum as the scores of the runs."""
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
        """The negated seconds of the slowest run, and its repeat."""
        if self._repeats is not None:
            return self._repeats.slowest
        return (-self._first[1], self._first[2]) if self._first and self._first[1] is not None else None

    @property
    def distinct(self) -> tuple[int, int]:
        """The number of independent runs, and the number of those that passed."""
        return (self.judged, self.passed) if self.differs else (1, min(self.passed, 1))

    @property
    def is_constant(self) -> bool:
        """True if further runs would behave as this one: nothing is random, and no recording answers."""
        return not self.differs and self.recording is None


class ScenarioRepeats(Counts):
    """All runs of one scenario, with different answers or from several runs of scenarios."""

    __slots__ = ("_parts", "key")

    def __init__(self, first: RepeatGroup) -> None:
        super().__init__()
        self.key = first.key
        self._parts: list[RepeatGroup] = []
        self.add(first)

    def add(self, part: RepeatGroup) -> None:
        """Add more runs of the scenario."""
        self._parts.append(part)
        for name in COUNTERS.values():
            setattr(self, name, getattr(self, name) + getattr(part, name))

    @property
    def weight(self) -> float:
        """The largest weight of its runs."""
        return max(part.weight for part in self._parts)

    @property
    def scores(self) -> Sequence[float]:
        """Floats with the same exact sum as the scores of its runs."""
        return [score for part in self._parts for score in part.scores]

    @property
    def latencies(self) -> Sequence[float]:
        """The virtual seconds of its runs that count for latency."""
        return array("d", chain.from_iterable(part.latencies for part in self._parts))

    @property
    def distinct(self) -> tuple[int, int]:
        """The number of independent runs, and the number of those that passed.

        Runs from several runs of scenarios that had the same answers and behaved the same count as one.
        """
        same: dict[tuple[str | None, int | None], list[RepeatGroup]] = {}
        for part in self._parts:
            if part.judged:
                same.setdefault((part.run, part.recording), []).append(part)
        once = dict[tuple[int | None, bytes], bool]()
        runs = passed = 0
        for (_, recording), parts in same.items():
            if len({part.fingerprint for part in parts}) == 1 and not any(part.differs for part in parts):
                once[recording, parts[0].fingerprint] = parts[0].passed > 0
            else:
                runs += sum(part.judged for part in parts)
                passed += sum(part.passed for part in parts)
        return runs + len(once), passed + sum(once.values())

    @property
    def is_constant(self) -> bool:
        """True if any number of runs would behave as the present ones."""
        return all(part.is_constant for part in self._parts if part.judged) and self.distinct[0] == 1


def counts_for_latency(line: Line) -> bool:
    """True if the run began, ended and was judged, so that its latency counts."""
    return line["verdict"] in ("passed", "failed") and line["status"] in _RAN


def _fingerprint(line: Line) -> bytes:
    """Return a hash of a run's behaviour; empty if a repeat of it may behave differently."""
    if line.get("varies", True):
        return b""
    return blake2b(encode([line[name] for name in _BEHAVIOUR]).encode(), digest_size=16).digest()


WORST_FIRST: Final = ("error", "failed", "passed", "skipped")
NOT_PASSED: Final = ("error", "failed")


def worst(verdicts: Iterable[str]) -> str:
    """Return the worst of the verdicts; `skipped` only if there is no other.

    >>> worst(["skipped", "passed", "failed"])
    'failed'
    """
    return min(verdicts, key=WORST_FIRST.index)
