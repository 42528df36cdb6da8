"""Pauses of a node visit, and what must not happen twice when the node runs again from its start.

A paused node is re-run from its start, and its pauses that have answers return them. Graphs that run side by side
inside a visit may reach their pauses in another order when they are resumed, so an answer is kept by the pause
point it belongs to, and not by the order in which it was asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, TypeVar

T = TypeVar("T")


class PausePoint(NamedTuple):
    """Where a visit pauses or runs a graph: the `nth` time, from 1, that it reaches `what`."""

    what: str
    nth: int


@dataclass
class Pause:
    """A pause without an answer. `asked` is its id within a nested run.

    A static `breakpoint` of a nested graph asks nothing.
    """

    point: PausePoint
    asked: str
    value: Any
    partial_update: Mapping[str, Any] | None
    breakpoint: bool


@dataclass
class Replay:
    """State of a paused node visit, restored when the node is re-run.

    `pause` is where the visit stopped. `answers`, `nested` (the runs inside the visit, `harness.engine.nested`),
    `kept` (results of `NodeContext.once`, by key) and `open_calls` (effects in which a nested run paused, with their
    numbers in the trace and when they began) belong to the attempt that paused.
    """

    node: str
    answers: dict[tuple[PausePoint, str], Any] = field(default_factory=dict)
    nested: dict[PausePoint, Any] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    open_calls: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    pause: Pause | None = None
    failed_attempts: int = 0

    @property
    def continues_after_breakpoint(self) -> bool:
        """True if the node is re-run after a static breakpoint of a graph that runs inside it."""
        pause = self.pause
        return pause is not None and pause.breakpoint and (pause.point, pause.asked) in self.answers


@dataclass
class Question:
    """A pause of a run that waits for an answer; `replay` is that of the visit it belongs to.

    A static `breakpoint`, of this graph or inside its node, asks nothing and waits until the run is resumed.
    """

    replay: Replay
    value: Any
    breakpoint: bool = False

    @property
    def node(self) -> str:
        """The node that paused."""
        return self.replay.node

    def answer(self, answer: Any) -> None:
        """Keep the answer for when the node is re-run."""
        pause = self.replay.pause
        if pause is not None:
            self.replay.answers[pause.point, pause.asked] = None if self.breakpoint else answer


class Paused(Exception):
    """A visit stopped at a pause that has no answer. It carries the questions, and what the re-run restores."""

    def __init__(self, replay: Replay, values: Sequence[Any]) -> None:
        super().__init__(replay.node)
        self.replay = replay
        pause = replay.pause
        at_breakpoint = pause is not None and pause.breakpoint
        self.questions = [Question(replay, value, at_breakpoint) for value in values]


_making: ContextVar[Pauses | None] = ContextVar("_making", default=None)


class Pauses:
    """The pauses of a visit that runs: which have answers, and at which of the others the visit stops.

    `on_replay` is called with the number of pauses that a re-run passes because they have answers.
    """

    def __init__(self, replay: Replay, on_replay: Callable[[int], None]) -> None:
        self.replay = replay
        replay.pause = None
        self._on_replay = on_replay
        self._times: dict[str, int] = {}
        self._waiting: dict[PausePoint, Pause | None] = {}  # in program order
        self._running = 0
        self._standstill = asyncio.Event()

    def reach(self, what: str) -> PausePoint:
        """The next pause point of this kind."""
        if _making.get() is self:  # a re-run would not reach it, and number the points after it differently
            raise RuntimeError("what is made once cannot pause, nor run graphs inside")
        self._times[what] = self._times.get(what, 0) + 1
        point = PausePoint(what, self._times[what])
        self._waiting[point] = None
        return point

    async def answer(
        self,
        point: PausePoint,
        value: Any,
        partial_update: Mapping[str, Any] | None = None,
        asked: str = "",
        breakpoint: bool = False,
    ) -> Any:
        """The answer to a pause. Without one the visit stops, once no nested graph is running any more.

        Of several pauses without an answer, the earliest in program order is asked.
        """
        if (point, asked) in self.replay.answers:
            self.replayed(1)
            return self.replay.answers[point, asked]
        self._waiting[point] = Pause(point, asked, value, partial_update, breakpoint)
        if self.replay.nested:
            await asyncio.sleep(0)  # those that were started together with this one set out first
        while self._running:
            await self._standstill.wait()
        self._stop()

    def _stop(self) -> NoReturn:
        first = self.replay.pause = next(pause for pause in self._waiting.values() if pause is not None)
        raise Paused(self.replay, [first.value])

    async def once(self, key: str, make: Callable[[], Awaitable[T]]) -> T:
        """See `NodeContext.once`."""
        kept = self.replay.kept
        if key not in kept:
            token = _making.set(self)
            try:
                kept[key] = await make()
            finally:
                _making.reset(token)
        made: T = kept[key]
        return made

    def attempt_failed(self) -> None:
        """Forget the answers and nested runs of an attempt of the visit that failed; another may follow."""
        self.replay.failed_attempts += 1
        self.replay.answers.clear()
        self.replay.nested.clear()
        self.replay.kept.clear()
        self.replay.open_calls.clear()
        self._times.clear()
        self._waiting.clear()

    def replayed(self, answered: int) -> None:
        """Tell the scheduler that the re-run passed pauses that have answers."""
        self._on_replay(answered)

    @contextmanager
    def running(self) -> Iterator[None]:
        """While a nested graph runs, the visit does not stop."""
        self._running += 1
        self._standstill.clear()
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self._standstill.set()
