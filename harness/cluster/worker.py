"""The functions that a command calls on the workers of a cluster. Dask runs them in the process of the worker.

prepare    compares versions, and finds the project or says that it is missing ─▶ prepare again, with the archive
run_chunk  runs scenarios in a host, a process beside the worker
"""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from distributed import get_worker

from harness.cluster.host import Host, HostLost
from harness.cluster.job import Job, difference, versions
from harness.cluster.project import UnsafeArchive, unpack
from harness.time.real import real

FOLDER: Final = "harness-projects"
"""The folder of projects in the own folder of each worker."""

_prepared: Final[dict[tuple[str, str], tuple[Job, Path]]] = {}
"""By worker and job, where the project is. A process may have several workers."""
_MOST_JOBS: Final = 50
"""One that is forgotten is prepared again when it is needed."""
_idle: Final[list[Host]] = []
"""Hosts without work. Each thread of a worker takes one."""


class Prepared(NamedTuple):
    """The answer of a worker: ready, if there is no `problem` and the project is not `missing`."""

    problem: str = ""
    missing: bool = False


class Chunk(NamedTuple):
    """The results of a chunk of scenarios, packed, or why there are none.

    Attributes:
        worker: the address of the worker.
        results: in the order of the scenarios.
        seconds: the real seconds that they took.
        lost: why the process that ran them is lost.
        unprepared: the worker does not know the job, since it is new.
    """

    worker: str
    results: Sequence[bytes] = ()
    seconds: float = 0.0
    lost: str = ""
    unprepared: bool = False


@atexit.register
def end_hosts() -> None:
    """End the processes beside this worker that have no work."""
    while _idle:
        _idle.pop().end()


def prepare(job: Job, archive: bytes | None = None, dask_worker: Any = None) -> Prepared:
    """Make a worker ready for a job. Dask gives `dask_worker`."""
    if why := difference(job.versions, versions()):
        return Prepared(why)
    project, folder = job.project, Path(dask_worker.local_directory) / FOLDER
    places = [project.top, folder / project.digest]
    place = next(filter(project.is_at, places), None)
    if place is None:
        if archive is None:
            return Prepared(missing=True)
        try:
            place = unpack(archive, project, folder)
        except OSError as error:
            return Prepared(f"cannot store the project in {folder}: {error.strerror or error}")
        except UnsafeArchive as error:
            return Prepared(str(error))
    _prepared[dask_worker.id, job.id] = job, place
    if len(_prepared) > _MOST_JOBS:
        del _prepared[next(iter(_prepared))]
    _begin_hosts(job, place)
    return Prepared()


def _begin_hosts(job: Job, place: Path) -> None:
    """Begin a host for each worker of this process, to import what it needs. Further threads begin theirs later."""
    workers = sum(each == job.id for _, each in _prepared)
    with suppress(HostLost):  # the first chunk tells
        _idle.extend([_host_for(job, place) for _ in range(workers)])


def run_chunk(job_id: str, scenarios: bytes, patience_s: float) -> Chunk:
    """Run packed scenarios. `patience_s` is the most real seconds until the next result."""
    worker = get_worker()
    known = _prepared.get((worker.id, job_id))
    if known is None:
        return Chunk(worker.address, unprepared=True)
    key = worker.get_current_task()

    def is_wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state == "executing"

    began = real.monotonic()
    host = None
    try:
        host = _host_for(*known)
        results = [*host.run(scenarios, patience_s, is_wanted)]
    except HostLost as error:
        if host is not None:
            host.end()
        return Chunk(worker.address, lost=str(error))
    _idle.append(host)
    return Chunk(worker.address, results, real.monotonic() - began)


def _host_for(job: Job, place: Path) -> Host:
    """Return an idle host, if possible one that has the job, or a new one."""
    while _idle:
        at = next((at for at, host in enumerate(_idle) if host.job == job.id), len(_idle) - 1)
        host = _idle.pop(at)
        if not host.is_alive:
            host.end()
            continue
        if host.job != job.id:
            host.begin(job, place)
        return host
    host = Host()
    host.begin(job, place)
    return host
