"""The list of a project's cassettes with their problems, found by replaying the scenarios that name them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.errors import CassetteError, FormatError
from harness.recording.folder import CassetteFolder, cassette_names
from harness.scenario.cassette import baseline_cassette, cassette_name
from harness.scenario.model import Scenario
from harness.scenario.recording import age_days, fingerprints, is_too_old, recording_session
from harness.scenario.redaction import redacted_output, secrets_of
from harness.scenario.run import run_once
from harness.scenario.score import could_not_be_judged
from harness.settings import Projects, Settings


@dataclass
class CassetteStatus:
    """A cassette, or a missing one that a scenario names.

    age_days    None if the recording has no date
    too_old     its age exceeds `max_age_days`, or is unknown where that is set
    calls       number of recorded HTTP requests, MCP messages and human replies, over all recordings
    unused      number of those that no scenario used
    changed     files of the agent that have changed since it was recorded
    scenarios   ids of the scenarios that name it; empty for an orphan
    problem     the reason why it cannot be replayed
    unfinished  number of calls left by recordings that did not come to their end
    """

    name: str
    folder: Path
    age_days: int | None = None
    too_old: bool = False
    recordings: int = 0
    calls: int = 0
    unused: int = 0
    changed: list[str] = field(default_factory=list)
    scenarios: list[str] = field(default_factory=list)
    problem: str = ""
    unfinished: int = 0

    @property
    def orphaned(self) -> bool:
        """True if no scenario names the cassette."""
        return not self.scenarios

    @property
    def is_healthy(self) -> bool:
        """True if there is nothing to report."""
        found = (self.orphaned, self.unused, self.changed, self.too_old, self.problem, self.unfinished)
        return not any(found)


def inventory(
    scenarios: Iterable[Scenario], projects: Projects, *, orphans_of: Path | None = None
) -> list[CassetteStatus]:
    """Return the cassettes that these scenarios name, sorted by name.

    With `orphans_of`, return also all other cassettes of the project around that folder. Nothing is requested
    from real services.
    """
    users: defaultdict[Path, defaultdict[str, list[Scenario]]] = defaultdict(lambda: defaultdict(list))
    settings_of: dict[Path, Settings] = {}
    if orphans_of is not None:
        whole = projects.around(orphans_of)
        settings_of[whole.cassettes] = whole
        users[whole.cassettes].update({name: [] for name in cassette_names(whole.cassettes)})
    for scenario in scenarios:
        settings = projects.of(scenario.file)
        name = cassette_name(scenario, settings)
        if name is not None:
            settings_of[settings.cassettes] = settings
            users[settings.cassettes][name].append(scenario)
    listed = []
    for root, of_root in users.items():
        there = set(cassette_names(root))
        for name, using in sorted(of_root.items()):
            if not using and of_root.get(baseline_cassette(name)):
                continue  # the cassette of a variant, which is replayed when variants are scored
            # With `record = true` every scenario may have a cassette, but need not.
            if name in there or any(scenario.cassette for scenario in using):
                listed.append(_status_of(name, using, settings_of[root]))
    return listed


def _status_of(name: str, users: Sequence[Scenario], settings: Settings) -> CassetteStatus:
    found = CassetteStatus(name, settings.cassettes / name)
    found.scenarios = [scenario.id for scenario in users]
    try:
        folder = CassetteFolder(settings.cassettes, name)
        found.unfinished = folder.calls_unfinished()
        recordings = [one for number in folder.numbers() if (one := folder.load(number)) is not None]
    except CassetteError as error:
        found.problem = str(error)
        return found
    if not recordings:
        found.problem = "not recorded"
        return found
    found.recordings = len(recordings)
    found.calls = sum(map(len, recordings))
    ages = [age for one in recordings if (age := age_days(one.metadata)) is not None]
    found.age_days = max(ages, default=None)
    found.too_old = is_too_old(found.age_days, settings)
    settings = replace(settings, max_age_days=math.inf)  # replay a recording that is too old, too
    try:
        whole = [scenario.whole() for scenario in users if scenario.skip is None]
    except FormatError as error:
        found.problem = str(error)
        return found
    left = [_unused_in_replay(found, scenario, settings) for scenario in whole]
    found.unused = len(set.intersection(*left)) if left else 0
    repeats = max((scenario.repeat for scenario in users), default=len(recordings))
    found.unused += sum(map(len, recordings[repeats:]))
    return found


def _unused_in_replay(
    found: CassetteStatus, scenario: Scenario, settings: Settings
) -> set[tuple[int, str, int]]:
    """Replay a scenario; return the unused interactions as (recording, file, line). Problems are set on `found`."""
    left: set[tuple[int, str, int]] = set()
    secrets = secrets_of(scenario, settings)
    with redacted_output(secrets):
        cassette = recording_session(scenario, settings, secrets)
        assert cassette is not None
        for repeat in range(scenario.repeat):
            backend, _ = cassette.open(repeat)
            result = run_once(scenario, settings, seed=scenario.seed + repeat, backend=backend)
            if could_not_be_judged(result.observed) and not found.problem:
                found.problem = secrets.text((result.observed.error or {}).get("message", "it cannot be run"))
            unused = backend.unused()
            left |= {(repeat, "http", interaction.line) for interaction in unused.http}
            left |= {(repeat, "human", at) for at in range(len(unused.human))}
            for name, exchanges in unused.mcp.items():
                left |= {(repeat, name, exchange.line) for exchange in exchanges}
            if result.graph is not None:
                now, then = (
                    fingerprints(result.graph.sources, scenario.file.parent),
                    backend.metadata.manifests,
                )
                # A cassette written by vcrpy alone has no fingerprints.
                changed = [file for file in {**then, **now} if then and now.get(file) != then.get(file)]
                found.changed += [file for file in changed if file not in found.changed]
    return left
