"""Runs the streams of a search: one after the other in this process, or several in worker processes.

An app is imported in a process of its own for each stream.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from harness.dialects.load import load_graph
from harness.errors import HarnessError
from harness.explore.search import STREAMS, Cover, Found, Plan, Reached, Tell, search
from harness.scenario import app_process
from harness.scenario.model import Scenario, load_request
from harness.settings import Projects, Settings


def run_streams(scenario: Scenario, plan: Plan, projects: Projects, jobs: int, tell: Tell) -> None:
    """Run all streams, and tell what they find and have done.

    Raises:
        HarnessError: the search is not possible.
        KeyboardInterrupt: it was asked to end.
    """
    work = partial(_stream, plan)
    if jobs == 1:
        for number in range(STREAMS):
            work(number, scenario, projects.of(scenario.file), partial(_received, tell))
        return
    from harness.workers.pool import WorkerPool

    pool = WorkerPool(jobs, projects, work=work)
    try:
        for result in pool.run([scenario] * STREAMS):
            if result.outcome is not None:
                _received(tell, result.outcome)
    finally:
        pool.close()


def _received(tell: Tell, told: Any) -> None:
    """Pass on what a stream tells, and raise its error."""
    if isinstance(told, HarnessError):
        raise told
    if isinstance(told, Found | Reached | Cover):
        tell(told)
    else:  # the outcome of a process that died
        text = told.observed.error["message"]
        tell(Reached(-1, ended=True, problem=text))


def _stream(
    plan: Plan, number: int, scenario: Scenario, settings: Settings, tell: Callable[[Any], None]
) -> None:
    """Run one stream. An error is told, not raised: the process may be another one."""
    scenario = scenario.whole()
    if app_process.concerns(scenario):
        app_process.told_by(partial(_searched, plan, number, scenario, settings), tell)
    else:
        _searched(plan, number, scenario, settings, tell)


def _searched(
    plan: Plan, number: int, scenario: Scenario, settings: Settings, tell: Callable[[Any], None]
) -> None:
    try:
        graph = load_graph(load_request(scenario, settings), scenario.dialect)
        search(number, scenario, settings, graph, plan, tell)
    except HarnessError as error:
        tell(error)
