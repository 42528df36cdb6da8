"""Tries what is known, runs the streams of a search, and shrinks what they find: here, or in worker processes.

An app is imported in a process of its own for each task.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from harness.dialects.load import load_graph
from harness.errors import ManifestError, SourceError, WorkerDied
from harness.explore.attempt import Attempts, Plan
from harness.explore.findings import Again, Earlier, tried_again
from harness.explore.search import Cover, Found, Reached, Stream, shrunk
from harness.scenario import app_process
from harness.scenario.model import Scenario, load_request
from harness.scenario.outcome import Outcome
from harness.settings import Projects, Settings
from harness.workers.executor import OpenExecutor

Task = int | Found | Earlier
"""The number of a stream to search, what is to be shrunk, or what is tried again."""
Told = Reached | Cover | Found | Again
Tell = Callable[[Told], None]


def run_tasks(
    scenario: Scenario,
    plan: Plan,
    projects: Projects,
    open_executor: OpenExecutor,
    tasks: Sequence[Task],
    tell: Tell,
) -> list[str]:
    """Do these tasks, tell what they find and have done, and return why some of them ended before.

    Raises:
        ManifestError: the manifest is refused.
        KeyboardInterrupt: it was asked to end.
    """
    problems: dict[str, None] = {}

    def receive(told: Any) -> None:
        if isinstance(told, ManifestError):
            raise told
        if isinstance(told, Told):
            tell(told)
        else:  # an error, its text, or the outcome of a process that died
            error = told.observed.error if isinstance(told, Outcome) else None
            problems[error["message"] if error else str(told)] = None

    work = partial(_work, plan, tuple(tasks))
    executor = open_executor(work) if len(tasks) > 1 else None
    if executor is None:
        for number in range(len(tasks)):
            work(number, scenario, projects.of(scenario.file), receive)
        return list(problems)
    with closing(executor):
        for result in executor.run([scenario] * len(tasks)):
            if result.outcome is not None:
                receive(result.outcome)
    return list(problems)


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
    if not app_process.concerns(scenario):
        return do(tell)
    try:
        app_process.told_by(partial(_silently, do), tell)
    except WorkerDied as error:
        tell(str(error))


def _silently(do: Callable[[Tell], None], tell: Tell) -> None:
    """Do a task in a process of its own, which shows nothing of what its thousands of runs print."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    do(tell)


def _do(plan: Plan, task: Task, scenario: Scenario, settings: Settings, tell: Callable[[Any], None]) -> None:
    try:
        graph = load_graph(load_request(scenario, settings), scenario.dialect)
        if isinstance(task, Earlier):
            if (again := tried_again(task, settings, graph, plan.laws)) is not None:
                tell(again)
            return
        attempts = Attempts(scenario, settings, graph, plan)
        if isinstance(task, Found):
            tell(shrunk(task, attempts))
        else:
            Stream(task, attempts, tell).search()
    except SourceError as error:
        tell(error)
