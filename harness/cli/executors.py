"""The choice of what runs the scenarios of a command: this process, or several."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.options import JOBS_WHILE_RECORDING
from harness.cli.selection import Selection
from harness.report.console import terminal_asker
from harness.scenario.model import Scenario
from harness.settings import Projects, RecordMode
from harness.workers.executor import Executor
from harness.workers.worker import Work

if TYPE_CHECKING:
    from harness.cluster.pool import ClusterPool
    from harness.recording.spending import Spending


def open_executor(
    jobs: int | None,
    projects: Projects,
    selection: Selection,
    *,
    to_stderr: bool = False,
    spending: Spending | None = None,
    one_by_one: bool = False,
    always: bool = False,
) -> Executor | None:
    """Return what runs the scenarios, or None if this process does.

    jobs      the number of processes; None: one, or `JOBS_WHILE_RECORDING`
    spending  counts the calls of real models, and has their budget
    always    let another process run them even if this one could
    """
    if projects.record_mode is not RecordMode.NONE:
        if projects.common(selection.files).cluster:
            told = "real models are called from this machine, which has the keys: the cluster is not used"
            click.echo(f"note: {told}", err=True)
        return _recording_pool(
            jobs or JOBS_WHILE_RECORDING, projects, selection, spending, to_stderr, one_by_one
        )
    if cluster := projects.common(selection.files).cluster:
        pool = _cluster_pool(cluster, projects)
        pool.prepare(selection.scenarios)  # tells what is wrong before the results of an earlier run go
        if not pool.threads:
            click.echo(f"{cluster} has no workers yet: waiting for them", err=True)
        return pool
    if (jobs or 1) == 1 and not always and not any(map(projects.isolates, selection.files)):
        return None
    from harness.workers.pool import WorkerPool

    return WorkerPool(jobs or 1, projects, stdout_to_stderr=to_stderr, one_by_one=one_by_one)


def threads_of(jobs: int | None, projects: Projects) -> int:
    """Return how many scenarios run at once, with this number of processes or on the cluster of the project."""
    if cluster := projects.around(Path.cwd()).cluster:
        return _cluster_pool(cluster, projects).threads or 1
    return jobs or 1


def executor_of(jobs: int, projects: Projects, scenario: Scenario, work: Work) -> Executor | None:
    """Return what does a work for a scenario, or None if this process does."""
    if cluster := projects.of(scenario.file).cluster:
        return _cluster_pool(cluster, projects, work)
    if jobs == 1:
        return None
    from harness.workers.pool import WorkerPool

    return WorkerPool(jobs, projects, work=work)


def _cluster_pool(address: str, projects: Projects, work: Work | None = None) -> ClusterPool:
    from harness.cluster.pool import ClusterPool

    return ClusterPool(address, projects, work=work)


def _recording_pool(
    jobs: int,
    projects: Projects,
    selection: Selection,
    spending: Spending | None,
    to_stderr: bool,
    one_by_one: bool,
) -> Executor | None:
    """Return the processes that call real systems; None for one scenario at a time, which may use the terminal."""
    if jobs == 1 or len(selection.scenarios) <= 1:
        return None
    from harness.recording.permits import Permits
    from harness.recording.spending import Spending
    from harness.scenario.outcome import PriceList
    from harness.workers.pool import WorkerPool

    settings = projects.common(selection.files)
    spending = spending or Spending(PriceList(settings.prices).cost)
    tell = partial(click.echo, err=True)
    permits = Permits(spending, settings.max_connections, terminal_asker(), tell)
    return WorkerPool(jobs, projects, stdout_to_stderr=to_stderr, one_by_one=one_by_one, permits=permits)
