"""Pauses of a node visit, and the results that a re-run of the node restores instead of computing them again.

A paused node is re-run from its start; pauses that were answered return their answers. Graphs that run side by side
inside a visit may reach their pauses in another order in a re-run, so answers are stored by pause point, and not by
the order of the questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

T = TypeVar("T")

BREAKPOINT: Final = "breakpoint"
"""The id of the question for a static breakpoint of a graph. Interrupts have LangGraph's ids."""


class PausePoint(NamedTuple):
    """A point in a visit that pauses or runs a graph: the `nth` time, from 1, that the visit reaches `what`."""

    what: str
    nth: int


@dataclass
class Pause:
    """A pause without an answer. `asked` is its id in a nested run, or empty.

    `breakpoint` marks a static breakpoint of a nested graph, which asks nothing.
    """

    point: PausePoint
    asked: str
    value: Any
    partial_update: Mapping[str, Any] | None
    breakpoint: bool


@dataclass
class Replay:
    """State of a paused node visit, restored when the node is re-run.

    All but `node` and `failed_attempts` belongs to the attempt that paused.

    Attributes:
        node: the name of the node.
        answers: by pause point and id in the nested run.
        nested: the runs inside the visit (`harness.engine.conversation`), by pause point.
        kept: results of `NodeContext.once`, by key.
        open_calls: effects in which a nested run paused, by kind and name, each with its number in the trace and the
            virtual time when it began.
        pause: the pause at which the visit stopped.
        failed_attempts: the number of attempts that failed before this one.
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
    """A pause of a run that waits for an answer. `replay` belongs to the visit that paused.

    `breakpoint` marks a static breakpoint, of this graph or of one inside the node: it asks nothing, and waits until
    the run is resumed.
    """

    replay: Replay
    value: Any
    breakpoint: bool = False

    @property
    def node(self) -> str:
        """The node that paused."""
        return self.replay.node

    def answer(self, answer: Any) -> None:
        """Store the answer for the re-run of the node."""
        pause = self.replay.pause
        if pause is not None:
            self.replay.answers[pause.point, pause.asked] = None if self.breakpoint else answer


class Paused(Exception):
    """Raised when a visit stops at a pause without an answer. Carries the questions and the state for the re-run."""

    def __init__(self, replay: Replay, values: Sequence[Any]) -> None:
        super().__init__(replay.node)
        self.replay = replay
        pause = replay.pause
        at_breakpoint = pause is not None and pause.breakpoint
        self.questions = [Question(replay, value, at_breakpoint) for value in values]


_in_once: ContextVar[Pauses | None] = ContextVar("_in_once", default=None)
"""The visit that is running a function of `NodeContext.once`."""


class Pauses:
    """The pauses of a running visit. It returns known answers, and stops the visit at a pause without one.

    `on_replay` is called with the number of pauses that a re-run passes because they have answers.
    """

    def __init__(self, replay: Replay, on_replay: Callable[[int], None]) -> None:
        self.replay = replay
        replay.pause = None
        self._on_replay = on_replay
        self._times: dict[str, int] = {}
        self._waiting: dict[PausePoint, Pause | None] = {}  # in program order
        self._running = 0
        self._all_stopped = asyncio.Event()

    def reach(self, what: str) -> PausePoint:
        """Return the next pause point of this kind."""
        if _in_once.get() is self:  # a re-run would not reach it, and would number later points differently
            raise RuntimeError("code inside once() can neither pause nor run a graph")
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
        """Return the answer to a pause. Without one, stop the visit as soon as no nested graph is running.

        Of several pauses without an answer, the earliest in program order is asked.

        Raises:
            Paused: there is no answer yet.
        """
        if (point, asked) in self.replay.answers:
            self.replayed(1)
            return self.replay.answers[point, asked]
        self._waiting[point] = Pause(point, asked, value, partial_update, breakpoint)
        if self.replay.nested:
            await asyncio.sleep(0)  # nested runs started together with this one begin first
        while self._running:
            await self._all_stopped.wait()
        self._stop()

    def _stop(self) -> NoReturn:
        first = self.replay.pause = next(pause for pause in self._waiting.values() if pause is not None)
        raise Paused(self.replay, [first.value])

    async def once(self, key: str, make: Callable[[], Awaitable[T]]) -> T:
        """See `NodeContext.once`."""
        kept = self.replay.kept
        if key not in kept:
            token = _in_once.set(self)
            try:
                kept[key] = await make()
            finally:
                _in_once.reset(token)
        made: T = kept[key]
        return made

    def attempt_failed(self) -> None:
        """Forget the answers and nested runs of a failed attempt, as another attempt may follow."""
        self.replay.failed_attempts += 1
        self.replay.answers.clear()
        self.replay.nested.clear()
        self.replay.kept.clear()
        self.replay.open_calls.clear()
        self._times.clear()
        self._waiting.clear()

    def replayed(self, answered: int) -> None:
        """Tell the scheduler that the re-run passed this number of answered pauses."""
        self._on_replay(answered)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep the visit from stopping while a nested graph runs."""
        self._running += 1
        self._all_stopped.clear()
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self._all_stopped.set()
