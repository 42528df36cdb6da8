"""Tracks the effects that are really performed, and attributes HTTP requests to them, in any thread.

A request belongs to the effect in whose context it is made. A request in a thread that was started without the
context belongs to all effects in progress. One of a thread that outlives its run is refused. A call of a chat model
learns whether the model has made a request that its stub can answer.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from threading import Lock
from typing import Any, Final, NoReturn, Self

from harness.errors import HarnessError
from harness.graph.effects import Effect
from harness.time.blocking import blocks, wait
from harness.time.paced import RealWork
from harness.time.real import real
from harness.time.turns import CARRIED
from harness.units import MEASURED_PRECISION

not_intercepted: ContextVar[bool] = ContextVar("not_intercepted", default=False)
"""True in a context whose HTTP requests are not intercepted, such as those of an MCP connection."""


class Unanswerable(BaseException):
    """Ends a client or a tool. They would retry on any Exception. `within_effect` raises the actual `error`."""

    def __init__(self, error: HarnessError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(eq=False)
class RealEffect:
    """An effect that is really performed, in one or several threads.

    effect   the effect, with the `state` of its node; None if a backend performs it
    number   number of the effect in the order of their starts
    owed_s   time used by clients without an event loop by which virtual time has not advanced yet, in seconds
    refused  the error for a request that could not be answered
    sleep    lets a client without an event loop wait in virtual time; None: what it waits is owed
    """

    effect: Effect | None = None
    state: Mapping[str, Any] = field(default_factory=dict)
    number: int = field(default_factory=count(1).__next__)
    owed_s: float = 0.0
    refused: HarnessError | None = None
    sleep: Callable[[float], None] | None = None
    _lock: Lock = field(default_factory=Lock)
    _charged: list[tuple[float, float]] = field(default_factory=list)

    def owe(self, seconds: float) -> None:
        """Add to the time by which virtual time advances when the effect ends."""
        with self._lock:
            self.owed_s = round(self.owed_s + seconds, MEASURED_PRECISION)

    def share(self, began: float, ended: float) -> float:
        """Charge an interval of real time, and return the part of it that was not charged before, in seconds."""
        with self._lock:
            touching = [(a, b) for a, b in self._charged if a <= ended and began <= b]
            covered = sum(min(ended, b) - max(began, a) for a, b in touching)
            self._charged = [each for each in self._charged if each not in touching]
            self._charged.append(
                (min([began, *(a for a, _ in touching)]), max([ended, *(b for _, b in touching)]))
            )
        return ended - began - covered

    @contextmanager
    def current(self) -> Iterator[None]:
        """Own the requests that are made inside, in this context."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


_current: ContextVar[RealEffect | None] = ContextVar("_current", default=None)
CARRIED.append(_current)
_under_way: Final[list[RealEffect]] = []
_preparations: Final[list[Callable[[], object]]] = []


@contextmanager
def before_first_effect(prepare: Callable[[], object]) -> Iterator[None]:
    """Call `prepare` before the first effect that is performed within the context, if there is one."""
    _preparations.append(prepare)
    try:
        yield
    finally:
        if prepare in _preparations:
            _preparations.remove(prepare)


async def within_effect(
    work: Callable[[], Awaitable[Any]],
    effect: Effect | None = None,
    state: Mapping[str, Any] | None = None,
    *,
    sleep: Callable[[float], None] | None = None,
) -> Any:
    """Return the result of `work`, which performs `effect`. Its HTTP requests, also in threads, take virtual time.

    Raises:
        HarnessError: a request cannot be answered, even if the code in between handled the exception.
    """
    while _preparations:
        _preparations.pop()()
    outer = _current.get()
    sleep = sleep or (outer.sleep if outer is not None else None)
    real = RealEffect(effect, state or {}, sleep=sleep)
    token = _current.set(real)
    try:
        value = await _perform(work, real, outer)
    except BaseException:
        if real.refused is None:
            raise
    finally:
        _current.reset(token)
    if real.refused is not None:
        raise real.refused
    return value


async def _perform(work: Callable[[], Awaitable[Any]], effect: RealEffect, outer: RealEffect | None) -> Any:
    value, failure = None, None
    _under_way.append(effect)
    try:
        value = await work()
    except Exception as error:
        failure = error
    finally:
        _under_way.remove(effect)
    if outer is not None and blocks():  # only an effect on the loop can spend it
        outer.owe(effect.owed_s)
    else:
        await _spend(effect.owed_s)
    if failure is not None:
        raise failure
    return value


