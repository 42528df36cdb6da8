"""The search: Hypothesis draws the worlds of runs, climbs their coverage, and shrinks what breaks a law.

Everything follows from the seed and the number of the stream. Hypothesis' own constants from local modules, which
differ from machine to machine, are off, and its shrinking ends after a number of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final
from unittest.mock import patch

import hypothesis
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.database import ExampleDatabase
from hypothesis.errors import Flaky

from harness.errors import SourceError
from harness.explore.attempt import Attempts, Feature, Run, Size
from harness.explore.laws import Breach
from harness.explore.values import Choose
from harness.explore.written import Material
from harness.time.real import real

_SESSION: Final = 500
"""Runs of one search of Hypothesis, whose memory grows with them."""
_SHRINKING: Final = 400
_SHRINKING_VISITS: Final = 4_000
"""The most runs, and visits of nodes, in which a finding is shrunk."""
_MOST_COVERS: Final = 200
"""Runs of a stream that are kept for their coverage."""
_REPORT_S: Final = 0.5
_SECONDARY: Final = b".secondary"
_PARETO: Final = b".pareto"


@dataclass(frozen=True)
class Found:
    """A breach with a run that shows it.

    `choices` repeat the run in Hypothesis. `runs_until` and `seconds` are those of the stream before it.
    """

    stream: int
    breach: Breach
    choices: bytes
    run: Material
    size: Size
    runs_until: int
    seconds: float


@dataclass(frozen=True)
class Cover:
    """A run that broke nothing, and the parts of the graph that it took."""

    stream: int
    features: frozenset[Feature]
    run: Material
    size: Size


@dataclass(frozen=True)
class Reached:
    """The work of a stream so far. `shape` is that of the graph; `draws_faults` is False if none are drawn."""

    stream: int
    runs: int = 0
    features: frozenset[Feature] = frozenset()
    shape: Mapping[str, Any] = field(default_factory=dict)
    draws_faults: bool = True
    problem: str = ""


Tell = Callable[[Found | Reached | Cover], None]


class _Enough(BaseException):
    """Ends a search of Hypothesis at once."""


class _Broken(Exception):
    """Tells Hypothesis that a run broke a law."""


class _Choices(ExampleDatabase):
    """Holds the choices of one run that broke a law, in the place of Hypothesis' database."""

    def __init__(self, choices: bytes = b"") -> None:
        super().__init__()
        self.choices = choices

    def save(self, key: bytes, value: bytes) -> None:
        if not key.endswith((_SECONDARY, _PARETO)):
            self.choices = value

    def fetch(self, key: bytes) -> Iterable[bytes]:
        # Hypothesis does not shrink again what is not in the secondary part.
        return [self.choices] if self.choices and key.endswith(_SECONDARY) else []

    def delete(self, key: bytes, value: bytes) -> None:
        pass


def _run_hypothesis(
    attempt: Callable[[Choose], None], seed: str, runs: int, choices: _Choices, *phases: Phase
) -> None:
    """Call `attempt` with drawn choices until it raises, or for a number of runs; what it raises is swallowed.

    Raises:
        Flaky: the same choices gave something else.
    """

    def test(data: st.DataObject) -> None:
        attempt(lambda below: data.conjecture_data.draw_integer(0, below - 1))  # in any thread

    asked = hypothesis.settings(
        max_examples=runs,
        database=choices,
        deadline=None,
        derandomize=False,
        print_blob=False,
        report_multiple_bugs=False,
        phases=phases,
        suppress_health_check=list(hypothesis.HealthCheck),
        verbosity=hypothesis.Verbosity.quiet,
    )
    number = int.from_bytes(sha256(seed.encode()).digest()[:8], "big")
    drawing = hypothesis.seed(number)(hypothesis.given(st.data())(test))
    with _repeatable(), suppress(_Enough, _Broken):
        asked(drawing)()  # in this order: a seed takes the database away


@contextmanager
def _repeatable() -> Iterator[None]:
    """Turn Hypothesis' constants from local modules off."""
    from hypothesis.internal.conjecture import providers

    of = getattr(providers, "Constants", None)
    with patch.object(providers.HypothesisProvider, "_local_constants", of()) if of else nullcontext():
        yield


