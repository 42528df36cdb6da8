"""Threads of a run that sleep in virtual time.

A thread that calls `time.sleep` waits for the virtual clock, like a task in `asyncio.sleep`. Two parties move the
clock; both stop at the next sleeper and wake it:

    the loop, when it has nothing to do, and nobody holds the clock but threads that sleep or wait for each other
    a sleeping thread, while a callback blocks the loop (a tool that joins its threads, say)

A thread that held the clock holds it again from the instant that it is woken. Another one, which the loop cannot
know, is `restless` from then on: it holds the clock until it sleeps again, ends, or waits for another thread.
"""

from __future__ import annotations

import concurrent.futures.thread
import gc
import heapq
import itertools
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Set
from concurrent.futures import _base
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

from harness.time.real import real

POLL_S: Final = 0.002
"""Real seconds between two looks at the threads of a run."""

_SELDOM_S: Final = 0.05
"""The same for a sleeping thread where the loop wakes it, as a rule."""

_STABLE_S: Final = 0.01
"""Real seconds for which all threads must be seen waiting at the same places."""

_LOOKS: Final = 4
"""Looks at them within that time."""

_WAITING: Final = frozenset(
    str(module.__file__) for module in (threading, queue, concurrent.futures.thread, _base)
)
"""The modules in which a thread waits for another one."""


