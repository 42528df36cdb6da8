"""Estimate of the model calls that a scoring will make, and their cost, before it begins.

    own recordings, where they are replaced ─┐
    the baseline's, or another variant's     ├─▶ calls and tokens of a run ─▶ × the runs to make ─▶ dollars
    earlier runs with real calls (results)  ─┘

A run without any of these sources is unknown, and makes the total a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

from harness.errors import CassetteError
from harness.recording.folder import CassetteFolder, cassette_names
from harness.recording.interactions import Recording, tokens_of
from harness.recording.spending import Price, model_of
from harness.report.formatting import cost, plural
from harness.scenario.cassette import (
    ONLY_MISSING,
    WRITING,
    baseline_cassette,
    cassette_name,
    effective_record_mode,
)
from harness.scenario.model import Scenario
from harness.settings import Projects, RecordMode

Call = tuple[str, int, int]
"""A model call: model, input tokens, output tokens."""


@dataclass
class ExpectedCalls:
    """The expected calls, tokens and dollars of some runs.

    unknown   number of runs without a source for the estimate
    unpriced  models without a known price
    """

    runs: int = 0
    calls: float = 0.0
    tokens: float = 0.0
    cost: float = 0.0
    unknown: int = 0
    unpriced: set[str] = field(default_factory=set)

    def add(self, other: ExpectedCalls) -> None:
        """Add the expectation of other runs."""
        self.runs += other.runs
        self.calls += other.calls
        self.tokens += other.tokens
        self.cost += other.cost
        self.unknown += other.unknown
        self.unpriced |= other.unpriced

    def __str__(self) -> str:
        runs = plural(self.runs, "run")
        if self.unknown == self.runs:
            return f"{runs}, unknown: nothing recorded yet"
        about = "at least" if self.unknown else "about"
        parts = [runs, f"{about} {plural(ceil(self.calls), 'call')}"]
        if self.tokens:
            parts += [f"{self.tokens:,.0f} tokens", self._cost()]
        if self.unknown:
            parts.append(f"{self.unknown} of them unknown: nothing recorded yet")
        return ", ".join(parts)

    def _cost(self) -> str:
        if not self.unpriced:
            return f"{cost(self.cost)} USD"
        return f"at least {cost(self.cost)} USD" if self.cost else "cost unknown"


@dataclass(frozen=True)
class Estimate:
    """The expected calls of each scenario, by its number. Scenarios that make no calls are missing."""

    by_number: Mapping[int, ExpectedCalls]
    variants: Sequence[str]

    def expected(self, number: int) -> ExpectedCalls | None:
        """Return the expected calls of a scenario; None if they are unknown."""
        found = self.by_number.get(number)
        if found is None:
            return ExpectedCalls()
        return None if found.unknown else found

    @property
    def asks(self) -> bool:
        """True if any calls will be made."""
        return bool(self.by_number)

    def without(self, numbers: Mapping[int, object]) -> Estimate:
        """Return the estimate without these scenarios."""
        left = {number: expected for number, expected in self.by_number.items() if number not in numbers}
        return Estimate(left, self.variants)

    def lines(self) -> Iterator[str]:
        """Yield the estimate as lines of text, in total and by variant; nothing if no calls will be made."""
        total, by_variant = ExpectedCalls(), dict[str, ExpectedCalls]()
        for number, expected in self.by_number.items():
            total.add(expected)
            by_variant.setdefault(self.variants[number], ExpectedCalls()).add(expected)
        if not self.asks:
            return
        yield f"models will be asked anew: {total}"
        width = max(map(len, by_variant))
        for name, expected in by_variant.items():
            yield f"  {name.ljust(width)}  {expected}"
        if total.unpriced:
            yield f"no price is known of {', '.join(sorted(total.unpriced))}: set it in [tool.harness.prices]"


def estimate(
    scenarios: Sequence[Scenario], projects: Projects, price: Price, lines: Sequence[Mapping[str, Any]] = ()
) -> Estimate:
    """Estimate the calls of the scenarios. `lines` are results of earlier runs."""
    known = _Estimator(projects, lines)
    found = {}
    for number, scenario in enumerate(scenarios):
        expected = known.expected(scenario, price)
        if expected is not None:
            found[number] = expected
    return Estimate(found, [each.variant for each in scenarios])


class _Estimator:
    """Estimates the calls of scenarios from recordings and earlier results."""

    def __init__(self, projects: Projects, lines: Sequence[Mapping[str, Any]]) -> None:
        self._projects = projects
        self._recorded: dict[Path, dict[str, list[list[Call]]]] = {}
        self._asked: dict[str, list[list[Call]]] = {}
        for line in lines:
            if line.get("varies") and line["verdict"] in ("passed", "failed"):
                self._asked.setdefault(line["id"], []).append(_calls_of_line(line))

    def expected(self, scenario: Scenario, price: Price) -> ExpectedCalls | None:
        """Return the expected calls of a scenario; None if it will make none."""
        settings = self._projects.of(scenario.file)
        name, mode = cassette_name(scenario, settings), effective_record_mode(settings)
        if name is None or scenario.skip is not None or mode not in WRITING:
            return None
        own = _recorded_numbers(settings.cassettes, name)
        runs = scenario.repeat
        if mode is RecordMode.ONCE and own:
            return None
        if mode in ONLY_MISSING:
            runs -= len([number for number in own if number <= scenario.repeat])
        if runs <= 0:
            return None
        samples = self._samples(scenario, settings.cassettes, name)
        if not samples:
            return ExpectedCalls(runs, unknown=runs)
        expected = ExpectedCalls(runs)
        renamed = scenario.variation.models if scenario.variation else {}
        share = runs / len(samples)
        for calls in samples:
            for model, sent, received in calls:
                now = renamed.get(model, model)
                expected.calls += share
                expected.tokens += share * (sent + received)
                of_call = price(now, sent, received)
                expected.cost += share * (of_call or 0.0)
                if of_call is None:
                    expected.unpriced.add(now)
        return expected

    def _samples(self, scenario: Scenario, root: Path, name: str) -> list[list[Call]]:
        """Return the calls of earlier runs, from the first source that has any.

        The sources: its own recordings, the baseline's, another variant's, earlier results.
        """
        recorded = self._of_scenario(root, baseline_cassette(name))
        found = recorded.get(name) or recorded.get(baseline_cassette(name))
        return found or next(iter(recorded.values()), None) or self._asked.get(scenario.id, [])

    def _of_scenario(self, root: Path, base: str) -> dict[str, list[list[Call]]]:
        """Return the recordings of a scenario with the baseline and each variant, by cassette name."""
        at = root / base
        if at not in self._recorded:
            below = [f"{base}/{name}" for name in cassette_names(at) if name.startswith("variants/")]
            found = {name: [*_recordings(root, name)] for name in (base, *below)}
            self._recorded[at] = {name: calls for name, calls in found.items() if calls}
        return self._recorded[at]


def _recorded_numbers(root: Path, name: str) -> list[int]:
    try:
        return CassetteFolder(root, name).numbers()
    except CassetteError:  # the run reports it
        return []


def _recordings(root: Path, name: str) -> Iterator[list[Call]]:
    try:
        folder = CassetteFolder(root, name)
        for number in folder.numbers():
            recording = folder.load(number)
            if recording is not None:
                yield _calls(recording)
    except CassetteError:
        return


def _calls(recording: Recording) -> list[Call]:
    return [
        (model, *tokens_of(interaction.response))
        for interaction in recording.http
        if (model := model_of(interaction.request)) is not None
    ]


def _calls_of_line(line: Mapping[str, Any]) -> list[Call]:
    """Return the calls of a run with real calls; the tokens of a model are divided evenly among its calls."""
    calls: list[Call] = []
    for model, usage in line["usage"]["by_model"].items():
        count = usage["llm_calls"] or 1
        calls += [
            (model, (usage["input_tokens"] or 0) // count, (usage["output_tokens"] or 0) // count)
        ] * count
    return calls
