"""Pauses of a node, and what must not happen twice when the node runs again from its start.

LangGraph reruns a resumed node, and tells the answers to its pauses apart by the order in which they were
asked for. Graphs that run inside a visit side by side may come to their pauses in another order when they go on, so
answers are kept here by the place they belong to; LangGraph only stops and reruns the node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

if TYPE_CHECKING:
    from harness.engine.nested import Nested

T = TypeVar("T")


class Place(NamedTuple):
    """Where a visit pauses or runs a graph: the `nth` time, from 1, that it comes by `what`."""

    what: str
    nth: int


@dataclass
class Pause:
    """A pause without an answer. `asked` tells those of one nested run apart.

    One that is `around` nodes of a nested graph asks nothing.
    """

    place: Place
    asked: str
    value: Any
    partial_update: Mapping[str, Any] | None
    around: bool


@dataclass
class Replay:
    """What a paused visit keeps until its node runs again.

    `kept` is what it made only once, by key (`NodeContext.once`); `pause` is the one it stopped at. `answers`,
    `nested` and `kept` are of the attempt that paused.
    """

    node: str
    answers: dict[tuple[Place, str], Any] = field(default_factory=dict)
    nested: dict[Place, Nested] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    pause: Pause | None = None
    failed_attempts: int = 0

    @property
    def goes_on_inside(self) -> bool:
        """Whether the node was resumed after a pause around nodes of a graph that runs inside it."""
        pause = self.pause
        return pause is not None and pause.around and (pause.place, pause.asked) in self.answers


@dataclass
class Question:
    """A pause of a graph that waits for an answer; `replay` is that of the visit it belongs to.

    One that is `around` nodes, of this graph or inside its node, asks nothing and waits until the run goes on.
    """

    replay: Replay
    value: Any
    around: bool = False

    @property
    def node(self) -> str:
        """The node that paused."""
        return self.replay.node

    def take(self, answer: Any) -> None:
        """Keep the answer for when the node runs again."""
        pause = self.replay.pause
        if pause is not None:
            self.replay.answers[pause.place, pause.asked] = None if self.around else answer


_making: ContextVar[Pauses | None] = ContextVar("_making", default=None)


class Pauses:
    """The pauses of a visit that runs: which have answers, and at which of the others the visit stops."""

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        replay.pause = None
        self._times: dict[str, int] = {}
        self._waiting: dict[Place, Pause | None] = {}  # in the order they were come by
        self._running = 0
        self._standstill = asyncio.Event()

    def come_by(self, what: str) -> Place:
        """The next place of this kind."""
        if _making.get() is self:  # it is not come by again, and the places after it would have other numbers
            raise RuntimeError("what is made once cannot pause, nor run graphs inside")
        self._times[what] = self._times.get(what, 0) + 1
        place = Place(what, self._times[what])
        self._waiting[place] = None
        return place

    async def answer(
        self,
        place: Place,
        value: Any,
        partial_update: Mapping[str, Any] | None = None,
        asked: str = "",
        around: bool = False,
    ) -> Any:
        """The answer to a pause. Without one the visit stops, once no nested graph is running any more.

        When several have come to a stop, it is the one whose place was come by first that is asked.
        """
        if (place, asked) in self.replay.answers:
            self.skip(1)
            return self.replay.answers[place, asked]
        self._waiting[place] = Pause(place, asked, value, partial_update, around)
        if self.replay.nested:
            await asyncio.sleep(0)  # those that were started together with this one set out first
        while self._running:
            await self._standstill.wait()
        first = self.replay.pause = next(pause for pause in self._waiting.values() if pause is not None)
        _stop(first.value)

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
        self._times.clear()
        self._waiting.clear()

    def skip(self, answered: int) -> None:
        """Pass pauses that have answers. LangGraph counts them, for code that calls `interrupt` by itself."""
        from langgraph.types import interrupt

        for _ in range(answered):
            interrupt(None)

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


def _stop(value: Any) -> NoReturn:
    """Interrupt the node: LangGraph returns the answers it has; the pause after those is this one."""
    from langgraph.types import interrupt

    while True:
        interrupt(value)
