"""Two runs side by side: each scenario with itself in the earlier run, each repeat with its own.

`pair(before, after)` gives what both runs have (`pairs`), what is gone and what is new. A scenario is the same when
id and variant are; a repeat has its number, and with it its seed. One that was renamed, or whose file was moved,
is gone and new. One that was skipped, and had been judged before, is `gone` as well: nothing says how it is now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.report.repeats import Key
from harness.report.scenario_runs import Repeat, Run, ScenarioRuns


@dataclass(frozen=True, slots=True)
class Pair:
    """A scenario in both runs."""

    before: ScenarioRuns
    after: ScenarioRuns

    @property
    def repeats(self) -> list[tuple[Repeat, Repeat]]:
        """The repeats that both runs have, by their number; those of a skipped scenario are none."""
        both = sorted(self.before.repeats.keys() & self.after.repeats.keys())
        found = [(self.before.repeats[number], self.after.repeats[number]) for number in both]
        return [pair for pair in found if "skipped" not in (pair[0].verdict, pair[1].verdict)]

    @property
    def unpaired(self) -> int:
        """How many repeats only one of the runs has."""
        return len(self.before.repeats.keys() ^ self.after.repeats.keys())

    @property
    def expects_other(self) -> bool:
        """True if the scenario expects something else than before, as far as both runs say what it expects."""
        return "" != self.before.expectations != self.after.expectations != ""

    @property
    def changed_checks(self) -> list[str]:
        """What fails now and did not: `name: message` of each check, or the cause where no check says it.

        Where the same checks fail as before, those that do.
        """
        failed = self.after.failed
        changed = [name for name in failed if name not in self.before.failed] or list(failed)
        lines = [f"{name}: {failed[name]}" if failed[name] else name for name in changed]
        return lines or ([self.after.cause] if self.after.cause else [])


@dataclass(frozen=True)
class Pairing:
    """The scenarios of two runs.

    pairs   of both, in the order of the later run
    gone    of the earlier run: they are not in the later one, or were skipped there and not before
    added   of the later run alone
    """

    pairs: Sequence[Pair]
    gone: Sequence[ScenarioRuns]
    added: Sequence[ScenarioRuns]

    @property
    def by_key(self) -> Mapping[Key, Pair]:
        """The pairs by scenario."""
        return {pair.after.key: pair for pair in self.pairs}


def pair(before: Run, after: Run) -> Pairing:
    """The scenarios of two runs, paired. What stands for a file that could not be read is no scenario."""
    old = {key: scenario for key, scenario in before.scenarios.items() if not scenario.is_file}
    new = {key: scenario for key, scenario in after.scenarios.items() if not scenario.is_file}
    gone = [scenario for key, scenario in old.items() if key not in new or _stopped(scenario, new[key])]
    return Pairing(
        pairs=[Pair(old[key], scenario) for key, scenario in new.items() if key in old],
        gone=sorted(gone, key=lambda scenario: scenario.key),
        added=[scenario for key, scenario in new.items() if key not in old],
    )


def _stopped(before: ScenarioRuns, after: ScenarioRuns) -> bool:
    return after.verdict == "skipped" != before.verdict
