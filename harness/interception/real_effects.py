"""Effects that are really performed, and the HTTP requests that belong to them, in whatever thread.

A request is attributed to the effect whose context it is made in. A thread that was started without the context
belongs to all effects that are under way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from threading import Lock
from typing import Any, Final, NoReturn

from harness.errors import WorldError
from harness.graph.effects import Effect
from harness.time.real_work import RealWork
from harness.units import MEASURED_PRECISION

not_intercepted: ContextVar[bool] = ContextVar("not_intercepted", default=False)
"""True where the HTTP of this context passes as it is, such as that of an MCP connection."""


class Unanswerable(BaseException):
    """Ends what a client or a tool does, which would try again on any Exception; see `within_effect`."""


@dataclass(eq=False)
class RealEffect:
    """One effect that is really performed, in one thread or several.

    effect   the effect that is performed, with the `state` of the node; None where a backend performs it
    number   counts effects in the order they began
    owed_s   the time that clients without an event loop have used up and that virtual time has not yet spent
    refused  why a request of it could not be answered
    """

    effect: Effect | None = None
    state: Mapping[str, Any] = field(default_factory=dict)
    number: int = field(default_factory=count(1).__next__)
    owed_s: float = 0.0
    refused: WorldError | None = None
    _lock: Lock = field(default_factory=Lock)
    _charged: list[tuple[float, float]] = field(default_factory=list)

    def owe(self, seconds: float) -> None:
        """Add to the time that passes when the effect ends."""
        with self._lock:
            self.owed_s = round(self.owed_s + seconds, MEASURED_PRECISION)

    def share(self, began: float, ended: float) -> float:
        """The part of this interval of real time that no other request was charged for; from now on, this one is."""
        with self._lock:
            touching = [(a, b) for a, b in self._charged if a <= ended and began <= b]
            covered = sum(min(ended, b) - max(began, a) for a, b in touching)
            self._charged = [each for each in self._charged if each not in touching]
            self._charged.append(
                (min([began, *(a for a, _ in touching)]), max([ended, *(b for _, b in touching)]))
            )
        return ended - began - covered


_current: ContextVar[RealEffect | None] = ContextVar("_current", default=None)
_under_way: Final[list[RealEffect]] = []
_preparations: Final[list[Callable[[], object]]] = []


@contextmanager
def before_first_effect(prepare: Callable[[], object]) -> Iterator[None]:
    """Call `prepare` before the first effect that is performed inside; never, if none is."""
    _preparations.append(prepare)
    try:
        yield
    finally:
        if prepare in _preparations:
            _preparations.remove(prepare)


async def within_effect(
    work: Callable[[], Awaitable[Any]], effect: Effect | None = None, state: Mapping[str, Any] | None = None
) -> Any:
    """The result of `work`, which performs `effect`. HTTP that it does, in threads too, takes virtual time.

    Raises:
        WorldError: a request cannot be answered, whatever the code in between made of that.
    """
    while _preparations:
        _preparations.pop()()
    real = RealEffect(effect, state or {})
    token = _current.set(real)
    try:
        value = await _in_its_time(work, real)
    except BaseException:
        if real.refused is None:
            raise
    finally:
        _current.reset(token)
    if real.refused is not None:
        raise real.refused
    return value


async def _in_its_time(work: Callable[[], Awaitable[Any]], effect: RealEffect) -> Any:
    value, failure = None, None
    _under_way.append(effect)
    try:
        value = await work()
    except Exception as error:
        failure = error
    finally:
        _under_way.remove(effect)
    await _spend(effect.owed_s)
    if failure is not None:
        raise failure
    return value


async def _spend(seconds: float) -> None:
    """Advance virtual time by real time that has passed while the loop was blocked, or unaware of it."""
    if seconds:
        passed = RealWork(passed=seconds)
        try:
            await asyncio.sleep(seconds)
        finally:
            passed.abandon()


def current_effects() -> list[RealEffect]:
    """The effect that makes a request now; in a thread without a context, all that are under way."""
    effect = _current.get()
    return [effect] if effect is not None else list(_under_way)


def owe(seconds: float) -> None:
    """Add to the time that passes when the current effect ends."""
    effects = current_effects()
    if len(effects) == 1:
        effects[0].owe(seconds)


def charge_since(began: float) -> float:
    """Owe the real time that a blocking request took since `began` (`time.monotonic()`); returns it, in seconds.

    Of several that run at once each is charged what it adds to the others: together they take as long as the longest.
    """
    ended = time.monotonic()
    effects = current_effects()
    seconds = effects[0].share(began, ended) if len(effects) == 1 else ended - began
    seconds = max(0.0, round(seconds, MEASURED_PRECISION))
    owe(seconds)
    return seconds


def raise_unanswerable(error: WorldError) -> NoReturn:
    """End the current effects, since nothing answers a request of theirs.

    Raises:
        Unanswerable: within an effect; `error` itself elsewhere.
    """
    effects = current_effects()
    if not effects:
        raise error
    for effect in effects:
        effect.refused = effect.refused or error
    raise Unanswerable(str(error))
