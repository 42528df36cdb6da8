"""An exploration of one agent: its streams, what they found together, and the scenarios that show it.

streams (search.py) ─▶ one finding for each cause, the smallest ─▶ shortened, run again (written.py) ─▶ a file
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from harness.errors import SourceError
from harness.explore.attempt import STREAMS, Feature, Plan
from harness.explore.cover import suite
from harness.explore.known import Known
from harness.explore.laws import Breach, breach, check_of, failure
from harness.explore.search import Cover, Found, Reached
from harness.explore.streams import run_tasks
from harness.explore.subject import Subject
from harness.explore.unreached import Unreached, coverage, unreached
from harness.explore.written import Keys, forever, keys_of, shortened
from harness.graph.effects import EFFECTS
from harness.report.traces import restored
from harness.scenario import SUFFIXES
from harness.scenario.load import load_file
from harness.scenario.outcome import Outcome
from harness.scenario.run import run_scenario
from harness.settings import Projects
from harness.source.display import clip
from harness.time.real import real
from harness.workers.executor import OpenExecutor

_MOST_VISITS: Final = 60_000
"""Visits of nodes in which the scenario of a finding is shortened: that of an endless run takes many."""


@dataclass(frozen=True)
class Finding:
    """A breach, with the scenario that shows it.

    Attributes:
        id: of its cause, the same in every search.
        breach: what broke which law.
        keys: the scenario.
        runs_until: the runs of all streams before it was found.
        seconds: the real seconds until then.
    """

    id: str
    breach: Breach
    keys: Keys
    runs_until: int
    seconds: float

    @property
    def steps(self) -> int:
        """The inputs and answers of its scenario."""
        world = (self.keys.get(effect.key) for effect in EFFECTS.values())
        return (len(self.keys.get("turns", ())) or 1) + sum(map(_answers, world))


def _answers(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(map(_answers, value.values())) if value.keys() - {"return", "times", "args"} else 1
    return len(value) if isinstance(value, list) else 0


def confirmed(found: Found, subject: Subject, out: Path) -> Finding | None:
    """Return a finding with the shortest scenario that shows it; None if no scenario does."""
    broken = found.breach
    if broken.type == "crash" and found.faults:
        broken = replace(broken, type="unhandled-fault")
    id_ = identity(broken)
    file = _file(id_, subject, out)
    keys: Keys = {
        "name": clip(f"{broken.type}: {broken.cause}", 100),
        "description": "Found by `harness explore`. It fails until the agent is mended.",
        **subject.keys_for(found.events),
        **keys_of(found.events, subject.is_app, subject.world),
    }
    expect = dict(broken.expect) or {"status": "completed"}

    visits = 0

    def is_same(shorter: Keys) -> bool:
        nonlocal visits
        if visits > _MOST_VISITS:
            return False
        outcome = subject.trial(file, {**shorter, "allow_unused": True, "expect": expect})
        visits += sum(outcome.observed.visits.values()) if outcome is not None else 0
        return outcome is not None and shows(outcome, broken)

    candidates = [*(forever(keys, each) for each in (True, False) if broken.type == "endless"), keys]
    shown = next(filter(is_same, candidates), None)
    if shown is None:
        return None
    keys = shortened(shown, subject.declared, is_same)
    written = {**keys, "expect": expect}
    outcome = subject.trial(file, written)
    if outcome is None or not shows(outcome, broken):
        return None
    return Finding(id_, broken, written, found.runs_until, found.seconds)


def identity(broken: Breach) -> str:
    """Return the id of a breach: words for people, and a digest of its cause."""
    words = re.sub(r"[^a-z0-9]+", "-", f"{broken.type} {broken.about}".lower()).strip("-")
    return f"{words[:50].rstrip('-')}-{sha256(broken.key.encode()).hexdigest()[:6]}"


def shows(outcome: Outcome, broken: Breach) -> bool:
    """True if the run of a scenario fails by this breach."""
    if outcome.verdict != "failed":
        return False
    if not broken.expect:
        return outcome.observed.status in ("failed", "timeout") and (
            failure(outcome.observed).key == broken.key
        )
    return any(not each.passed and check_of(each, broken.expect) for each in outcome.checks)


@dataclass
class Merged:
    """The work of all streams so far, together."""

    found: dict[str, list[Found]] = field(default_factory=dict)
    reached: dict[int, Reached] = field(default_factory=dict)
    covers: list[Cover] = field(default_factory=list)

    def add(self, told: Found | Reached | Cover) -> None:
        """Take over what a stream tells."""
        if isinstance(told, Found):
            self.found.setdefault(told.breach.key, []).append(told)
        elif isinstance(told, Cover):
            self.covers.append(told)
        else:
            self.reached[told.stream] = told

    @property
    def runs(self) -> int:
        """The runs so far, without those that shrink."""
        return sum(each.runs for each in self.reached.values())

    @property
    def features(self) -> set[Feature]:
        """The parts of the graph that were taken."""
        return {feature for each in self.reached.values() for feature in each.features}

    @property
    def shape(self) -> Mapping[str, Any]:
        """The parts of the graph."""
        return next((each.shape for each in self.reached.values() if each.shape), {})

    def smallest(self) -> list[Found]:
        """Return one finding for each cause, in the order in which they would be found by turns of the streams."""
        best = [min(of_cause, key=lambda each: (each.size, each.stream)) for of_cause in self.found.values()]
        first = {
            key: min(each.runs_until * STREAMS + each.stream for each in of_cause)
            for key, of_cause in self.found.items()
        }
        found = [
            replace(
                each,
                runs_until=first[each.breach.key],
                seconds=min(x.seconds for x in self.found[each.breach.key]),
            )
            for each in best
        ]
        return sorted(found, key=lambda each: (each.runs_until, each.breach.key))


@dataclass
class Explored:
    """The result of an exploration.

    Attributes:
        subject: what was explored.
        findings: one for each cause, each with its file.
        coverage: [taken, all] of `nodes`, `edges` and `branches`.
        unreached: the parts that no run took.
        runs: the number of runs, without those that shrink findings.
        seconds: real seconds of the search.
        notes: what a user should know besides.
        covered: the scenarios written for `--cover`.
    """

    subject: Subject
    findings: dict[Path, Finding] = field(default_factory=dict)
    coverage: Mapping[str, list[int]] = field(default_factory=dict)
    unreached: list[Unreached] = field(default_factory=list)
    runs: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    covered: list[Keys] = field(default_factory=list)
    interrupted: bool = False


Progress = Callable[[Subject, Merged], None]


def explore(
    subject: Subject,
    plan: Plan,
    projects: Projects,
    project: Path,
    *,
    out: Path,
    cover: Path | None,
    progress: Progress,
    open_executor: OpenExecutor = lambda _work: None,
) -> Explored:
    """Explore an agent, and write a scenario for each finding to the folder `out`. `project` keeps what is known.

    Ctrl-C ends the search; what was found until then is written.

    Raises:
        HarnessError: it cannot be explored.
    """
    merged, done, began = Merged(), Explored(subject), real.monotonic()
    before: dict[str, Finding] = {}

    def tell(told: Found | Reached | Cover) -> None:
        merged.add(told)
        progress(subject, merged)

    plan = replace(plan, laws=subject.laws, keeps_covers=cover is not None)
    known = Known.of(subject, project)
    try:
        before = dict(_still_known(known, subject, out))
        run_tasks(range(STREAMS), subject.scenario, plan, projects, open_executor, tell)
    except KeyboardInterrupt:
        done.interrupted = True
    done.seconds = real.monotonic() - began
    smallest = merged.smallest()
    try:
        shorter: dict[str, Found] = {}

        def keep(told: Found | Reached | Cover) -> None:
            if isinstance(told, Found):
                shorter[told.breach.key] = told

        run_tasks(smallest, subject.scenario, plan, projects, open_executor, keep)
    except KeyboardInterrupt:
        done.interrupted = True
    smallest = [shorter.get(each.breach.key, each) for each in smallest]
    found = {**before, **{each.id: each for each in _new(smallest, subject, out, done)}}
    known.write({each.id: each.keys for each in found.values()})
    done.findings = {_written(each, subject, out): each for each in found.values()}
    done.runs, features = merged.runs, merged.features
    done.coverage = coverage(merged.shape, features)
    done.unreached = list(unreached(merged.shape, subject.graph, subject.manifest, features))
    if plan.faults and not all(each.draws_faults for each in merged.reached.values()):
        done.notes.append(NO_HANDLING)
    done.notes += dict.fromkeys(each.problem for each in merged.reached.values() if each.problem)
    if cover is not None and not done.interrupted:
        done.covered = list(suite(merged.covers, subject, cover))
        if done.covered:
            subject.write(cover, done.covered)
    return done


def _still_known(known: Known, subject: Subject, out: Path) -> Iterator[tuple[str, Finding]]:
    """Yield the findings of earlier explorations that the agent still shows."""
    for id_, keys in known.scenarios.items():
        outcome = subject.trial(_file(id_, subject, out), keys)
        events = [*restored(outcome.events)] if outcome is not None else []
        if outcome is None or outcome.verdict != "failed":
            continue
        broken = breach(outcome.observed, subject.graph, events, subject.laws)
        if broken is not None:
            if id_.startswith("unhandled-fault") and broken.type == "crash":
                broken = replace(broken, type="unhandled-fault")
            if identity(broken) == id_:
                yield id_, Finding(id_, broken, keys, 0, 0.0)


def _new(smallest: Sequence[Found], subject: Subject, out: Path, done: Explored) -> Iterator[Finding]:
    """Yield what was found and a scenario shows. What is no finding is noted."""
    for each in smallest:
        finding = confirmed(each, subject, out)
        if finding is None:
            text = f"{each.breach.cause}: no scenario shows it again, so it is left out"
            done.notes.append(f"{text} (runs may leave something behind in the process)")
        else:
            yield finding


NO_HANDLING: Final = (
    "it handles no fault of models and services, so none is drawn (--faults KIND,… draws them)"
)


def _file(id_: str, subject: Subject, out: Path) -> Path:
    return out / f"{subject.manifest.name.partition(':')[0].partition('.')[0]}-{id_}{SUFFIXES[0]}"


def _written(finding: Finding, subject: Subject, out: Path) -> Path:
    """Return the file of a finding: one that shows it already, or a new one."""
    file, number = _file(finding.id, subject, out), 1
    while file.exists():
        if _shows_in(file, finding, subject):
            return file
        number += 1
        file = _file(f"{finding.id}-{number}", subject, out)
    subject.write(file, [finding.keys])
    return file


def _shows_in(file: Path, finding: Finding, subject: Subject) -> bool:
    """True if the scenario in a file still shows a finding; a person may have changed it."""
    try:
        scenarios = load_file(file, subject.settings).scenarios
    except SourceError:
        return False
    outcomes = [outcome for each in scenarios for outcome in run_scenario(each, subject.settings)]
    return any(shows(outcome, finding.breach) for outcome in outcomes)
