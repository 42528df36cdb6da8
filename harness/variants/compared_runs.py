"""The runs that are compared: those that the baseline has as well, so that all columns are of the same pairs.

A run that could not be judged scores 0 if the other variant of its pair was judged: the agent caused it.
Neither run of a pair counts if both could not be judged, or if nothing answered a call of one of them, as
without a recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.report.scenario_runs import Pair, Repeat, Run, ScenarioRuns

RunKey = tuple[str, str | None, int]
"""The scenario, the variant and the repeat of a run."""


def pairs(run: Run, baseline: str, name: str) -> list[Pair]:
    """Return the scenarios that ran with the baseline and with a variant."""
    runs: dict[str, dict[str, ScenarioRuns]] = {}
    for scenario in run.scenarios.values():
        runs.setdefault(scenario.id, {})[scenario.variant or ""] = scenario
    return [Pair(of[baseline], of[name]) for of in runs.values() if baseline in of and name in of]


def counting_repeats(pair: Pair) -> dict[int, tuple[Repeat, Repeat]]:
    """Return the repeats of a pair that count, by number."""
    numbers = sorted(pair.before.repeats.keys() & pair.after.repeats.keys())
    found = {number: (pair.before.repeats[number], pair.after.repeats[number]) for number in numbers}
    without_answer = pair.before.unanswered | pair.after.unanswered
    return {
        number: both
        for number, both in found.items()
        if number not in without_answer
        and "skipped" not in (both[0].verdict, both[1].verdict)
        and not both[0].verdict == both[1].verdict == "error"
    }


def is_left_out(pair: Pair) -> bool:
    """True if a scenario ran with both, and none of its repeats counts."""
    return bool(pair.repeats) and not counting_repeats(pair)


def uncompared(run: Run, names: Sequence[str]) -> set[RunKey]:
    """Return the runs that are in no pair that counts; `names` has the baseline first.

    Runs of the baseline count if they do with any variant, or if there is no variant.
    """
    baseline, *others = names
    everything = {
        (scenario.id, scenario.variant, number)
        for scenario in run.scenarios.values()
        for number in scenario.repeats
        if others
    }
    return everything - {key for name in others for key in _counted(run, baseline, name)}


def _counted(run: Run, baseline: str, name: str) -> Iterator[RunKey]:
    for pair in pairs(run, baseline, name):
        for number in counting_repeats(pair):
            yield pair.after.id, pair.before.variant, number
            yield pair.after.id, pair.after.variant, number
