"""Turns of the threads of a run: one runs at a time, in a defined order. So the trace does not depend on threads.

The loop has its turn while a callback is ready. When it is idle, the first thread in the queue has a turn: until it
ends, sleeps in virtual time, or waits for another thread or for the loop. Threads queue in the order in which they
were started. The clock moves when nobody is in the queue.

A thread that waits in a way that is not seen here (a lock, a socket) loses its turn when it is found waiting.
"""

from __future__ import annotations

import concurrent.futures.thread
import inspect
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial, wraps
from itertools import count
from typing import Any, Final, TypeVar
from weakref import WeakSet

from harness.time.one_process import in_one_process
from harness.time.pools import Submitted
from harness.time.real import real
from harness.time.rebinding import PYTHON, bind_names, current_visit, origin
from harness.time.sleepers import POLL_S, Sleepers

T = TypeVar("T")

_LOOP: Final = 0
_ended: Final[WeakSet[threading.Thread]] = WeakSet()
"""Threads whose code has ended, while they may still be alive."""
_WAITS: Final[tuple[tuple[type, str, Callable[[Any], bool]], ...]] = (
    (threading.Event, "wait", lambda event: event.is_set()),
    (threading.Semaphore, "acquire", lambda semaphore: semaphore._value > 0),
    (threading.Thread, "join", lambda thread: thread in _ended or not thread.is_alive()),
    (queue.Queue, "get", lambda given: given._qsize() > 0),
    (concurrent.futures.Future, "result", lambda future: future.done()),
    (concurrent.futures.Future, "exception", lambda future: future.done()),
)
"""The functions in which a thread waits for another one, and whether it is about to go on."""
_SETTLED_S: Final = 2.0
"""The most real seconds that a thread has to go on. Of several that wait for one thing, only one does."""
_FOUND_S: Final = 0.1
"""Real seconds after which a thread that is found waiting for another one loses its turn."""
_ASLEEP_S: Final = 5.0
"""The same for one that sleeps in C, at one place. It may wait for a process, which is work."""


CARRIED: Final[list[ContextVar[Any]]] = [current_visit]
"""The variables that a thread has from the one that starts it. Those of the app it has where Python gives them."""


