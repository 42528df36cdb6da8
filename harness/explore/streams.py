"""Runs the streams of a search, and shrinks what they find: here, or in several worker processes.

An app is imported in a process of its own for each task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from harness.dialects.load import load_graph
from harness.errors import FormatError, ManifestError, Problem, SourceError, WorkerDied
from harness.explore.attempt import Attempts, Plan
from harness.explore.search import Cover, Found, Reached, Stream, Tell, shrunk
from harness.scenario import app_process
from harness.scenario.model import Scenario, load_request
from harness.settings import Projects, Settings
from harness.workers.executor import OpenExecutor

Task = int | Found
"""The number of a stream to search, or what is to be shrunk."""


def run_tasks(
    tasks: Sequence[Task],
    scenario: Scenario,
    plan: Plan,
    projects: Projects,
    open_executor: OpenExecutor,
    tell: Tell,
) -> None:
    """Do these tasks, and tell what they find and have done.

    Raises:
        SourceError: the search is not possible.
        KeyboardInterrupt: it was asked to end.
    """
    work = partial(_work, plan, tuple(tasks))
    executor = open_executor(work) if len(tasks) > 1 else None
    if executor is None:
        for number in range(len(tasks)):
            work(number, scenario, projects.of(scenario.file), partial(_received, tell))
        return
    with closing(executor):
        for result in executor.run([scenario] * len(tasks)):
            if result.outcome is not None:
                _received(tell, result.outcome)


@dataclass(frozen=True)
class _Refused:
    """The error of a task, which another process can raise again."""

    of_manifest: bool
    problems: tuple[Problem, ...]

    def error(self) -> SourceError:
        return (ManifestError if self.of_manifest else FormatError)(self.problems)


def _received(tell: Tell, told: Any) -> None:
    """Pass on what a task tells, and raise its error."""
    if isinstance(told, _Refused):
        raise told.error()
    if isinstance(told, Found | Reached | Cover):
        tell(told)
    else:  # the outcome of a process that died: what it did not search is not known to be sound
        raise _died(told.observed.error["message"]).error()


def _died(text: str) -> _Refused:
    return _Refused(False, (Problem(WorkerDied.code, text),))


def _work(
    plan: Plan,
    tasks: Sequence[Task],
    number: int,
    scenario: Scenario,
    settings: Settings,
    tell: Callable[[Any], None],
) -> None:
    """Do a task. An error is told, not raised: the process may be another one."""
    scenario = scenario.whole()
    do = partial(_do, plan, tasks[number], scenario, settings)
    if app_process.concerns(scenario):
        try:
            app_process.told_by(do, tell)
        except WorkerDied as error:
            tell(_died(str(error)))
    else:
        do(tell)


def _do(plan: Plan, task: Task, scenario: Scenario, settings: Settings, tell: Callable[[Any], None]) -> None:
    try:
        graph = load_graph(load_request(scenario, settings), scenario.dialect)
        attempts = Attempts(scenario, settings, graph, plan)
        if isinstance(task, Found):
            tell(shrunk(task, attempts))
        else:
            Stream(task, attempts, tell).search()
    except SourceError as error:
        tell(_Refused(isinstance(error, ManifestError), tuple(error.problems)))