@dataclass
class Stream:
    """One stream of the search. It tells what it finds when it finds it, and from time to time what it has done."""

    number: int
    attempts: Attempts
    tell: Tell
    _runs: int = 0
    _features: set[Feature] = field(default_factory=set)
    _known: set[str] = field(default_factory=set)
    _covers: dict[frozenset[Feature], Run] = field(default_factory=dict)
    _problem: str = ""

    def search(self) -> None:
        """Search until the runs, or the seconds, of the stream have passed.

        Raises:
            FormatError: an effect cannot be drawn (code `cannot-draw`).
            KeyboardInterrupt: it was asked to end.
        """
        self._began = self._told = real.monotonic()
        session = 0
        while (left := self._left()) > 0:
            before = self._runs
            self._session(session, min(left, _SESSION))
            session += 1
            if self._runs == before:
                break
        for features, run in self._covers.items():
            self.tell(Cover(self.number, features, run.material, run.size))
        self._tell_reached()

    def _left(self) -> int:
        plan = self.attempts.plan
        if plan.runs is not None:
            return plan.share(self.number) - self._runs
        return 0 if self._is_late() else _SESSION

    def _is_late(self) -> bool:
        seconds = self.attempts.plan.seconds
        return seconds is not None and real.monotonic() - self._began >= seconds

    def _session(self, number: int, runs: int) -> None:
        """Search until something new is found, which is told, or for a number of runs."""
        found: list[Run] = []
        refused: list[SourceError] = []

        def attempt(choose: Choose) -> None:
            try:
                run = self.attempts.make(choose)
            except SourceError as error:  # Hypothesis would repeat it
                refused.append(error)
                raise _Enough from error
            if not found:  # or Hypothesis repeats what was found
                self._count(run)
                if run.breach is not None and run.breach.key not in self._known:
                    found.append(run)
            if found:
                raise _Broken  # always here: from elsewhere, it would count as another failure
            if self._is_late():
                raise _Enough
            hypothesis.target(float(len(run.features)), label="features")

        choices = _Choices()
        seed = f"{self.attempts.plan.seed}/{self.number}/{number}"
        try:
            _run_hypothesis(attempt, seed, runs, choices, Phase.reuse, Phase.generate, Phase.target)
        except Flaky:
            self._problem = "runs with the same answers differ: what one leaves behind reaches the next"
        if refused:
            raise refused[0]
        for run in found:
            assert run.breach is not None
            self._known.add(run.breach.key)
            seconds = real.monotonic() - self._began
            told = choices.choices, run.material, run.size
            self.tell(Found(self.number, run.breach, *told, self._runs, seconds))

    def _count(self, run: Run) -> None:
        self._runs += 1
        if run.breach is None and self.attempts.plan.keeps_covers:
            self._keep(run)
        self._features |= run.features
        if real.monotonic() - self._told >= _REPORT_S:
            self._tell_reached()

    def _tell_reached(self) -> None:
        self._told = real.monotonic()
        features, of = frozenset(self._features), self.attempts
        self.tell(Reached(self.number, self._runs, features, of.shape, of.draws_faults, self._problem))

    def _keep(self, run: Run) -> None:
        """Keep the shortest run of those that take the same parts; beyond a number of them, only with new parts."""
        before = self._covers.get(run.features)
        is_new = len(self._covers) < _MOST_COVERS or not run.features <= self._features
        if is_new if before is None else run.size < before.size:
            self._covers[run.features] = run


def shrunk(found: Found, attempts: Attempts) -> Found:
    """Return the smallest run that shows the same."""
    best, runs, visits = found, 0, 0

    def attempt(choose: Choose) -> None:
        nonlocal best, runs, visits
        run = attempts.make(choose)
        runs, visits = runs + 1, visits + sum(run.result.observed.visits.values())
        if run.breach is not None and run.breach.key == found.breach.key:
            if run.size < best.size:
                best = replace(best, breach=run.breach, run=run.material, size=run.size)
            if runs < _SHRINKING and visits < _SHRINKING_VISITS:
                raise _Broken
        if runs >= _SHRINKING or visits >= _SHRINKING_VISITS:
            raise _Enough

    with suppress(Flaky):
        _run_hypothesis(attempt, "shrink", _SHRINKING, _Choices(found.choices), Phase.reuse, Phase.shrink)
    return best