class Turns:
    """The turns of the threads of one loop. Made in the thread of the loop.

    Attributes:
        loop_watches: the loop is idle and moves the clock, so that no sleeping thread needs to.
    """

    def __init__(self, sleepers: Sleepers, wake_loop: Callable[[], None]) -> None:
        self._sleepers, self._wake_loop = sleepers, wake_loop
        self._changed = threading.Condition()
        self._numbers = count(1)
        self._queue: list[int] = []
        self._current: int | None = _LOOP
        self._loop_waits = False
        self._loop_is_idle = False
        self._closed = False
        self._found_waiting: tuple[object, float] = (None, 0.0)
        self._goes_on: int | None = None
        """The thread that has its turn and knows: on a busy machine, one may take long to be woken."""
        self.loop_watches = False
        self._own = threading.local()
        self._own.number = _LOOP
        self._idents: dict[int, int] = {}
        self._outside: dict[int, Callable[[], bool]] = {}
        self._expected: dict[int, Callable[[], bool]] = {}

    def number(self) -> int:
        """Return the number of a thread that is about to be started."""
        return next(self._numbers)

    def expect(self, number: int, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        """Let nobody have a turn before a thread has queued that is certain to, since it has been given work."""
        with self._changed:
            self._expected[number] = is_cancelled

    @property
    def is_member(self) -> bool:
        """True if the current thread takes turns, and has one now."""
        return not self._closed and getattr(self._own, "number", None) is not None

    @property
    def loop_waits_for_current(self) -> bool:
        """True if the loop is idle, and goes on when the current thread, which has its turn, gives it back."""
        number = getattr(self._own, "number", None)
        return bool(number) and self._loop_is_idle and self._current == number  # _LOOP waits for nobody

    @contextmanager
    def turn(self, number: int) -> Iterator[None]:
        """Run the code inside when it is the turn of this thread, and end the turn after it."""
        self._idents[number] = threading.get_ident()
        self._enter(number)
        try:
            yield
        finally:
            _ended.add(threading.current_thread())
            self._leave()
            self._own.number = None

    def keeping(self, function: Callable[..., T], /, *args: Any, **named: Any) -> T:
        """Call a function, and keep the turn whatever the current thread waits for there: it holds a lock."""
        number, self._own.number = getattr(self._own, "number", None), None
        try:
            return function(*args, **named)
        finally:
            self._own.number = number

    @contextmanager
    def outside(self, goes_on: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Give the turn to others while the current thread waits. `goes_on` tells whether it is about to go on."""
        number = getattr(self._own, "number", None)
        if number is None or self._closed:
            yield
            return
        self._own.number = None  # what waits inside has no turn to give
        self._outside[number] = goes_on
        self._give(number)
        try:
            yield
        finally:
            self._enter(number)

    def _enter(self, number: int) -> None:
        with self._changed:
            self._outside.pop(number, None)
            if number == _LOOP:
                self._loop_waits = False
                while not self._closed and self._current not in (None, _LOOP):
                    self._wait()
                self._current = _LOOP
            else:
                self._expected.pop(number, None)
                self._queue.append(number)
                self._queue.sort()
                self._sleepers.gone_on()
                self._grant_if_loop_waits()
                if self._loop_is_idle and self._current == _LOOP and self._is_settled():
                    self._current = self._queue.pop(0)
                loop_knows = self._loop_is_idle
                if self._current != number:
                    self._changed.notify_all()
        if number != _LOOP:
            if not loop_knows:
                self._wake_loop()
            with self._changed:
                while not self._closed and self._current != number:
                    self._changed.wait()
                self._goes_on = number
        self._own.number = number

    def _leave(self) -> None:
        number = getattr(self._own, "number", None)
        if number is not None:
            self._give(number)

    def _give(self, number: int) -> None:
        with self._changed:
            if number == _LOOP:
                self._loop_waits = True
            if self._current == number:
                self._current = self._goes_on = None
            self._grant_if_loop_waits()
            self._changed.notify_all()

    def _grant_if_loop_waits(self) -> None:
        """Give the turn to the next thread, if the loop cannot, since its code waits for a thread."""
        if self._loop_waits and self._current is None and self._queue:
            self._current = self._queue.pop(0)

    def run_next(self) -> bool:
        """Let the next thread run until it gives its turn back. False if no thread is in the queue.

        Called by the loop when it is idle.
        """
        with self._changed:
            self._loop_is_idle = True
            try:
                return self._run_next()
            finally:
                self._loop_is_idle = False

    def _run_next(self) -> bool:
        self._let_queue()
        if self._closed or (self._current == _LOOP and not self._queue):
            return False
        if self._current == _LOOP:
            self._current = self._queue.pop(0)
            self._changed.notify_all()
        while not self._closed and self._current not in (None, _LOOP):
            self._wait()
        self._current = _LOOP
        return True

    def _let_queue(self) -> None:
        """Wait until the threads that go on have queued, so that their order does not depend on who is faster.

        The last of them gives the turn to the first, without waking the loop: each change between threads takes time.
        """
        if self._is_settled():
            return
        began = real.monotonic()
        while not self._closed and real.monotonic() - began < _SETTLED_S:
            self._changed.wait(POLL_S)
            if self._current != _LOOP or self._is_settled():
                return

    def _is_settled(self) -> bool:
        """True if no thread is about to queue."""
        if self._sleepers.waking or any(is_about_to() for is_about_to in self._outside.values()):
            return False
        return all(is_cancelled() for is_cancelled in self._expected.values())

    def _wait(self) -> None:
        """Wait for the end of the current turn, or until its thread is found waiting."""
        current = self._current
        if self._changed.wait(POLL_S) or self._goes_on != current:
            return
        ident, now = self._idents.get(current or 0), real.monotonic()
        waits = ident is not None and self._sleepers.all_wait({ident})
        place = current, waits, self._sleepers.asleep_at(ident) if ident is not None and not waits else None
        if (not waits and place[2] is None) or self._found_waiting[0] != place:
            self._found_waiting = place, now
        elif now - self._found_waiting[1] > (_FOUND_S if waits else _ASLEEP_S):
            self._current = self._goes_on = None
            self._grant_if_loop_waits()
            self._changed.notify_all()

    def close(self) -> None:
        """Let all threads run."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


_active: Turns | None = None


def active_turns() -> Turns | None:
    """Return the turns of the run in progress, if its threads take turns."""
    return _active


@contextmanager
def taking_turns(turns: Turns) -> Iterator[None]:
    """Let the threads that are started inside take turns."""
    global _active
    _hook()
    before, _active = _active, turns
    try:
        yield
    finally:
        _active = before
        turns.close()


def in_turn(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs when it is its turn, in a thread that starts later; now is its place in order."""
    place = _next_place()
    return partial(place.run, function) if place is not None else function


class _Place:
    """A place in the order of turns, for code that runs in a thread that starts later."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._number = turns.number()
        self._carried = [(var, var.get()) for var in CARRIED]

    def expect(self, is_cancelled: Callable[[], bool]) -> None:
        """See `Turns.expect`."""
        self._turns.expect(self._number, is_cancelled)

    def run(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
        """Call a function when it is its turn."""
        tokens = [(var, var.set(value)) for var, value in self._carried]
        try:
            with self._turns.turn(self._number):
                return in_one_process(partial(function, *args, **named))  # which may have any names
        finally:
            for var, token in tokens:
                var.reset(token)


def _next_place() -> _Place | None:
    """Return the place of what the current thread starts now; None if it takes no turns."""
    turns = _active
    return _Place(turns) if turns is not None and turns.is_member else None


class _SimpleQueue(queue._PySimpleQueue):  # type: ignore[name-defined, misc]
    """A `queue.SimpleQueue` in whose `get` a thread is seen waiting; that of Python waits in C.

    Python's own modules keep theirs, which is safe in callbacks of the garbage collector.
    """

    def __new__(cls) -> Any:
        of_python = origin(sys._getframe(1).f_code.co_filename) is PYTHON
        return _OriginalQueue() if of_python else super().__new__(cls)


_OriginalQueue: Final = queue.SimpleQueue


@cache
def replace_queues() -> None:
    """Replace `queue.SimpleQueue`, once in a process."""
    queue.SimpleQueue = _SimpleQueue  # type: ignore[misc]
    bind_names({id(_OriginalQueue): (_OriginalQueue, _SimpleQueue)})


@cache
def _hook() -> None:
    """Let threads give their turns while they wait, once in a process."""
    made = threading.local()
    for owner, name, goes_on in _WAITS:
        setattr(owner, name, _giving(getattr(owner, name), goes_on))
    item: Any = concurrent.futures.thread._WorkItem
    pool: Any = concurrent.futures.ThreadPoolExecutor
    submit, start = pool.submit, threading.Thread.start
    init, run = item.__init__, item.run

    @wraps(submit)
    def submit_keeping_turn(self: Any, fn: Any, /, *args: Any, **named: Any) -> Any:
        made.submitted = Submitted(self, _next_place())
        return _keeping_turn(submit, self, fn, *args, **named)

    @wraps(init)
    def init_item(self: Any, *args: Any, **named: Any) -> None:
        init(self, *args, **named)
        self.submitted = made.__dict__.pop("submitted", None)
        if self.submitted is not None:
            self.submitted.queue(self.future)

    @wraps(run)
    def run_item(self: Any, *args: Any, **named: Any) -> None:
        # To its end: when its result is set, and those who wait for it are told.
        work = partial(run, self, *args, **named)
        self.submitted.run(work) if self.submitted is not None else work()

    @wraps(start)
    def start_in_turn(self: threading.Thread) -> None:
        target: Any = getattr(self, "_target", None)
        if _is_python(target) and target is not concurrent.futures.thread._worker:
            self._target = in_turn(target)  # type: ignore[attr-defined]
        _keeping_turn(start, self)

    pool.submit = submit_keeping_turn
    item.__init__, item.run = init_item, run_item
    threading.Thread.start = start_in_turn  # type: ignore[method-assign]


def _is_python(target: Any) -> bool:
    """True if a function is written in Python. In another one (a poller of gRPC), nobody sees when it waits."""
    while isinstance(target, partial):
        target = target.func
    if not inspect.isroutine(target):
        target = getattr(type(target), "__call__", None)  # noqa: B004
    return inspect.isfunction(getattr(target, "__func__", target))


def _keeping_turn(function: Callable[..., T], /, *args: Any, **named: Any) -> T:
    return _active.keeping(function, *args, **named) if _active is not None else function(*args, **named)


def _giving(original: Callable[..., Any], goes_on: Callable[[Any], bool]) -> Callable[..., Any]:
    @wraps(original)
    def wait(self: Any, *args: Any, **named: Any) -> Any:
        turns = _active
        if turns is None or not turns.is_member or goes_on(self):
            return original(self, *args, **named)
        with turns.outside(partial(goes_on, self)):
            return original(self, *args, **named)

    return wait