async def _spend(seconds: float) -> None:
    """Advance virtual time by real time that has passed while the loop was blocked or did not measure it."""
    if seconds:
        passed = RealWork(passed=seconds)
        try:
            await wait(seconds)
        finally:
            passed.abandon()


def current_effect() -> RealEffect | None:
    """Return the effect of the current context."""
    return _current.get()


def current_effects() -> list[RealEffect]:
    """Return the effect of the current context; in a thread without one, all effects in progress."""
    effect = _current.get()
    return [effect] if effect is not None else list(_under_way)


def owe(seconds: float) -> None:
    """Add to the time by which virtual time advances when the current effect ends."""
    effects = current_effects()
    if len(effects) == 1:
        effects[0].owe(seconds)


def wait_blocking(seconds: float) -> None:
    """Let the current effect wait in code without an event loop: at once, or when it ends."""
    effects = current_effects()
    if len(effects) == 1 and effects[0].sleep is not None:
        if seconds:
            effects[0].sleep(seconds)
    else:
        owe(seconds)


def charge_since(began: float, effects: Sequence[RealEffect]) -> float:
    """Charge the real time of a blocking request since `began` (`real.monotonic()`), and return it in seconds.

    `effects` are those that were current then: telemetry that began outside of any is charged to none. Overlapping
    requests are charged once: together they take as long as they did in real time.
    """
    ended = real.monotonic()
    seconds = effects[0].share(began, ended) if len(effects) == 1 else ended - began
    seconds = max(0.0, round(seconds, MEASURED_PRECISION))
    if len(effects) == 1:
        effects[0].owe(seconds)
    return seconds


def raise_unanswerable(error: HarnessError) -> NoReturn:
    """End the current effects with an error, since a request of theirs cannot be answered.

    Raises:
        Unanswerable: within an effect.
        HarnessError: `error` itself, outside of effects.
    """
    effects = current_effects()
    if not effects:
        raise error
    for effect in effects:
        effect.refused = effect.refused or error
    raise Unanswerable(error)


# ---------------------------------------------------------------- threads that outlive their run

# They cannot be ended where they catch everything, and would reach the network, or the stubs of a later run.
_late: Final[dict[int, threading.Thread | None]] = {}
"""By the number of a thread, its object; None for one that was started without."""


def note_late(number: int, thread: threading.Thread | None) -> None:
    """Refuse what this thread sends from now on."""
    _late[number] = thread


def is_late() -> bool:
    """True in a thread that has outlived its run. Its number may have passed to another one."""
    number = threading.get_ident()
    if number not in _late:
        return False
    now, noted = threading._active.get(number), _late[number]  # type: ignore[attr-defined]
    return now is noted or (noted is None and isinstance(now, threading._DummyThread))


def refuse_late() -> None:
    """Refuse what a thread sends that has outlived its run.

    Raises:
        ConnectionError: this is such a thread.
    """
    if is_late():
        raise ConnectionError("the run that started this thread has ended")


# ---------------------------------------------------------------- calls of chat models


class NotOnWire(BaseException):
    """Ends a chat model's own attempt: its request is in no wire format that stubs can answer."""


class ModelCall:
    """A call of a chat model of LangChain, which is answered where its request is read. It is current inside.

    So its own client parses, streams and retries. Whether it makes such a request is known only when it is called:
    one may run in this process, or speak a protocol that stubs do not.

    Attributes:
        requested: it has made a request in the wire format of a provider.
        answered: a request of it was answered as plain HTTP, which may have been all that it needs.
    """

    def __init__(self) -> None:
        self.requested = self.answered = False

    def __enter__(self) -> Self:
        self._token = _model_call.set(self)
        return self

    def __exit__(self, _kind: Any, error: BaseException | None, _traceback: Any) -> bool:
        """End the call. A request in a format that is not known counts as none."""
        _model_call.reset(self._token)
        if not isinstance(error, NotOnWire):
            return False
        self.requested = self.answered = False
        return True

    @property
    def on_wire(self) -> bool:
        """True if what the model's own implementation returned comes from answers."""
        return self.requested or self.answered


_model_call: ContextVar[ModelCall | None] = ContextVar("_model_call", default=None)
CARRIED.append(_model_call)


def current_model_call() -> ModelCall | None:
    """Return the call of a chat model that the current code belongs to."""
    return _model_call.get()
