"""A pool of worker processes, shared by scenarios (`harness run -j N`) or one for each (`isolation = "process"`).

    WorkerPool.run ──task──▶ worker_main: outcomes(scenario)
                   ◀──(number, outcome, record)── for each repeat
                   ◀──(number, None)── at the end

A shared worker receives its next scenario before it has finished the current one, so that it never waits for this
process. With isolation, the next worker starts while the current one runs. If a worker dies (a tool crashes the
interpreter, the system runs out of memory), or takes too much real time and has to be killed, the scenario it was
running ends with an error; its next one goes back to the queue, and a new worker takes over. If the system supports
it, workers are forked from a server that has imported everything already. They end when this process does.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any, Final

from harness.errors import WorkerDied, WorkerNotStarted
from harness.scenario.model import Scenario, real_timeout_of
from harness.settings import Projects
from harness.time.real import real
from harness.workers import fork_server
from harness.workers.executor import Numbers, ScenarioResult, Scenarios, as_whole, in_order_of_scenarios
from harness.workers.worker import NOTE_SIZE, Task, Work, worker_main

if TYPE_CHECKING:
    from harness.recording.permits import Permits

AHEAD: Final = 2
"""The most scenarios that a worker holds at once. When few are left, each worker gets one at a time."""
BUFFER: Final = 32 * 1024
"""Bytes that can be sent through a pipe without waiting for the reader."""
PATIENCE_S: Final = 1.0
"""Real seconds that a worker has to clean up when it is stopped."""
OVERTIME_S: Final = 5.0
"""Real seconds past its limit after which the process of a run is killed, if it did not stop the run itself."""
POLL_INTERVAL_S: Final = 0.5
"""Real seconds between two checks for workers that take too long."""


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    connection: Connection
    note: Any
    tasks: deque[int] = field(default_factory=deque)
    repeats: int = 0
    """The number of outcomes of its current task so far."""
    ready: bool = False
    since: float = 0.0
    """The real time of its last message, or of the task that it was given when idle."""
    too_late: bool = False

    def receive(self) -> ScenarioResult:
        """Receive a message of the worker.

        Raises:
            EOFError, OSError: the worker has died.
        """
        result = ScenarioResult(*self.connection.recv())
        self.ready, self.since = True, real.monotonic()
        return result

    def stop(self) -> None:
        """Stop the worker, without waiting for its end."""
        self.connection.close()
        if self.tasks:
            self.process.terminate()

    def join(self) -> None:
        """Wait up to `PATIENCE_S` for the end of the process, then kill it."""
        self.process.join(PATIENCE_S)
        self.process.kill()
        self.process.join()


class WorkerPool:
    """Runs scenarios in worker processes. Call `close` at the end.

    Make the pool before loading files: the imports of the workers begin in the background (`fork_server.start`).

    Args:
        jobs: the number of processes.
        projects: the settings of the scenarios.
        stdout_to_stderr: redirect the output of the scenarios' own code to standard error.
        one_by_one: `run` will be called repeatedly, so an isolated worker is kept ready for the next call.
        permits: allows the calls of real systems. Runs that make them have no limit of real time.
        work: done for each scenario in place of its runs. What it tells stands in the place of an outcome.
    """

    def __init__(
        self,
        jobs: int,
        projects: Projects,
        *,
        stdout_to_stderr: bool = False,
        one_by_one: bool = False,
        permits: Permits | None = None,
        work: Work | None = None,
    ) -> None:
        self._work = work
        self._jobs, self._projects, self._stdout_to_stderr = jobs, projects, stdout_to_stderr
        self._one_by_one = one_by_one
        self.permits = permits
        self.status = permits.status if permits is not None else None
        self._source = permits.__enter__() if permits is not None else None
        self._isolated = False
        self._environment_and_folder: tuple[dict[str, str], str] = {}, ""
        self._workers: list[_Worker] = []
        self._has_started = False
        """True once a worker has started. A later one that does not is then treated as a crash."""
        fork_server.start(records=permits is not None)

    def run(
        self,
        scenarios: Scenarios,
        numbers: Iterator[int | None] | None = None,
        *,
        in_order: bool = False,
    ) -> Generator[ScenarioResult]:
        """Yield results, as `Executor.run` does.

        If any of the scenarios requires isolation, each gets a process of its own.

        Raises:
            WorkerNotStarted: the first worker ended before it ran anything.
        """
        self._isolated = any(self._projects.isolates(scenario.file) for scenario in scenarios)
        self._environment_and_folder = dict(os.environ), os.getcwd()
        count = len(scenarios)
        results = self._results(scenarios, Numbers(numbers or iter(range(count)), count))
        try:
            yield from in_order_of_scenarios(results) if in_order else results
        finally:
            results.close()
            busy = [worker for worker in self._workers if worker.tasks]
            with self.permits.drained() if self.permits is not None and busy else nullcontext():
                self._stop(busy)

    def close(self) -> None:
        """Stop all workers."""
        self._stop(self._workers[:])
        if self.permits is not None:
            self.permits.__exit__()

    def _results(self, scenarios: Scenarios, queue: Numbers) -> Generator[ScenarioResult]:
        while True:
            self._give_tasks(queue, scenarios)
            busy = [worker for worker in self._workers if worker.tasks]
            if not busy:
                return
            if self._isolated and (queue.left or self._one_by_one):
                self._start(len(busy) + 1 - len(self._workers))  # ready for the next scenario
            ready = wait([worker.connection for worker in busy], POLL_INTERVAL_S)
            for worker in busy:
                if worker.connection not in ready:
                    self._kill_if_too_late(worker, scenarios[worker.tasks[0]])
                    continue
                try:
                    result = worker.receive()
                except (EOFError, OSError):
                    number, *others = worker.tasks
                    queue.put_back(others)
                    self._workers.remove(worker)
                    yield from self._died(number, scenarios[number], worker)
                    continue
                self._has_started = True
                if result.number < 0:
                    continue
                worker.repeats = worker.repeats + 1 if result.outcome else 0
                if result.outcome is None:
                    worker.tasks.popleft()
                    if self._isolated:
                        self._stop([worker])
                yield result

    def _give_tasks(self, queue: Numbers, scenarios: Scenarios) -> None:
        few = queue.left <= AHEAD * len(self._workers)
        ahead = 1 if self._isolated or self.permits is not None or few else AHEAD
        self._start(min(self._jobs, queue.left) - len(self._workers))
        for worker in self._workers:
            if not worker.tasks and sum(bool(one.tasks) for one in self._workers) >= self._jobs:
                return
            while len(worker.tasks) < ahead and (number := queue.take()) is not None:
                if not self._give(worker, number, scenarios):
                    queue.put_back([number])
                    break

    def _start(self, count: int) -> None:
        for _ in range(count):
            ours, theirs = fork_server.CONTEXT.Pipe()
            note = fork_server.CONTEXT.RawArray("c", NOTE_SIZE)
            args = (
                *(theirs, note, self._projects, self._stdout_to_stderr, self._isolated, self._source),
                self._work,
            )
            process = fork_server.CONTEXT.Process(target=worker_main, args=args)
            process.start()
            theirs.close()  # so that the pipe ends with the worker
            self._workers.append(_Worker(process, ours, note))

    def _give(self, worker: _Worker, number: int, scenarios: Scenarios) -> bool:
        scenario = as_whole(scenarios[number])
        task = ForkingPickler.dumps(tuple(Task(number, scenario, *self._environment_and_folder)))
        if worker.tasks and len(task) > BUFFER:
            return False  # sending waits for the worker, which may wait for this process to receive
        if not worker.tasks:
            worker.since = real.monotonic()
        worker.tasks.append(number)
        with suppress(OSError):  # the worker has died, which `receive` reports
            worker.connection.send_bytes(task)
        return True

    def _kill_if_too_late(self, worker: _Worker, scenario: Scenario) -> None:
        limit_s = real_timeout_of(scenario, self._projects.of(scenario.file)) + OVERTIME_S
        if self.permits is None and worker.ready and real.monotonic() - worker.since > limit_s:
            worker.too_late = True
            worker.process.kill()

    def _died(self, number: int, scenario: Scenario, worker: _Worker) -> Iterator[ScenarioResult]:
        """Yield an error for each missing repeat of the scenario that a dead worker was running."""
        from harness.report.results import record
        from harness.scenario.evaluation import dead_worker_outcomes
        from harness.scenario.real_limit import RealTimeExceeded

        worker.process.join()
        if not self._has_started:  # every other worker would fail in the same way
            raise WorkerNotStarted(worker.process.exitcode)
        doing = worker.note.value.decode("utf-8", "replace")
        limit_s = real_timeout_of(scenario, self._projects.of(scenario.file))
        late = worker.too_late
        error = RealTimeExceeded(limit_s, doing) if late else WorkerDied(worker.process.exitcode, doing)
        for outcome in dead_worker_outcomes(scenario, error, worker.repeats):
            yield ScenarioResult(number, outcome, record(outcome))
        yield ScenarioResult(number, None)

    def _stop(self, workers: Sequence[_Worker]) -> None:
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.join()
            self._workers.remove(worker)
