"""Runs scenarios on a cluster, as `harness.workers.pool` does on this machine.

    ClusterPool.run ──chunks of scenarios──▶ scheduler ─▶ `run_chunk` on a worker ─▶ a host ─▶ a process
                    ◀──── packed results ──────────────────────────┘

A chunk takes about a second, by the time that those before it took. Few are under way for each worker, and what
arrived is not kept, so the memory of this process does not grow with the number of runs. A worker that dies is
Dask's to notice: its chunks run elsewhere. A chunk that was lost too often is taken apart, and what is then lost
again ends with an error.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from math import ceil, inf
from pathlib import Path
from queue import Empty, SimpleQueue
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harness import DISTRIBUTION, __version__
from harness.cluster.connection import connected, disconnect
from harness.cluster.job import Job, Setup, versions
from harness.cluster.project import archive_of, project_of
from harness.cluster.travel import packed, unpacked
from harness.errors import ClusterError, ClusterGone, WorkerLost
from harness.report.formatting import plural
from harness.report.results import record
from harness.scenario.evaluation import dead_worker_outcomes
from harness.scenario.model import Scenario, real_timeout_of
from harness.settings import Projects
from harness.time.real import real
from harness.workers.executor import Numbers, ScenarioResult, Scenarios, as_whole, in_order_of_scenarios
from harness.workers.worker import Work

if TYPE_CHECKING:
    from harness.cluster.worker import Chunk
    from harness.recording.permits import Permits

AHEAD: Final = 2
"""The chunks under way for each thread of the workers: one that runs, and the next."""
CHUNK_S: Final = 1.0
"""The real seconds that a chunk should take."""
LARGEST: Final = 1000
"""The most scenarios of a chunk."""
RERUNS: Final = 3
"""The number of times that scenarios run again whose worker is lost."""
_LOOK_S: Final = 1.0
"""Real seconds between two looks at the workers."""
_MARGIN_S: Final = 30.0
"""Real seconds past its limit after which a scenario is taken for lost: its own process ends it before."""


class _Flight(NamedTuple):
    """A chunk under way: Dask's future of it, the numbers of its scenarios, and the real time when it was sent."""

    future: Any
    numbers: Sequence[int]
    since: float


