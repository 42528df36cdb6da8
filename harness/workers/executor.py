"""The interface of what runs scenarios for a command: processes of this machine, or those of a cluster.

It has what they share: the results, which scenario begins next, and the order of what they yield.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from harness.errors import FormatError
from harness.report.results import Record
from harness.scenario.model import Scenario
from harness.scenario.outcome import Outcome
from harness.workers.worker import Work

if TYPE_CHECKING:
    from harness.recording.permits import Permits


class ScenarioResult(NamedTuple):
    """An outcome of scenario `number` with its record for the report. Without an outcome, the end of the scenario."""

    number: int
    outcome: Outcome | None
    record: Record = Record("")


class Scenarios(Protocol):
    """Scenarios by number: a sequence, or what makes them when they begin."""

    def __len__(self) -> int: ...
    def __getitem__(self, number: int, /) -> Scenario: ...
    def __iter__(self) -> Iterator[Scenario]: ...


class Executor(Protocol):
    """Runs scenarios. Call `close` at the end."""

    permits: Permits | None
    """Allows the calls of real systems; None if none are made."""
    status: Callable[[], str] | None
    """Tells what the progress shows of the work that is under way; None: nothing."""

    def run(
        self,
        scenarios: Scenarios,
        numbers: Iterator[int | None] | None = None,
        *,
        in_order: bool = False,
    ) -> Generator[ScenarioResult]:
        """Yield results as they arrive, or in the order of the scenarios. Closing the iterator stops running ones.

        `numbers` yields which scenario to begin next, when there is room for it; None if not before another one has
        ended.

        Raises:
            HarnessError: nothing can run.
        """

    def close(self) -> None:
        """End what runs them."""


OpenExecutor = Callable[[Work], Executor | None]
"""Opens an executor that does a work in place of runs; None: this process does it."""


def as_whole(scenario: Scenario) -> Scenario:
    """Return the complete scenario, to be sent; one with an error as it is, which whoever runs it reports."""
    with suppress(FormatError):
        return scenario.whole()
    return scenario


class Numbers:
    """The numbers of the scenarios that have not begun. At most `left` of them will."""

    def __init__(self, numbers: Iterator[int | None], left: int) -> None:
        self._numbers, self.left = numbers, left
        self._back: deque[int] = deque()

    def take(self) -> int | None:
        """Return the next number; None if there is none, or not before another scenario has ended."""
        number = self._back.popleft() if self._back else next(self._numbers, None)
        self.left -= number is not None
        return number

    def put_back(self, numbers: Sequence[int]) -> None:
        """Put numbers back to the beginning."""
        self._back.extendleft(reversed(numbers))
        self.left += len(numbers)


def in_order_of_scenarios(results: Iterator[ScenarioResult]) -> Iterator[ScenarioResult]:
    """Yield the results of scenario 0 as they arrive, then those of scenario 1, and so on."""
    held: dict[int, list[ScenarioResult]] = {}
    current = 0
    for result in results:
        held.setdefault(result.number, []).append(result)
        while of_current := held.pop(current, []):
            yield from of_current
            if of_current[-1].outcome is not None:
                break
            current += 1
