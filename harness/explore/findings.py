"""Findings: what broke a law, and the shortest scenario that shows it again.

They are kept in the folder `.harness/explore` of the project, which git ignores, and tried again the next time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from harness.errors import SourceError
from harness.explore.laws import Breach, breach, check_of, failure
from harness.explore.search import Found
from harness.explore.subject import Subject
from harness.explore.written import Keys, forever, keys_of, shortened
from harness.graph.effects import EFFECTS
from harness.graph.model import Graph
from harness.report import encoding
from harness.report.traces import restored
from harness.scenario import SUFFIXES
from harness.scenario.load import load_file
from harness.scenario.model import Exploration, Scenario
from harness.scenario.outcome import Outcome
from harness.scenario.run import run_scenario
from harness.settings import Settings, Traces
from harness.source.display import clip
from harness.source.document import relative_path

FORMAT: Final = "harness-explore-known/1"


@dataclass(frozen=True)
class Finding:
    """A breach, with the scenario that shows it.

    Attributes:
        id: of its cause, the same in every search.
        breach: what broke which law.
        keys: the scenario.
        runs_until: the runs of all streams before it was found; 0 if it was known before.
        seconds: the real seconds until then.
        file: where the scenario is written.
        reason: why no scenario shows it, and none is written; "" if one does.
    """

    id: str
    breach: Breach
    keys: Keys
    runs_until: int
    seconds: float
    file: Path
    reason: str

    @property
    def steps(self) -> int:
        """The inputs and answers of its scenario."""
        world = (self.keys.get(effect.key) for effect in EFFECTS.values())
        return (len(self.keys.get("turns", ())) or 1) + sum(map(_answers, world))


def _answers(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(map(_answers, value.values())) if value.keys() - {"return", "times", "args"} else 1
    return len(value) if isinstance(value, list) else 0


def unconfirmed(found: Found, subject: Subject, out: Path) -> Finding:
    """Return a finding whose scenario has not been run."""
    broken = found.breach
    keys: Keys = {
        "name": clip(f"{broken.type}: {broken.cause}", 100),
        "description": "Found by `harness explore`. It fails until the agent is mended.",
        **subject.keys_for(found.run.events),
        **keys_of(found.run, subject.scenario, subject.world),
        "expect": dict(broken.expect) or {"status": "completed"},
    }
    file = _file(identity(broken), subject, out)
    return Finding(identity(broken), broken, keys, found.runs_until, found.seconds, file, _NOT_RUN)


def confirmed(finding: Finding, subject: Subject) -> Finding | None:
    """Return a finding with the shortest scenario that shows it, or why none does.

    None if a run that seemed endless ends, beyond the limit of the search.
    """
    broken = finding.breach

    def why_not(keys: Keys, times: int = 1) -> str:
        """Return what a scenario does instead of showing it; "" if it shows it."""
        try:
            outcome = subject.trial(finding.file, {**keys, "allow_unused": True}, times)
        except SourceError as error:
            return f"its scenario is not valid: {str(error).splitlines()[0]}"
        if shows(outcome, broken):
            return ""
        failed = outcome.observed.error
        wrong = failed["message"] if failed else " ".join(x.message for x in outcome.checks if not x.passed)
        return _PASSES if outcome.verdict == "passed" else f"its scenario fails otherwise: {clip(wrong, 200)}"

    is_endless, keys, reason = broken.type == "endless", finding.keys, ""
    for each in [*(forever(keys, only) for only in (True, False) if is_endless), keys]:
        if not (reason := why_not(each)):
            keys = shortened(each, subject.declared, lambda shorter: not why_not(shorter))
            reason = why_not(keys, _MUCH_LONGER) if is_endless else ""
            break
    if is_endless and reason == _PASSES:
        return None
    return replace(finding, keys=keys, reason=reason)


_MUCH_LONGER: Final = 10
"""A run that seems endless still is after so many times the visits of a search."""
_NOT_RUN: Final = "its scenario was not run: the search was interrupted"
_PASSES: Final = "its scenario passes: what other runs left behind in the process may be the cause"


def identity(broken: Breach) -> str:
    """Return the id of a breach: words for people, and a digest of its cause."""
    words = re.sub(r"[^a-z0-9]+", "-", f"{broken.type} {broken.about}".lower()).strip("-")
    return f"{words[:50].rstrip('-')}-{sha256(broken.key.encode()).hexdigest()[:6]}"


def shows(outcome: Outcome, broken: Breach) -> bool:
    """True if the run of a scenario fails by this breach."""
    if outcome.verdict != "failed":
        return False
    if not broken.expect:
        return (
            outcome.observed.status in ("failed", "timeout") and failure(outcome.observed).key == broken.key
        )
    return any(not each.passed and check_of(each, broken.expect) for each in outcome.checks)


@dataclass(frozen=True)
class Known:
    """The scenarios of findings by their ids, in `file`."""

    file: Path
    scenarios: Mapping[str, Keys]

    @classmethod
    def of(cls, subject: Subject, project: Path) -> Known:
        """Return what is known of an agent, in a project. A file that cannot be read counts as empty."""
        folder = project / ".harness" / "explore"
        path = relative_path(subject.manifest.resolve(), project)
        digest = sha256(f"{path}::{subject.name}".encode()).hexdigest()[:8]
        file = folder / f"{subject.manifest.name.partition('.')[0]}-{digest}.json"
        try:
            found: Any = json.loads(file.read_text(encoding="utf-8"))
            scenarios = found["findings"] if found["format"] == FORMAT else {}
            return cls(file, {str(each): dict(keys) for each, keys in scenarios.items()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls(file, {})

    def write(self, scenarios: Mapping[str, Keys]) -> None:
        """Replace what is known; nothing is written where nothing was and is known."""
        if not scenarios and not self.scenarios:
            return
        folder = self.file.parent
        folder.mkdir(parents=True, exist_ok=True)
        (folder.parent / ".gitignore").write_text("*\n", encoding="utf-8")
        text = json.dumps({"format": FORMAT, "findings": dict(scenarios)}, ensure_ascii=False, indent=1)
        encoding.replace(self.file, text.encode())


@dataclass(frozen=True)
class Earlier:
    """A finding of an earlier exploration, whose scenario is run again."""

    id: str
    scenario: Scenario


@dataclass(frozen=True)
class Again:
    """An earlier finding that the agent still shows."""

    id: str
    breach: Breach


def earlier(known: Known, subject: Subject, out: Path) -> Iterator[Earlier]:
    """Yield the findings of earlier explorations, as far as their scenarios are still valid."""
    for id_, keys in known.scenarios.items():
        times = _MUCH_LONGER if id_.startswith("endless") else 1
        with suppress(SourceError):
            yield Earlier(id_, subject.unwritten(_file(id_, subject, out), keys, times))


def tried_again(one: Earlier, settings: Settings, graph: Graph, laws: Exploration) -> Again | None:
    """Run the scenario of an earlier finding; None if the agent does not show it any more."""
    [outcome] = run_scenario(one.scenario, replace(settings, traces=Traces.ALL))
    events, has_faults = [*restored(outcome.events)], one.id.startswith("unhandled-fault")
    broken = breach(outcome.observed, graph, events, laws, has_faults)
    is_same = outcome.verdict == "failed" and broken is not None and identity(broken) == one.id
    return Again(one.id, broken) if is_same and broken is not None else None


def known_before(again: Again, known: Known, subject: Subject, out: Path) -> Finding:
    """Return an earlier finding that the agent still shows."""
    keys, file = known.scenarios[again.id], _file(again.id, subject, out)
    return Finding(again.id, again.breach, keys, 0, 0.0, file, "")


def _file(id_: str, subject: Subject, out: Path) -> Path:
    return out / f"{subject.manifest.name.partition(':')[0].partition('.')[0]}-{id_}{SUFFIXES[0]}"


def written(finding: Finding, subject: Subject) -> Finding:
    """Write a finding to its file, unless that is there and shows it; to another, if it is and does not."""
    first, number = finding.file, 1
    file = first
    while file.exists():
        if _shows_in(file, finding, subject):
            return replace(finding, file=file)
        number += 1
        file = first.with_name(first.name.replace(SUFFIXES[0], f"-{number}{SUFFIXES[0]}"))
    subject.target(file).write([finding.keys])
    return replace(finding, file=file)


def _shows_in(file: Path, finding: Finding, subject: Subject) -> bool:
    """True if a scenario in a file still shows a finding; a person may have changed it."""
    try:
        scenarios = load_file(file, subject.settings).scenarios
    except SourceError:
        return False
    outcomes = (outcome for each in scenarios for outcome in run_scenario(each, subject.settings))
    return any(shows(outcome, finding.breach) for outcome in outcomes)