class ClusterPool:
    """Runs scenarios on the workers of a cluster, those that are there and those that come. Call `close` at the end.

    Args:
        address: of the scheduler, or `local:N`.
        projects: the settings of the scenarios.
        work: done for each scenario in place of its runs. What it tells stands in the place of an outcome.

    Raises:
        ExtraMissing: Dask is not installed.
        ClusterUnreachable: the scheduler does not answer.
    """

    def __init__(self, address: str, projects: Projects, *, work: Work | None = None) -> None:
        self.permits: Permits | None = None
        self.status: Callable[[], str] | None = self._status
        self._address, self._projects, self._work = address, projects, work
        self._client = connected(address)
        self._job: Job | None = None
        self._files: set[Any] = set()
        self._prepared_at: dict[str, float] = {}
        self._threads: dict[str, int] = {}
        self._seen: dict[str, tuple[float, float]] = {}
        """Of each worker, when the scheduler saw it last, and when this process first read that."""
        self._patience_s = _MARGIN_S
        self._looked_at = 0.0
        self._flights: dict[str, _Flight] = {}
        self._landed: SimpleQueue[str] = SimpleQueue()
        self._lost: Counter[int] = Counter()
        self._again: list[int] = []
        self._size = 1

    def run(
        self,
        scenarios: Scenarios,
        numbers: Iterator[int | None] | None = None,
        *,
        in_order: bool = False,
    ) -> Generator[ScenarioResult]:
        """Yield results, as `Executor.run` does.

        Raises:
            ClusterError: a worker cannot run them, or the scheduler is gone.
        """
        self.prepare(scenarios)
        count = len(scenarios)
        results = self._results(scenarios, Numbers(numbers or iter(range(count)), count))
        try:
            yield from in_order_of_scenarios(results) if in_order else results
        finally:
            results.close()
            with suppress(Exception):  # the scheduler may be gone
                self._client.cancel([flight.future for flight in self._flights.values()])
            self._flights.clear()
            self._again.clear()
            self._lost.clear()

    def close(self) -> None:
        """Do nothing: processes beside the workers end by themselves, and the connection stays for the next run."""

    @property
    def threads(self) -> int:
        """The threads of the workers that are there: as many scenarios run at once."""
        self._look()
        return sum(self._threads.values())

    def _status(self) -> str:
        return plural(len(self._threads), "worker")

    # ------------------------------------------------------------ before the first task

    def prepare(self, scenarios: Iterable[Scenario]) -> None:
        """Prepare the workers that are there for these scenarios, unless they are.

        Raises:
            ClusterError: one of them cannot run them, or the scheduler is gone.
        """
        found = [*iter(scenarios)]  # their number may be far above what there is
        if self._job is not None and self._files.issuperset(each.file for each in found):
            return
        self._files.update(each.file for each in found)
        for file in self._files:
            self._projects.of(file)  # their settings travel
        self._projects.around(Path.cwd())
        names = {name for each in found for name in each.env_passthrough if name in os.environ}
        environment = {name: os.environ[name] for name in sorted(names)}
        project = project_of(found, self._projects)
        setup = packed(Setup(self._projects, self._work, environment), project.top)
        self._job = Job(token_hex(6), versions(), project, setup)
        self._prepare(None)

    def _prepare(self, workers: list[str] | None) -> None:
        """Prepare these workers, or all.

        Raises:
            ClusterError: one of them cannot run the job.
        """
        from harness.cluster.worker import prepare

        assert self._job is not None
        with self._scheduler():
            replies = self._client.run(prepare, self._job, workers=workers, on_error="return")
            missing = [at for at, reply in replies.items() if getattr(reply, "missing", False)]
            if missing:
                archive = archive_of(self._job.project)
                replies |= self._client.run(prepare, self._job, archive, workers=missing, on_error="return")
        for address, reply in sorted(replies.items()):
            if why := _problem(reply):
                raise ClusterError(f"the worker {address} cannot run this: {why}")
            self._prepared_at[address] = real.monotonic()

    @contextmanager
    def _scheduler(self) -> Iterator[None]:
        try:
            yield
        except (OSError, TimeoutError, CancelledError) as error:
            raise self._gone() from error

    def _gone(self) -> ClusterGone:
        disconnect(self._client)
        return ClusterGone(f"the scheduler {self._address} is gone")

    # ------------------------------------------------------------ tasks

    def _results(self, scenarios: Scenarios, numbers: Numbers) -> Generator[ScenarioResult]:
        while True:
            self._look()
            self._submit(scenarios, numbers)
            if not self._flights and (self._threads or not numbers.left):
                return
            for flight in self._landed_ones():
                yield from self._ended(flight, scenarios)

    def _look(self) -> None:
        """Look at which workers there are."""
        if real.monotonic() - self._looked_at < _LOOK_S:
            return
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        if self._client.status != "running":
            raise self._gone()
        self._threads = {address: each["nthreads"] for address, each in workers.items()}
        now = self._looked_at = real.monotonic()
        before, self._seen = self._seen, {}
        for address, each in workers.items():
            seen, since = before.get(address, (None, now))
            since = since if seen == each["last_seen"] else now
            self._seen[address] = each["last_seen"], since
            if now - since > self._patience_s:
                self._dismiss(address)

    def _dismiss(self, address: str) -> None:
        """Let the scheduler give the work of a worker that hangs to others. It may come back."""
        with suppress(OSError):
            unregister = self._client.scheduler.unregister
            self._client.sync(unregister, address=address, stimulus_id=f"harness-{token_hex(4)}", close=False)

    def _submit(self, scenarios: Scenarios, numbers: Numbers) -> None:
        room = AHEAD * sum(self._threads.values())
        while len(self._flights) < room:
            if self._again:  # alone, so that one that ends its worker takes no others with it
                self._fly([self._again.pop()], scenarios)
                continue
            size = min(self._size, ceil(numbers.left / room)) if self._work is None else 1
            taken: list[int] = []
            while len(taken) < size and (number := numbers.take()) is not None:
                taken.append(number)
            if not taken:
                return
            self._fly(taken, scenarios)

    def _fly(self, numbers: Sequence[int], scenarios: Scenarios) -> None:
        from harness.cluster.worker import run_chunk

        assert self._job is not None
        whole = {number: as_whole(scenarios[number]) for number in numbers}
        patience_s = _MARGIN_S + max(
            real_timeout_of(each, self._projects.of(each.file)) for each in whole.values()
        )
        self._patience_s = max(self._patience_s, patience_s)
        content, key = packed(whole, self._job.project.top), f"harness-{token_hex(8)}"
        with self._scheduler():
            future = self._client.submit(run_chunk, self._job.id, content, patience_s, key=key, pure=False)
        self._flights[key] = _Flight(future, numbers, real.monotonic())
        future.add_done_callback(lambda _: self._landed.put(key))

    def _landed_ones(self) -> Iterator[_Flight]:
        """Yield the chunks that have ended, after waiting a little for the first."""
        with suppress(Empty):
            key = self._landed.get(timeout=_LOOK_S)
            while True:
                if key in self._flights:
                    yield self._flights.pop(key)
                key = self._landed.get_nowait()

    def _ended(self, flight: _Flight, scenarios: Scenarios) -> Iterator[ScenarioResult]:
        assert self._job is not None
        try:
            chunk: Chunk = flight.future.result(_MARGIN_S)
        except TimeoutError:
            yield from self._lose(flight, scenarios, "its results did not arrive")
            return
        except Exception as error:
            if flight.future.status != "error":
                raise self._gone() from error
            dead = getattr(error, "last_worker", None)  # Dask has run the chunk again already
            why = f"{type(error).__name__}: {error}" if dead is None else f"{dead.address}: it died"
            yield from self._lose(flight, scenarios, why, for_good=True)
            return
        if chunk.unprepared:
            if self._prepared_at.get(chunk.worker, -inf) < flight.since:
                self._prepare([chunk.worker])
            self._fly(flight.numbers, scenarios)
        elif chunk.lost:
            yield from self._lose(flight, scenarios, f"{chunk.worker}: {chunk.lost}")
        else:
            self._adapt(len(flight.numbers), chunk.seconds)
            for content in chunk.results:
                yield ScenarioResult(*unpacked(content, self._job.project.top))

    def _adapt(self, count: int, seconds: float) -> None:
        """Let chunks take about `CHUNK_S`."""
        if count >= self._size and seconds < CHUNK_S / 2:
            self._size = min(2 * self._size, LARGEST)
        elif seconds > 2 * CHUNK_S:
            self._size = max(1, min(self._size, count) // 2)

    def _lose(
        self, flight: _Flight, scenarios: Scenarios, why: str, *, for_good: bool = False
    ) -> Iterator[ScenarioResult]:
        """Run the scenarios of a lost chunk again, or of one `for_good` each alone; yield errors for the others."""
        for number in flight.numbers:
            self._lost[number] += 1
            if self._lost[number] <= RERUNS and not (for_good and len(flight.numbers) == 1):
                self._again.append(number)
                continue
            for outcome in dead_worker_outcomes(scenarios[number], WorkerLost(why)):
                yield ScenarioResult(number, outcome, record(outcome))
            yield ScenarioResult(number, None)


def _problem(reply: Any) -> str:
    """Return why a worker cannot run a job, by its answer; "" if it can, or has ended."""
    if isinstance(reply, Exception) and "No module named 'harness'" in str(reply):  # Dask wraps the error
        return f"{DISTRIBUTION} is not installed there, and {__version__} is here"
    if isinstance(reply, OSError):
        return ""
    return f"{type(reply).__name__}: {reply}" if isinstance(reply, Exception) else str(reply.problem)
