"""The memory of a run besides its results: how its conversation went on, and what was checked of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.api.conversation import Beginning
    from harness.scenario.model import Expectations
    from harness.scenario.outcome import CheckResult, Outcome, Verdict


@dataclass
class Moment:
    """The memory of a run besides its results.

    Attributes:
        beginning: how the conversation went so far.
        outcome: the outcome of the run.
        listener: called with each run of the conversation.
        checks: the results of the checks so far, and the worst `verdict` of them.
        is_continued: the conversation went on.
    """

    beginning: Beginning
    outcome: Outcome
    listener: Listener | None
    checks: list[CheckResult] = field(default_factory=list)
    verdict: Verdict = "passed"
    is_continued: bool = False

    def judged(self, failure: str) -> Outcome:
        """Return the outcome with the checks so far. `failure` is why the test around it failed; "" if it passed."""
        verdict = "failed" if failure and self.verdict == "passed" else self.verdict
        score = 1.0 if verdict == "passed" else 0.0
        checks = [replace(check, span=None) for check in self.checks]  # they are written in no scenario file
        return replace(self.outcome, checks=checks, verdict=verdict, score=score, reason=failure, span=None)

    def left_over(self) -> list[str]:
        """Return a text for each stub that was not used, unless that is allowed."""
        return [] if self.beginning.keys.get("allow_unused") else list(self.outcome.observed.unused)

    async def run_custom_checks(self, expect: Expectations) -> None:
        """Call the functions of `custom`, and keep their verdicts."""
        from harness.scenario.model import import_folders
        from harness.scenario.turns import run_custom_checks

        observed, scenario = self.outcome.observed, self.beginning.scenario({})
        observed.custom_verdicts.clear()
        folders = import_folders(scenario, self.beginning.settings)
        await run_custom_checks(observed, expect, scenario, self.outcome.seed, folders)

    def written(self, name: str | None) -> str:
        """Return the scenario file of the conversation."""
        from harness.api.callables import WORLD_KEYS
        from harness.api.given import path_of
        from harness.authoring.expected import expectations
        from harness.authoring.world import exchanges, given_in, world_of
        from harness.authoring.writer import file_text
        from harness.graph.effects import EFFECTS
        from harness.report.traces import restored
        from harness.scenario.redaction import secrets_of

        began = self.beginning
        keys, *later = [{**began.keys, **began.turns[0]}, *began.turns[1:]]
        answered = {path for callables in began.callables for path in callables}
        by_name = [effect.key for effect in EFFECTS.values() if effect.stubs == "name"]
        stubbed = {
            (key, name)
            for part in (keys, *later)
            for key in by_name
            for name, entry in part.get(key, {}).items()
            if not isinstance(entry, str) or (key, name) in answered
        }
        real = {
            key: named
            for key in by_name
            if (
                named := {
                    name: item for name, item in keys.get(key, {}).items() if (key, name) not in stubbed
                }
            )
        }
        events = [*restored(self.outcome.events)]
        world = world_of(
            exchanges(events),
            lambda each: EFFECTS[each.kind].stubs == "name" and each.entry not in stubbed,
        )
        world |= {key: {**world.get(key, {}), **named} for key, named in real.items()}
        own = {key: value for key, value in began.keys.items() if key not in WORLD_KEYS}
        expect = expectations(self.outcome.observed, self.outcome.observed)
        secrets = secrets_of(began.scenario({}), began.settings)
        written = secrets.data(
            {**own, "name": name or own["name"], **given_in(events), **world, "expect": expect}
        )
        return file_text({"harness": 1, "manifest": path_of(began.manifest, began.file.parent)}, [written])


Listener = Callable[[Moment], None]
