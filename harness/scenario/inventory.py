"""What cassettes there are, and what is wrong with them: found by replaying the scenarios that name them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.errors import CassetteError
from harness.recording.folder import CassetteFolder, cassette_names
from harness.scenario.cassette import base_of, cassette_name
from harness.scenario.model import Scenario
from harness.scenario.provenance import fingerprints
from harness.scenario.recording import recording_session
from harness.scenario.recording_age import age_days, is_too_old
from harness.scenario.redaction import redacted_output, secrets_of
from harness.scenario.run import run_once
from harness.scenario.verdict import could_not_be_judged
from harness.settings import Projects, Settings


@dataclass
class Listed:
    """A cassette, or the lack of one that a scenario names.

    age_days   None when the recording does not say its day
    too_old    it is over `max_age_days`, or not known where that is set
    calls      recorded HTTP requests, MCP messages and replies of people, over all recordings
    unused     how many of those the scenarios did not use
    changed    files of the agent that are not what they were when it was recorded
    scenarios  the ids of those that name it; none: it is an orphan
    problem    why it does not replay
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

    @property
    def orphaned(self) -> bool:
        """No scenario names it."""
        return not self.scenarios

    @property
    def is_well(self) -> bool:
        """There is nothing to say about it."""
        return not (self.orphaned or self.unused or self.changed or self.too_old or self.problem)


def inventory(
    scenarios: Iterable[Scenario], projects: Projects, *, orphans_of: Path | None = None
) -> list[Listed]:
    """The cassettes that these scenarios name, by name, and all of the project around the folder `orphans_of`.

    Nothing real is asked.
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
            if not using and of_root.get(base_of(name)):
                continue  # a variant's: who scores it replays it
            # With `record = true` every scenario may have one, and need not.
            if name in there or any(scenario.cassette for scenario in using):
                listed.append(_listed(name, using, settings_of[root]))
    return listed


def _listed(name: str, users: Sequence[Scenario], settings: Settings) -> Listed:
    found = Listed(name, settings.cassettes / name)
    found.scenarios = [scenario.id for scenario in users]
    try:
        folder = CassetteFolder(settings.cassettes, name)
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
    settings = replace(settings, max_age_days=math.inf)  # an old one is replayed all the same
    left = [_replayed(found, scenario, settings) for scenario in users if scenario.skip is None]
    found.unused = len(set.intersection(*left)) if left else 0
    repeats = max((scenario.repeat for scenario in users), default=len(recordings))
    found.unused += sum(map(len, recordings[repeats:]))
    return found


def _replayed(found: Listed, scenario: Scenario, settings: Settings) -> set[tuple[int, str, int]]:
    """What replaying a scenario leaves over: recording, file and line. What goes wrong is noted."""
    left: set[tuple[int, str, int]] = set()
    secrets = secrets_of(scenario, settings)
    with redacted_output(secrets), recording_session(scenario, settings, secrets) as cassette:
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
                # A cassette that vcrpy recorded alone says nothing of files.
                changed = [file for file in {**then, **now} if then and now.get(file) != then.get(file)]
                found.changed += [file for file in changed if file not in found.changed]
    return left
