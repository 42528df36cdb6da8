"""One run's HTTP: played from what was recorded, or really sent and recorded.

Requests come from the patched clients (`interception`), which know how to send them. A request is answered once,
by the first recorded one that matches, in the order they were asked in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Container, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from threading import Lock
from typing import Any, Final, NoReturn

from harness.errors import CassetteError
from harness.recording.interactions import Interaction, Request, Response
from harness.time.clock import MEASURED, RealWork, real_timers


class Unanswerable(BaseException):
    """Ends what a client or a tool does, which would try again on any Exception; see `within_effect`."""


@dataclass(eq=False)
class _Doing:
    """One effect that is really done, in one thread or several.

    number   counts effects in the order they were begun in
    owed_s   what clients without an event loop have used up, and virtual time has not yet spent
    refused  why a request of it could not be answered
    """

    number: int = field(default_factory=count(1).__next__)
    owed_s: float = 0.0
    refused: CassetteError | None = None
    _lock: Lock = field(default_factory=Lock)
    _charged: list[tuple[float, float]] = field(default_factory=list)

    def owe(self, seconds: float) -> None:
        with self._lock:
            self.owed_s = round(self.owed_s + seconds, MEASURED)

    def share(self, began: float, ended: float) -> float:
        """What of this interval of real time no other request was charged for; from now on, this one is."""
        with self._lock:
            touching = [(a, b) for a, b in self._charged if a <= ended and began <= b]
            covered = sum(min(ended, b) - max(began, a) for a, b in touching)
            self._charged = [each for each in self._charged if each not in touching]
            self._charged.append(
                (min([began, *(a for a, _ in touching)]), max([ended, *(b for _, b in touching)]))
            )
        return ended - began - covered


Place = tuple[int, int]
"""Where an interaction stands among the others: its effect, and its number."""

_doing: ContextVar[_Doing | None] = ContextVar("_doing", default=None)
_under_way: Final[list[_Doing]] = []


async def within_effect(work: Callable[[], Awaitable[Any]]) -> Any:
    """Do the real thing: HTTP that it does, in threads too, takes its time on the loop's clock.

    Raises:
        WorldError: the cassette cannot answer a request, whatever the code in between made of that.
    """
    doing = _Doing()
    token = _doing.set(doing)
    try:
        value = await _in_its_time(work, doing)
    except BaseException:
        if doing.refused is None:
            raise
    finally:
        _doing.reset(token)
    if doing.refused is not None:
        raise doing.refused
    return value


async def _in_its_time(work: Callable[[], Awaitable[Any]], doing: _Doing) -> Any:
    value, failure = None, None
    _under_way.append(doing)
    try:
        value = await work()
    except Exception as error:
        failure = error
    finally:
        _under_way.remove(doing)
    await _spend(doing.owed_s)
    if failure is not None:
        raise failure
    return value


async def _spend(seconds: float) -> None:
    """Move virtual time on by real time that has passed while the loop did not hear of it."""
    if seconds:
        passed = RealWork(passed=seconds)
        try:
            await asyncio.sleep(seconds)
        finally:
            passed.abandon()


def _concerned() -> list[_Doing]:
    """The effect that asks; in a thread that does not know, all that are under way."""
    doing = _doing.get()
    return [doing] if doing is not None else list(_under_way)


def _owe(seconds: float) -> None:
    concerned = _concerned()
    if len(concerned) == 1:
        concerned[0].owe(seconds)


def _used_up(began: float) -> float:
    """Owe the time that a blocking request took, since `began`; gives it, in seconds.

    Where several run at once each has what it adds to the others: together they take as long as the longest.
    """
    ended = time.monotonic()
    concerned = _concerned()
    seconds = concerned[0].share(began, ended) if len(concerned) == 1 else ended - began
    seconds = max(0.0, round(seconds, MEASURED))
    _owe(seconds)
    return seconds


@dataclass(frozen=True)
class Sent:
    """What became of a request that was really sent: a response, or the client's exception as text.

    through  the client's own response, whose body is still to come; where nothing is kept, streams are not waited for
    """

    response: Response | None
    chunks_s: tuple[float, ...] = ()
    failure: str = ""
    through: Any = None


class HTTPRecorder:
    """The HTTP interactions of one recording.

    Args:
        recorded: what may be played.
        find: the index of the recorded interaction that answers a request in a turn, of those not yet used, if any.
        sends: whether a request that nothing recorded matches is really sent.
        refuse: makes the error for such a request where it is not sent, from it and the indices already used.
        seen: is told of each interaction that was recorded, as soon as it is over.
        keeps: whether what is recorded is kept and played some day; otherwise streams may pass as they come.
    """

    def __init__(
        self,
        recorded: Sequence[Interaction],
        find: Callable[[Request, int, Container[int]], int | None],
        *,
        sends: bool,
        refuse: Callable[[Request, set[int]], CassetteError],
        seen: Callable[[Interaction], object] = lambda _: None,
        keeps: bool = True,
    ) -> None:
        self.turn = 1
        self.keeps = keeps
        self._recorded = tuple(recorded)
        self._find = find
        self._sends = sends
        self._refuse = refuse
        self._seen = seen
        self._used: set[int] = set()
        self._places = count()
        self._log: dict[Place, Interaction] = {}  # what was asked, with what was answered
        self._lock = Lock()  # tools ask from threads

    def interactions(self) -> tuple[Interaction, ...]:
        """What was asked in this run and what was answered: effect by effect, of each in the order it was asked in.

        Clients of effects side by side may come in another order each time, since they use threads.
        """
        return tuple(self._log[place] for place in sorted(self._log))

    @property
    def added(self) -> bool:
        """Whether anything was asked that was not played."""
        return len(self._log) > len(self._used)

    def unused(self) -> list[Interaction]:
        """What was recorded and not played."""
        return [interaction for index, interaction in enumerate(self._recorded) if index not in self._used]

    async def answer(self, request: Request, send: Callable[[], Awaitable[Sent]]) -> Sent:
        """The answer to a request, when its time has come.

        One that was given up when it was recorded never comes. A request for which `send` raises was not made.
        """
        found = self.claim(request)
        if found is not None:
            await self.wait_for(found)
            return Sent(found.response, found.chunks_s, found.failure)
        place = self.begin(request)
        work = RealWork()
        try:
            with real_timers():
                sent = await send()
        except BaseException as error:
            work.abandon()
            if not isinstance(error, asyncio.CancelledError):
                self.drop(place)
            raise
        if sent.through is not None:
            sent.through.stream.over = partial(self._over, place, work)
            return sent
        self.end(place, sent, await work.end())
        return sent

    async def _over(self, place: Place, work: RealWork, sent: Sent) -> None:
        self.end(place, sent, await work.end())

    def answer_blocking(self, request: Request, send: Callable[[], Sent]) -> Sent:
        """The answer to a request of a client without an event loop; its time is spent when the effect ends."""
        found = self.claim(request)
        if found is not None:
            return self.played_blocking(found)
        place = self.begin(request)
        began = time.monotonic()
        try:
            sent = send()
        except BaseException:
            self.drop(place)
            raise
        self.end(place, sent, _used_up(began))
        return sent

    @staticmethod
    def played_blocking(played: Interaction) -> Sent:
        """The recorded answer to a request of a client without an event loop, which claimed it."""
        if played.response is None and not played.failure:
            raise TimeoutError("nobody waited for the answer when this was recorded")
        _owe(played.duration_s)
        return Sent(played.response, played.chunks_s, played.failure)

    def record(self, request: Request, sent: Sent, began: float) -> None:
        """Keep a request that a client without an event loop has sent; `began` is of `time.monotonic()`."""
        self.end(self.begin(request), sent, _used_up(began))

    def claim(self, request: Request) -> Interaction | None:
        """The recorded interaction that answers, used up with this; None when the request is to be sent.

        Raises:
            Unanswerable: nothing recorded answers, and nothing may be sent.
        """
        with self._lock:
            index = self._find(request, self.turn, self._used)
            if index is not None:
                self._used.add(index)
                self._log[self._next_place()] = self._recorded[index]
                return self._recorded[index]
            if self._sends:
                return None
            error = self._refuse(request, self._used)
        _stop(error)

    @staticmethod
    async def wait_for(played: Interaction) -> None:
        """Until the time of a recorded answer has come, since it was claimed. One that was given up never comes."""
        if played.response is None and not played.failure:
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(played.duration_s)

    def _next_place(self) -> Place:
        concerned = _concerned()
        return concerned[-1].number if concerned else 0, next(self._places)

    def begin(self, request: Request) -> Place:
        """A request is sent; gives its place. One that neither ends nor is dropped was given up."""
        with self._lock:
            place = self._next_place()
            self._log[place] = Interaction(request, None, self.turn)
        return place

    def end(self, place: Place, sent: Sent, seconds: float) -> None:
        """A request that was sent is over."""
        with self._lock:
            self._log[place] = replace(
                self._log[place],
                response=sent.response,
                duration_s=seconds,
                chunks_s=sent.chunks_s,
                failure=sent.failure,
            )
            self._seen(self._log[place])

    def drop(self, place: Place) -> None:
        """A request was not made after all, or nobody can tell what became of it."""
        with self._lock:
            del self._log[place]


def _stop(error: CassetteError) -> NoReturn:
    concerned = _concerned()
    if not concerned:
        raise error
    for doing in concerned:
        doing.refused = doing.refused or error
    raise Unanswerable(str(error))
