"""A baseline of several runs of the same agents: the repeats of each scenario that varies, from all of them.

The best of several runs is a bad baseline: an unchanged agent falls behind it. The mean of them is a better one, and
says more about what varies. Scenarios that do not vary behave the same in every run, so one run has all there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from harness.errors import FormatError, Problem
from harness.report.formatting import plural, some_of
from harness.report.repeats import Key
from harness.report.scenario_runs import Run, ScenarioRuns

_MAX_NAMES: Final = 3


def baseline_of(runs: Sequence[Run]) -> Run:
    """Return the runs as one, in which the repeats of the later runs have the next numbers.

    Raises:
        FormatError: the runs do not have the same scenarios, with the same expectations and, for those that do
        not vary,
            the same results (code `baseline-refused`).
    """
    first, *others = runs
    scenarios = dict(first.scenarios)
    for run in others:
        different = sorted(scenarios.keys() ^ run.scenarios.keys())
        if different:
            raise _refused(first, run, different, "only in one of them")
        changed = [key for key, found in run.scenarios.items() if not _is_alike(scenarios[key], found)]
        if changed:
            raise _refused(first, run, changed, "changed between them")
        scenarios = {key: _together(found, run.scenarios[key]) for key, found in scenarios.items()}
    coverage = {
        manifest: {part: max(run.coverage[manifest][part] for run in runs) for part in parts}
        for manifest, parts in first.coverage.items()
        if all(manifest in run.coverage for run in runs)
    }
    return replace(first, scenarios=scenarios, coverage=coverage)


def _is_alike(one: ScenarioRuns, other: ScenarioRuns) -> bool:
    """True if two runs may be of the same agent."""
    if (one.expectations, one.weight) != (other.expectations, other.weight):
        return False
    varies = one.varies or other.varies
    return varies or one.repeats == other.repeats


def _together(one: ScenarioRuns, other: ScenarioRuns) -> ScenarioRuns:
    if not (one.varies or other.varies):
        return one
    start = max(one.repeats) + 1
    more = {start + at: repeat for at, (_, repeat) in enumerate(sorted(other.repeats.items()))}
    worst = one if one.failed or not other.failed else other
    return replace(one, varies=True, repeats={**one.repeats, **more}, failed=worst.failed, cause=worst.cause)


def _refused(first: Run, run: Run, keys: Sequence[Key], what: str) -> FormatError:
    names = some_of([f"{id_} [{variant}]" if variant else id_ for id_, variant in keys], _MAX_NAMES)
    message = (
        f"{first.name} and {run.name} are not runs of the same agents: {plural(len(keys), 'scenario')} {what}"
    )
    return FormatError(Problem("baseline-refused", f"{message}: {names}"))
