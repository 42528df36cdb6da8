"""Scenarios in worker processes: side by side (`harness run -j N`), or each in its own (`isolation = "process"`).

    WorkerPool.run ──task──▶ worker.work: outcomes(scenario)
                   ◀──(number, outcome, record)── for each repeat
                   ◀──(number, None)── at the end

Workers that serve many scenarios are given the next before they have ended the current one, so that they never
wait for this process. Where each scenario has its own, the next worker starts while the current one runs. A
worker that dies (a tool that crashes the interpreter, the kernel short of memory), or that takes too much real
time and cannot be interrupted, makes an error of the scenario it was running; the one after it goes back to the
queue, and a new worker takes over. Workers are forked from a server that has imported everything already, where
the system has such a thing; they end when this process does.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, Final

from harness.errors import FormatError, WorkerDied, WorkerNotStarted
from harness.scenario.model import Scenario
from harness.settings import Projects
from harness.workers import template
from harness.workers.ended import Ended
from harness.workers.worker import NOTE_SIZE, Task, work

AHEAD: Final = 2
"""Scenarios a worker is given at once while many are left; the last ones are given one by one."""
BUFFER: Final = 32 * 1024
"""Bytes that a pipe takes from a sender without waiting for the reader."""
PATIENCE_S: Final = 1.0
"""Real seconds a worker has to clean up when the run is left."""
OVERTIME_S: Final = 5.0
"""Real seconds past its limit that a run has to be left by itself, before its process is killed."""
LOOK_UP_EVERY_S: Final = 0.5


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    connection: Connection
    note: Any
    tasks: deque[int] = field(default_factory=deque)
    repeats: int = 0
    """Outcomes of the first of its tasks so far."""
    ready: bool = False
    since: float = 0.0
    """When it was last heard of, or was given something to do."""
    too_late: bool = False

    def hear(self) -> Ended:
        """What the worker sends.

        Raises:
            EOFError, OSError: it has died.
        """
        ended = Ended(*self.connection.recv())
        self.ready, self.since = True, time.monotonic()
        return ended

    def end(self) -> None:
        """The worker is wanted no more."""
        self.connection.close()
        if self.tasks:
            self.process.terminate()

    def bury(self) -> None:
        """Wait for its end, for a moment."""
        self.process.join(PATIENCE_S)
        self.process.kill()
        self.process.join()


class WorkerPool:
    """Runs scenarios in so many processes.

    What they import is imported from now on, if not since `template.start`: make it before loading files.
    `stdout_to_stderr`: what the scenarios' own code prints goes to standard error. `one_by_one`: `run` will be called
    again and again. `close` it when it is wanted no more.
    """

    def __init__(
        self, jobs: int, projects: Projects, *, stdout_to_stderr: bool = False, one_by_one: bool = False
    ) -> None:
        self._jobs, self._projects, self._stdout_to_stderr = jobs, projects, stdout_to_stderr
        self._one_by_one = one_by_one
        self._each_its_own = False
        self._here: tuple[dict[str, str], str] = {}, ""
        self._workers: list[_Worker] = []
        self._starts = False
        """True once a worker has started: one that does not is a chance event from then on."""
        template.start()

    def run(self, scenarios: Sequence[Scenario], *, in_order: bool = False) -> Generator[Ended]:
        """Outcomes as they come, or in the order of the scenarios. Closing the iterator ends what runs.

        Where one of the scenarios asks for a process of its own, each gets one.

        Raises:
            WorkerNotStarted: the first worker ended before it ran anything.
        """
        self._each_its_own = any(self._projects.isolates(scenario.file) for scenario in scenarios)
        self._here = dict(os.environ), os.getcwd()
        ended = self._as_they_come(scenarios)
        try:
            yield from _in_order(ended) if in_order else ended
        finally:
            ended.close()
            self._end([worker for worker in self._workers if worker.tasks])

    def close(self) -> None:
        """End all workers."""
        self._end(self._workers[:])

    def _as_they_come(self, scenarios: Sequence[Scenario]) -> Generator[Ended]:
        queue = deque(range(len(scenarios)))
        while True:
            self._give_tasks(queue, scenarios)
            busy = [worker for worker in self._workers if worker.tasks]
            if not busy:
                return
            if self._each_its_own and (queue or self._one_by_one):
                self._start(len(busy) + 1 - len(self._workers))  # so that the next need not wait for it
            ready = wait([worker.connection for worker in busy], LOOK_UP_EVERY_S)
            for worker in busy:
                if worker.connection not in ready:
                    self._kill_if_too_late(worker, scenarios[worker.tasks[0]])
                    continue
                try:
                    ended = worker.hear()
                except (EOFError, OSError):
                    number, *others = worker.tasks
                    queue.extendleft(reversed(others))
                    self._workers.remove(worker)
                    yield from self._died(number, scenarios[number], worker)
                    continue
                self._starts = True
                if ended.number < 0:
                    continue
                worker.repeats = worker.repeats + 1 if ended.outcome else 0
                if ended.outcome is None:
                    worker.tasks.popleft()
                    if self._each_its_own:
                        self._end([worker])
                yield ended

    def _give_tasks(self, queue: deque[int], scenarios: Sequence[Scenario]) -> None:
        ahead = 1 if self._each_its_own or len(queue) <= AHEAD * len(self._workers) else AHEAD
        self._start(min(self._jobs, len(queue)) - len(self._workers))
        for worker in self._workers:
            if not worker.tasks and sum(bool(one.tasks) for one in self._workers) >= self._jobs:
                return
            while queue and len(worker.tasks) < ahead and self._give(worker, queue[0], scenarios):
                queue.popleft()

    def _start(self, count: int) -> None:
        for _ in range(count):
            ours, theirs = template.CONTEXT.Pipe()
            note = template.CONTEXT.RawArray("c", NOTE_SIZE)
            args = (theirs, note, self._projects, self._stdout_to_stderr, self._each_its_own)
            process = template.CONTEXT.Process(target=work, args=args)
            process.start()
            theirs.close()  # so that the end of the worker is the end of the pipe
            self._workers.append(_Worker(process, ours, note))

    def _give(self, worker: _Worker, number: int, scenarios: Sequence[Scenario]) -> bool:
        scenario = scenarios[number]
        with suppress(FormatError):  # the worker says what is wrong with it
            scenario = scenario.whole()
        task = ForkingPickler.dumps(tuple(Task(number, scenario, *self._here)))
        if worker.tasks and len(task) > BUFFER:
            return False  # sending waits for the worker to read, while it may wait for this process to do so
        if not worker.tasks:
            worker.since = time.monotonic()
        worker.tasks.append(number)
        with suppress(OSError):  # the worker has died: `hear` notices
            worker.connection.send_bytes(task)
        return True

    def _kill_if_too_late(self, worker: _Worker, scenario: Scenario) -> None:
        limit_s = self._projects.of(scenario.file).real_timeout + OVERTIME_S
        if worker.ready and time.monotonic() - worker.since > limit_s:
            worker.too_late = True
            worker.process.kill()

    def _died(self, number: int, scenario: Scenario, worker: _Worker) -> Iterator[Ended]:
        """An error for each repeat that is missing."""
        from harness.report.results import record
        from harness.scenario.evaluation import dead_worker_outcomes
        from harness.scenario.real_limit import RealTimeExceeded

        worker.process.join()
        if not self._starts:  # others would end as this one did, one for each scenario
            raise WorkerNotStarted(worker.process.exitcode)
        doing = worker.note.value.decode("utf-8", "replace")
        limit_s = self._projects.of(scenario.file).real_timeout
        late = worker.too_late
        error = RealTimeExceeded(limit_s, doing) if late else WorkerDied(worker.process.exitcode, doing)
        for outcome in dead_worker_outcomes(scenario, error, worker.repeats):
            yield Ended(number, outcome, record(outcome))
        yield Ended(number, None)

    def _end(self, workers: Sequence[_Worker]) -> None:
        for worker in workers:
            worker.end()
        for worker in workers:
            worker.bury()
            self._workers.remove(worker)


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
