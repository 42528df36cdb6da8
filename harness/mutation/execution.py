"""Runs chains: generators that ask for one run of a scenario after another, side by side on several processes.

    chain ──yields a scenario──▶ its runs are made ──sent back──▶ chain … ──returns──▶ a result

The runs of one chain follow each other, so what it does never depends on the number of processes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import count
from typing import Any, Final, NamedTuple, TypeVar

from harness.graph import observe
from harness.report.results import record
from harness.report.traces import unpack_trace
from harness.scenario.model import Scenario
from harness.scenario.outcome import Observation, Outcome
from harness.settings import Projects
from harness.workers.executor import Executor

_UNKNOWN: Final = 1 << 40
"""The number of runs, which is not known beforehand: more than there are."""


class Run(NamedTuple):
    """A run: its outcome, and its trace in the form of a file (`harness.report.traces`)."""

    outcome: Outcome
    trace: bytes

    @property
    def events(self) -> list[dict[str, Any]]:
        """Its events."""
        return unpack_trace(self.trace)

    @property
    def observed(self) -> Observation:
        """The observation with what models were asked, as expectations are checked on it."""
        made = (event["request"] for event in self.events if event["event"] == "call")
        calls = [
            {**call, "request": observe.model_request(request)} if call["kind"] == "llm" else call
            for call, request in zip(self.outcome.observed.calls, made, strict=False)
        ]
        return replace(self.outcome.observed, calls=calls)


Result = TypeVar("Result")
Chain = Generator[Scenario, Sequence[Run], Result]


class _Tasks:
    """The scenarios to run by number, as chains ask for them."""

    def __init__(self, chains: Iterable[Chain[Any]], sample: Sequence[Scenario]) -> None:
        self._waiting, self._sample = iter(chains), sample
        self._ready: deque[tuple[Chain[Any], Scenario]] = deque()
        self._running: dict[int, tuple[Chain[Any], Scenario, list[Run]]] = {}
        self.results: deque[Any] = deque()

    def __len__(self) -> int:
        return _UNKNOWN

    def __getitem__(self, number: int) -> Scenario:
        return self._running[number][1]

    def __iter__(self) -> Iterator[Scenario]:
        return iter(self._sample)

    def numbers(self) -> Iterator[int | None]:
        """Yield the number of the next scenario; None if another one must end first."""
        for number in count():
            while not self._ready and (chain := next(self._waiting, None)) is not None:
                self._go_on(chain, None)
            while not self._ready:
                if not self._running:
                    return
                yield None
            self._running[number] = (*self._ready.popleft(), [])
            yield number

    def add(self, number: int, run: Run | None) -> None:
        """Add a run of a scenario; None if it has ended: its chain goes on."""
        if run is not None:
            self._running[number][2].append(run)
        else:
            chain, _, runs = self._running.pop(number)
            self._go_on(chain, runs)

    def _go_on(self, chain: Chain[Any], runs: Sequence[Run] | None) -> None:
        try:
            self._ready.append((chain, next(chain) if runs is None else chain.send(runs)))
        except StopIteration as end:
            self.results.append(end.value)


def run_chains(
    chains: Iterable[Chain[Result]],
    projects: Projects,
    sample: Sequence[Scenario],
    workers: Executor | None,
) -> Generator[Result]:
    """Yield the results of chains as they end. Closing the iterator stops running scenarios.

    Args:
        chains: the chains, which begin in this order.
        projects: the settings of the scenarios.
        sample: scenarios that have the settings of all.
        workers: run the scenarios; None: this process does.
    """
    tasks = _Tasks(chains, sample)
    runs = _in_this_process(tasks, projects) if workers is None else _in_workers(tasks, workers)
    with closing(runs):
        for number, run in runs:
            tasks.add(number, run)
            while tasks.results:
                yield tasks.results.popleft()
    yield from tasks.results


def _in_workers(tasks: _Tasks, workers: Executor) -> Generator[tuple[int, Run | None]]:
    with closing(workers.run(tasks, tasks.numbers())) as ended:
        for one in ended:
            trace = one.record.trace if one.record is not None else b""
            yield one.number, Run(one.outcome, trace) if one.outcome is not None else None


def _in_this_process(tasks: _Tasks, projects: Projects) -> Generator[tuple[int, Run | None]]:
    from harness.scenario.process_state import refuse_os_exit
    from harness.scenario.run import outcomes

    with refuse_os_exit():
        for number in tasks.numbers():
            assert number is not None  # nothing runs that would have to end first
            scenario = tasks[number]
            for outcome in outcomes(scenario, projects.of(scenario.file)):
                yield number, Run(outcome, record(outcome).trace)
            yield number, None
