"""Isolation under pytest: each scenario in a process of its own (`[tool.harness] isolation = "process"`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from harness.plugin.options import projects_of
from harness.workers.pool import WorkerPool

if TYPE_CHECKING:
    from harness.report.results import Record
    from harness.scenario.model import Scenario
    from harness.scenario.outcome import Outcome

_pool_key = pytest.StashKey[WorkerPool]()


def isolated_runs(scenario: Scenario, config: pytest.Config) -> Iterator[tuple[Outcome, Record]]:
    """Run a scenario in a process of its own, and yield its outcomes with their records.

    The session keeps the next process ready.
    """
    if _pool_key not in config.stash:
        pool = config.stash[_pool_key] = WorkerPool(1, projects_of(config), one_by_one=True)
        config.add_cleanup(pool.close)
    for ended in config.stash[_pool_key].run([scenario]):
        if ended.outcome is not None:
            yield ended.outcome, ended.record
