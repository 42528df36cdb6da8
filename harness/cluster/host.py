"""A process beside a Dask worker that runs scenarios in a pool of one process.

So what user code does stays outside of the worker, and can be killed.

    Dask worker ──(job), chunks of scenarios──▶ host ──▶ `WorkerPool` of one process
                ◀──── packed results ──────────
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from harness.cluster.job import Job, Setup
from harness.cluster.travel import Runs, unpacked
from harness.errors import HarnessError
from harness.scenario.model import Scenario
from harness.time.real import real
from harness.workers.pool import WorkerPool

IDLE_S: Final = 60.0
"""Real seconds without work after which a host ends."""
_POLL_S: Final = 0.5
END: Final = b""
_ENDED: Final = "the process that ran them ended"


class HostLost(HarnessError):
    """A host that ended, or was ended since it told nothing for too long, before its scenarios had."""

    code = "worker-lost"


class Host:
    """A host of this process, for one job at a time."""

    def __init__(self) -> None:
        self._connection, theirs = Pipe()
        command = [sys.executable, "-m", "harness.cluster.host", str(theirs.fileno())]
        self._process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C at the terminal is for the command
        )
        theirs.close()
        self.job = ""

    @property
    def is_alive(self) -> bool:
        """True unless the process has ended."""
        return self._process.poll() is None

    def begin(self, job: Job, place: Path) -> None:
        """Make it ready for a job, whose project is below the folder `place`."""
        self.job = job.id
        self._send((str(job.project.top), str(place), job.project.folder, job.setup))

    def run(self, chunk: bytes, patience_s: float, is_wanted: Callable[[], bool]) -> Iterator[bytes]:
        """Run packed scenarios, and yield their packed results.

        Raises:
            HostLost: the host ended, told nothing for `patience_s` real seconds, or the results are not wanted.
        """
        self._send(chunk)
        told = real.monotonic()
        while True:
            try:
                if not self._connection.poll(_POLL_S):
                    if is_wanted() and real.monotonic() - told < patience_s:
                        continue
                    raise HostLost(f"it told nothing for {patience_s:.0f} s")
                made = self._connection.recv_bytes()
            except (EOFError, OSError):
                raise HostLost(_ENDED) from None
            if made == END:
                return
            told = real.monotonic()
            yield made

    def end(self) -> None:
        """End the process, and what it runs."""
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def _send(self, message: object) -> None:
        try:
            self._connection.send(message)
        except OSError:
            raise HostLost(_ENDED) from None


class _Numbered:
    """Scenarios with the numbers that they have in the command."""

    def __init__(self, by_number: Mapping[int, Scenario]) -> None:
        self._by_number = by_number
        self.numbers: Sequence[int] = [*by_number]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, number: int) -> Scenario:
        return self._by_number[number]

    def __iter__(self) -> Iterator[Scenario]:
        return iter(self._by_number.values())


class _Served:
    """The pool of a host, for one job."""

    def __init__(self, top: str, place: str, folder: str, content: bytes) -> None:
        self._runs = Runs(Path(place), Path(top))
        setup: Setup = unpacked(content, self._runs.place)
        os.environ.update(setup.environment)
        os.chdir(self._runs.place / folder)
        self._work = setup.work or self._runs
        self.pool = WorkerPool(1, setup.projects, stdout_to_stderr=True, one_by_one=True, work=self._work)

    def results(self, chunk: bytes) -> Iterator[bytes]:
        """Run packed scenarios by number, and yield their packed results in order: there is one process."""
        scenarios = _Numbered(unpacked(chunk, self._runs.place))
        for result in self.pool.run(scenarios, iter(scenarios.numbers)):
            made: Any = result.outcome
            is_packed = self._work is self._runs and isinstance(made, bytes)  # not by the pool itself
            yield made if is_packed else self._runs.packed(result)


def main(descriptor: int) -> None:
    """Serve a Dask worker until it closes the connection, or wants nothing for `IDLE_S` real seconds."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    connection = Connection(descriptor)
    served: _Served | None = None
    try:
        while connection.poll(IDLE_S):
            told = connection.recv()
            if isinstance(told, bytes):
                assert served is not None
                for made in served.results(told):
                    connection.send_bytes(made)
                connection.send_bytes(END)
                continue
            if served is not None:
                served.pool.close()
            served = _Served(*told)
    except (EOFError, OSError):  # the worker has ended
        pass
    finally:
        if served is not None:
            served.pool.close()


def _end_with(parent: int) -> None:
    """End this process when the worker has ended: a run may take long. Its own processes notice that."""
    while os.getppid() == parent:
        real.sleep(_POLL_S)
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