def _current_frames() -> dict[int, FrameType]:
    """Return the frame of each thread. A garbage collection meanwhile may wait for ever (python/cpython#106883)."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if collects:
            gc.enable()


class _Sleeper(NamedTuple):
    wake: float
    number: int
    ident: int
    woken: threading.Event
    holds: bool


class Sleepers:
    """The sleeping threads of one loop. Made in the thread of the loop; later threads belong to the run.

    Attributes:
        yielded: how many holders of the clock do not hold it now, since their threads sleep or wait for the loop.
        loop: the thread of the loop.
        wake_loop: makes the loop look at the clock again; set by the loop.
    """

    def __init__(self) -> None:
        self.yielded = 0
        self.wake_loop: Callable[[], object] = lambda: None
        self.loop = threading.get_ident()
        self._outside = {ident: _thread(ident) for ident in _current_frames() if ident != self.loop}
        self._heap: list[_Sleeper] = []
        self._restless: set[int] = set()
        self._waking: set[int] = set()
        self._seen: dict[
            Any, tuple[Any, float, int]
        ] = {}  # by who looks at whom: places, since when, how often
        self._numbers = itertools.count()
        self._lock = threading.RLock()
        self._holding = threading.local()

    @property
    def waking(self) -> bool:
        """True if a thread was woken and has not gone on yet."""
        return bool(self._waking)

    @property
    def active(self) -> bool:
        """True if a thread sleeps or is restless."""
        return bool(self._heap or self._restless)

    @property
    def restless(self) -> bool:
        """True if a thread that was woken may be at work, without being a holder."""
        return bool(self._restless)

    def concerns(self, ident: int) -> bool:
        """True if a thread belongs to the run. It may have the number of one that has ended since."""
        return ident not in self._outside or self._outside[ident] is not _thread(ident)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Mark the current thread as a holder of the clock."""
        self._holding.on = True
        try:
            yield
        finally:
            self._holding.on = False

    def yield_until(self, over: Callable[[Callable[[object], None]], object]) -> Callable[[object], None]:
        """Give the clock back until the current thread, if it holds the clock, has what it waits for from the loop.

        `over` gets a function to call in the thread of the loop at that instant. The same function is returned, for
        a thread that stops waiting before.
        """
        if not getattr(self._holding, "on", False):
            return lambda _: None
        first = threading.Lock()

        def take_back(_: object) -> None:
            if first.acquire(blocking=False):
                self._add_yielded(-1)

        self._add_yielded(1)
        over(take_back)
        self.wake_loop()
        return take_back

    def _add_yielded(self, number: int) -> None:
        with self._lock:
            self.yielded += number

    def sleep(
        self,
        seconds: float,
        woken: threading.Event,
        now: Callable[[], float],
        move: Callable[[float], None],
        may_move: Callable[[], bool],
        *,
        in_turn: bool = False,
    ) -> None:
        """Sleep in the current thread, which is not the loop's, until the clock shows `seconds` more, or it is woken.

        It takes at most as long in real time, unless threads run `in_turn`. `move` sets a clock that a callback of
        the loop keeps from moving; only if it `may_move` may that be earlier than in real time. The caller calls
        `gone_on` afterwards.
        """
        ident, began = threading.get_ident(), real.monotonic()
        with self._lock:
            holds = getattr(self._holding, "on", False)
            sleeper = _Sleeper(now() + seconds, next(self._numbers), ident, woken, holds)
            heapq.heappush(self._heap, sleeper)
            self._restless.discard(ident)
            self.yielded += holds
        self.wake_loop()
        while not sleeper.woken.wait(_SELDOM_S if in_turn else POLL_S):
            over = not in_turn and real.monotonic() - began >= seconds
            with self._lock:
                if (may_move() or over) and self._heap and self.all_wait():
                    move(self._heap[0].wake)
                    self.wake(self._heap[0].wake)
                elif over and not sleeper.woken.is_set():
                    self._rouse(sleeper)
        with self._lock:
            if sleeper in self._heap:  # somebody else woke it
                self._rouse(sleeper)

    def gone_on(self) -> None:
        """Note that the current thread, if it was just woken, goes on or has queued to go on."""
        self._waking.discard(threading.get_ident())

    def next(self) -> float | None:
        """Return the virtual time at which the next thread is to be woken; None if none sleeps."""
        with self._lock:
            return self._heap[0].wake if self._heap else None

    def wake(self, now: float) -> None:
        """Wake the threads whose time has come."""
        with self._lock:
            self._seen.clear()
            while self._heap and self._heap[0].wake <= now:
                self._rouse(self._heap[0])

    def _rouse(self, sleeper: _Sleeper) -> None:
        self._heap.remove(sleeper)
        heapq.heapify(self._heap)
        if sleeper.holds:
            self.yielded -= 1
        else:
            self._restless.add(sleeper.ident)
        self._waking.add(sleeper.ident)
        sleeper.woken.set()

    def all_wait(self, among: Set[int] | None = None) -> bool:
        """True if all threads of the run (or some) sleep or wait for another one, and have done so for a while.

        One that was just notified still seems to wait, so several looks in a row must find them at the same places.
        """
        look, now = (threading.get_ident(), among is None), real.monotonic()
        places = None if self._waking else self._places(among)
        if places is None:
            self._seen.pop(look, None)
            return False
        before, since, looks = self._seen.get(look, (None, now, 0))
        if places != before:
            since, looks = now, 0
        self._seen[look] = places, since, looks + 1
        return looks >= _LOOKS and now - since >= _STABLE_S

    def _places(self, among: Set[int] | None) -> frozenset[tuple[int, int, int]] | None:
        """Return where the threads wait; None if one is at work."""
        if threading._limbo:  # type: ignore[attr-defined]  # a thread that is being started has no frame yet
            return None
        found = []
        for ident, frame in self._frames():
            if among is None or ident in among:
                if frame.f_code.co_filename not in _WAITING or _runs(ident):
                    return None
                found.append((ident, id(frame), frame.f_lasti))
        return frozenset(found)

    def _frames(self) -> Iterator[tuple[int, FrameType]]:
        """Yield the innermost frame of each thread of the run that does not sleep, except the caller."""
        without = {threading.get_ident(), *(sleeper.ident for sleeper in self._heap)}
        for ident, frame in _current_frames().items():
            if ident not in without and self.concerns(ident):
                yield ident, frame

    def asleep_at(self, ident: int) -> tuple[int, int] | None:
        """Return where in its code a thread sleeps in C; None if it is at work, or the system does not say."""
        frame = _current_frames().get(ident)
        return (id(frame), frame.f_lasti) if frame is not None and _status(ident) == b"S" else None

    def settled(self) -> bool:
        """True if no thread is restless. Called by the loop; between two calls time passes."""
        self._restless.intersection_update(_current_frames())
        if self._restless and self.all_wait(self._restless):
            self._restless.clear()
        return not self._restless

    def at_work(self) -> FrameType | None:
        """Return the frame of another thread of the run that does not wait for one; None if there is none."""
        return next((frame for _, frame in self._frames() if frame.f_code.co_filename not in _WAITING), None)


def _thread(ident: int) -> threading.Thread | None:
    return threading._active.get(ident)  # type: ignore[attr-defined, no-any-return]


def _runs(ident: int) -> bool:
    """True if the system says that a thread runs, or is about to. False where it does not say."""
    return _status(ident) == b"R"


def _status(ident: int) -> bytes:
    """Return the status that the system has for a thread, such as R and S; empty where it does not say."""
    thread = _thread(ident)
    try:
        status = Path(f"/proc/self/task/{thread.native_id}/stat").read_bytes()  # type: ignore[union-attr]
    except (OSError, AttributeError):
        return b""
    return status[status.rindex(b")") + 2 :][:1]
