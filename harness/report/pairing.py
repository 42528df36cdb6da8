"""Pair the scenarios of two runs, and their repeats.

`pair(before, after)` returns the scenarios of both runs (`pairs`), those that are gone, and those that were added.
Scenarios are matched by id and variant, repeats by number, and so by seed. A scenario that was renamed, or whose file
was moved, is gone and added. One that is skipped now and was judged before also counts as `gone`, since its present
result is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.report.repeats import Key
from harness.report.scenario_runs import Repeat, Run, ScenarioRuns


@dataclass(frozen=True, slots=True)
class Pair:
    """A scenario that both runs have."""

    before: ScenarioRuns
    after: ScenarioRuns

    @property
    def repeats(self) -> list[tuple[Repeat, Repeat]]:
        """The repeats that both runs have and judged, in pairs."""
        both = sorted(self.before.repeats.keys() & self.after.repeats.keys())
        found = [(self.before.repeats[number], self.after.repeats[number]) for number in both]
        return [pair for pair in found if "skipped" not in (pair[0].verdict, pair[1].verdict)]

    @property
    def unpaired(self) -> int:
        """The number of repeats that only one of the runs has."""
        return len(self.before.repeats.keys() ^ self.after.repeats.keys())

    @property
    def expects_other(self) -> bool:
        """True if the scenario's expectations changed. False if a run does not record them."""
        return "" != self.before.expectations != self.after.expectations != ""

    @property
    def changed_checks(self) -> list[str]:
        """`name: message` of each check that fails now and did not before.

        If no other checks fail than before, all that fail; if none fails, the cause of the failure.
        """
        failed = self.after.failed
        changed = [name for name in failed if name not in self.before.failed] or list(failed)
        lines = [f"{name}: {failed[name]}" if failed[name] else name for name in changed]
        return lines or ([self.after.cause] if self.after.cause else [])


@dataclass(frozen=True)
class Pairing:
    """The scenarios of two runs.

    pairs   scenarios of both, in the order of the later run
    gone    those of the earlier run that the later one lacks, or skipped although they were judged before
    added   those of the later run only
    """

    pairs: Sequence[Pair]
    gone: Sequence[ScenarioRuns]
    added: Sequence[ScenarioRuns]

    @property
    def by_key(self) -> Mapping[Key, Pair]:
        """The pairs by scenario."""
        return {pair.after.key: pair for pair in self.pairs}


def pair(before: Run, after: Run) -> Pairing:
    """Pair the scenarios of two runs. Entries for files that could not be read are ignored."""
    old = {key: scenario for key, scenario in before.scenarios.items() if not scenario.is_file}
    new = {key: scenario for key, scenario in after.scenarios.items() if not scenario.is_file}
    gone = [
        scenario for key, scenario in old.items() if key not in new or _is_newly_skipped(scenario, new[key])
    ]
    return Pairing(
        pairs=[Pair(old[key], scenario) for key, scenario in new.items() if key in old],
        gone=sorted(gone, key=lambda scenario: scenario.key),
        added=[scenario for key, scenario in new.items() if key not in old],
    )


def _is_newly_skipped(before: ScenarioRuns, after: ScenarioRuns) -> bool:
    return after.verdict == "skipped" != before.verdict
