"""An exploration of one agent: its streams, what they found together, and the scenarios that show it.

streams (search.py) ─▶ one finding for each cause, the smallest ─▶ shortened, run again (findings.py) ─▶ a file
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from harness.explore.attempt import STREAMS, Feature, Plan
from harness.explore.coverage import Unreached, coverage, suite, unreached
from harness.explore.findings import (
    Again,
    Finding,
    Known,
    confirmed,
    earlier,
    identity,
    known_before,
    unconfirmed,
    written,
)
from harness.explore.search import Cover, Found, Reached
from harness.explore.streams import Told, run_tasks
from harness.explore.subject import Subject
from harness.explore.written import Keys
from harness.scenario.real_limit import progress
from harness.settings import Projects
from harness.time.real import real
from harness.workers.executor import OpenExecutor

NO_HANDLING: Final = (
    "it handles no fault of models and services, so none is drawn (--faults KIND,… draws them)"
)


@dataclass
class Merged:
    """The work of all streams so far, together."""

    found: dict[str, list[Found]] = field(default_factory=dict)
    reached: dict[int, Reached] = field(default_factory=dict)
    covers: list[Cover] = field(default_factory=list)

    def add(self, told: Told) -> None:
        """Take over what a stream tells."""
        if isinstance(told, Found):
            self.found.setdefault(told.breach.key, []).append(told)
        elif isinstance(told, Cover):
            self.covers.append(told)
        elif isinstance(told, Reached):
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
        found = [
            replace(
                min(of_cause, key=lambda each: (each.size, each.stream)),
                runs_until=min((each.runs_until - 1) * STREAMS + each.stream + 1 for each in of_cause),
                seconds=min(each.seconds for each in of_cause),
            )
            for of_cause in self.found.values()
        ]
        return sorted(found, key=lambda each: (each.runs_until, each.breach.key))


@dataclass
class Explored:
    """The result of an exploration.

    Attributes:
        subject: what was explored.
        findings: one for each cause.
        coverage: [taken, all] of `nodes`, `edges` and `branches`.
        unreached: the parts that no run took.
        runs: the number of runs, without those that shrink findings.
        seconds: real seconds of the search.
        notes: what a user should know besides.
        problems: why a part of the search did not take place.
        covered: the scenarios written for `--cover`.
        interrupted: it was asked to end.
    """

    subject: Subject
    findings: list[Finding] = field(default_factory=list)
    coverage: Mapping[str, list[int]] = field(default_factory=dict)
    unreached: list[Unreached] = field(default_factory=list)
    runs: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    covered: list[Keys] = field(default_factory=list)
    interrupted: bool = False


Watch = Callable[[Subject, Merged], None]
"""Is told how far a search is."""


def explore(
    subject: Subject,
    plan: Plan,
    projects: Projects,
    project: Path,
    *,
    out: Path,
    cover: Path | None,
    watch: Watch,
    open_executor: OpenExecutor = lambda _work: None,
) -> Explored:
    """Explore an agent, and write a scenario for each finding to the folder `out`. `project` keeps what is known.

    Ctrl-C ends the search, or what is done after it; what was found until then is kept.

    Raises:
        HarnessError: the manifest is refused, or a scenario cannot be written.
    """
    target = subject.target(cover) if cover is not None else None
    plan = replace(plan, laws=subject.laws, keeps_covers=cover is not None)
    known, merged, done, began = Known.of(subject, project), Merged(), Explored(subject), real.monotonic()
    do = partial(run_tasks, subject.scenario, plan, projects, open_executor)

    def tell(told: Told) -> None:
        merged.add(told)
        watch(subject, merged)

    def take(told: Told) -> None:
        if isinstance(told, Again):
            done.findings.append(known_before(told, known, subject, out))
        elif isinstance(told, Found):
            found[told.breach.key] = told

    with _until_interrupted(done):
        do(list(earlier(known, subject, out)), take)
        done.problems += do(range(STREAMS), tell)
    done.seconds = real.monotonic() - began
    shown = {each.id for each in done.findings}
    found = {each.breach.key: each for each in merged.smallest() if identity(each.breach) not in shown}
    with _until_interrupted(done):
        do(list(found.values()), take)
    _settle([unconfirmed(each, subject, out) for each in found.values()], done)
    kept = known.scenarios if done.interrupted else {}
    known.write({**kept, **{each.id: each.keys for each in done.findings if not each.reason}})
    done.findings = [each if each.reason else written(each, subject) for each in done.findings]
    _conclude(merged, plan, done)
    if target is not None and not done.interrupted:
        with _until_interrupted(done):
            done.covered = list(suite(merged.covers, subject, target.file))
        if done.covered:
            target.write(done.covered)
    return done


@contextmanager
def _until_interrupted(done: Explored) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        done.interrupted, progress.stopped = True, False  # what follows may be interrupted again


def _settle(left: list[Finding], done: Explored) -> None:
    """Add what was found to the findings, with its scenario. What is none after all is noted."""
    with _until_interrupted(done):
        while left:
            if (finding := confirmed(left[0], done.subject)) is None:
                done.notes.append(f"it ends after all, beyond the limit of a search: {left[0].breach.cause}")
            else:
                done.findings.append(finding)
            del left[0]
    done.findings += left


def _conclude(merged: Merged, plan: Plan, done: Explored) -> None:
    """Add what the streams did."""
    done.runs, features, subject = merged.runs, merged.features, done.subject
    done.coverage = coverage(merged.shape, features)
    done.unreached = list(unreached(merged.shape, subject.graph, subject.manifest, features))
    if plan.faults and not all(each.draws_faults for each in merged.reached.values()):
        done.notes.append(NO_HANDLING)
    done.notes += dict.fromkeys(each.problem for each in merged.reached.values() if each.problem)
    if not (done.runs or done.problems or done.interrupted):
        done.problems.append("no run took place: the time was over before the first")
