"""Scenarios in worker processes, for `harness run -j N`.

    WorkerPool.run ──(number, scenario)──▶ worker: outcomes(scenario)
                   ◀──(number, outcome, line)── for each repeat
                   ◀──(number, None, "")── at the end

A worker is told its next scenario before it has ended the current one, so that it never waits for this process. One
that dies (a tool that crashes the interpreter, the kernel short of memory) makes an error of the scenario it was
running; the one after it goes back to the queue, and a new worker takes over. Workers are forked from a server that
has imported everything already, where the system has such a thing; they end when this process does.
"""

from __future__ import annotations

import signal
import sys
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from multiprocessing import forkserver, get_all_start_methods, get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Final

from harness.scenario.model import Scenario
from harness.settings import Projects
from harness.workers.ended import Ended
from harness.workers.garbage import collect_rarely

PRELOADED: Final = ["harness.scenario.run", "harness.report.results"]
AHEAD: Final = 2
"""Scenarios a worker is given at once while many are left; the last ones are given one by one."""
BUFFER: Final = 32 * 1024
"""Bytes that a pipe takes from a sender without waiting for the reader."""
PATIENCE_S: Final = 1.0
"""Real seconds a worker has to clean up when the run is left."""

_HAS_SERVER: Final = "forkserver" in get_all_start_methods()
_CONTEXT: Final = get_context("forkserver") if _HAS_SERVER else get_context("spawn")


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    connection: Connection
    tasks: deque[int] = field(default_factory=deque)
    repeats: int = 0
    """Outcomes of the first of its tasks so far."""


class WorkerPool:
    """Runs scenarios in so many processes. Imports begin when the pool is made: make it before loading files.

    `stdout_to_stderr`: what the scenarios' own code prints goes to standard error.
    """

    def __init__(self, jobs: int, projects: Projects, *, stdout_to_stderr: bool = False) -> None:
        self._jobs, self._projects, self._stdout_to_stderr = jobs, projects, stdout_to_stderr
        self._workers: list[_Worker] = []
        if _HAS_SERVER:
            _CONTEXT.set_forkserver_preload(PRELOADED)
            forkserver.ensure_running()

    def run(self, scenarios: Sequence[Scenario], *, in_order: bool = False) -> Generator[Ended]:
        """Outcomes as they come, or in the order of the scenarios. Closing the iterator ends the workers."""
        ended = self._as_they_come(scenarios)
        try:
            yield from _in_order(ended) if in_order else ended
        finally:
            ended.close()
            self._end()

    def _as_they_come(self, scenarios: Sequence[Scenario]) -> Generator[Ended]:
        queue = deque(range(len(scenarios)))
        for _ in range(min(self._jobs, len(queue))):
            self._start()
        while True:
            ahead = AHEAD if len(queue) > AHEAD * len(self._workers) else 1
            for worker in self._workers:
                while queue and len(worker.tasks) < ahead and self._give(worker, queue[0], scenarios):
                    queue.popleft()
            busy = [worker for worker in self._workers if worker.tasks]
            if not busy:
                return
            ready = wait([worker.connection for worker in busy])
            for worker in busy:
                if worker.connection not in ready:
                    continue
                try:
                    ended = Ended(*worker.connection.recv())
                except (EOFError, OSError):
                    number, *others = worker.tasks
                    queue.extendleft(reversed(others))
                    yield from _died(number, scenarios[number], worker)
                    self._workers.remove(worker)
                    self._start()
                    continue
                worker.repeats = worker.repeats + 1 if ended.outcome else 0
                if ended.outcome is None:
                    worker.tasks.popleft()
                yield ended

    def _start(self) -> None:
        ours, theirs = _CONTEXT.Pipe()
        process = _CONTEXT.Process(target=_work, args=(theirs, self._projects, self._stdout_to_stderr))
        process.start()
        theirs.close()  # so that the end of the worker is the end of the pipe
        self._workers.append(_Worker(process, ours))

    def _give(self, worker: _Worker, number: int, scenarios: Sequence[Scenario]) -> bool:
        task = ForkingPickler.dumps((number, scenarios[number]))
        if worker.tasks and len(task) > BUFFER:
            return False  # sending waits for the worker to read, while it may wait for this process to do so
        worker.tasks.append(number)
        with suppress(OSError):  # the worker has died: `recv` notices
            worker.connection.send_bytes(task)
        return True

    def _end(self) -> None:
        for worker in self._workers:
            worker.connection.close()
            if worker.tasks:
                worker.process.terminate()
        for worker in self._workers:
            worker.process.join(PATIENCE_S)
            worker.process.kill()
        self._workers.clear()


def _in_order(ended: Iterator[Ended]) -> Iterator[Ended]:
    """Those of scenario 0 as they come, then those of scenario 1, and so on."""
    held: dict[int, list[Ended]] = {}
    current = 0
    for one in ended:
        held.setdefault(one.number, []).append(one)
        while of_current := held.pop(current, []):
            yield from of_current
            if of_current[-1].outcome is not None:
                break
            current += 1


def _died(number: int, scenario: Scenario, worker: _Worker) -> Iterator[Ended]:
    """An error for each repeat that is missing."""
    from harness.errors import WorkerDied
    from harness.report.encoding import encode
    from harness.report.results import line
    from harness.scenario.evaluation import died

    worker.process.join()
    for outcome in died(scenario, WorkerDied(worker.process.exitcode), worker.repeats):
        yield Ended(number, outcome, encode(line(outcome)))
    yield Ended(number, None)


def _work(connection: Connection, projects: Projects, stdout_to_stderr: bool) -> None:
    """The main function of a worker. Ctrl-C is the parent's to handle."""
    from harness.report.encoding import encode
    from harness.report.results import line
    from harness.scenario.run import outcomes

    collect_rarely()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with (
        suppress(EOFError, OSError, KeyboardInterrupt),  # the parent wants no more, or is gone
        redirect_stdout(sys.stderr if stdout_to_stderr else sys.stdout),
    ):
        while True:
            number, scenario = connection.recv()
            for outcome in outcomes(scenario, projects.of(scenario.file)):
                connection.send((number, outcome, encode(line(outcome))))
            sys.stdout.flush()
            connection.send((number, None, ""))
