"""One run's HTTP: played from what was recorded, or really sent and taken down.

Requests come from the patched transports (`interception`), which know how to send them. A request is answered once,
by the first recorded one that matches, in the order they were asked in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from harness.errors import CassetteError
from harness.graph.clock import MEASURED, RealWork, real_timers
from harness.world.cassette.interactions import Interaction, Request, Response


class Unanswerable(BaseException):
    """Ends what a client or a tool does, which would try again on any Exception; see `within_effect`."""


@dataclass
class _Doing:
    """One effect that is really done.

    owed_s   what clients without an event loop have used up, and virtual time has not yet spent
    refused  why a request of it could not be answered
    """

    owed_s: float = 0.0
    refused: CassetteError | None = None


_doing: ContextVar[_Doing | None] = ContextVar("_doing", default=None)


async def within_effect(work: Callable[[], Awaitable[Any]]) -> Any:
    """Do the real thing: HTTP that it does, in threads too, takes its time on the loop's clock.

    Raises:
        WorldError: the cassette cannot answer a request, whatever the code in between made of that.
    """
    doing = _Doing()
    token = _doing.set(doing)
    try:
        value = await work()
        if doing.owed_s:
            await asyncio.sleep(doing.owed_s)
    except BaseException:
        if doing.refused is None:
            raise
    finally:
        _doing.reset(token)
    if doing.refused is not None:
        raise doing.refused
    return value


@dataclass(frozen=True)
class Sent:
    """What became of a request that was really sent: a response, or the client's exception as text."""

    response: Response | None
    chunks_s: tuple[float, ...] = ()
    failure: str = ""


class HTTPTape:
    """The HTTP interactions of one take.

    Args:
        recorded: what may be played.
        key: equal for requests that match.
        sends: whether a request that nothing recorded matches is really sent.
        refuse: makes the error for such a request where it is not sent, from it and the indices already used.
        seen: is told of each interaction that was taken down, as soon as it is over.
    """

    def __init__(
        self,
        recorded: Sequence[Interaction],
        key: Callable[[Request], str],
        *,
        sends: bool,
        refuse: Callable[[Request, set[int]], CassetteError],
        seen: Callable[[Interaction], object] = lambda _: None,
    ) -> None:
        self.turn = 1
        self._recorded = tuple(recorded)
        self._key = key
        self._sends = sends
        self._refuse = refuse
        self._seen = seen
        self._by_key: dict[str, list[int]] | None = None
        self._used: set[int] = set()
        self._taken: list[Interaction] = []  # what was asked, in order, with what was answered

    def taken(self) -> tuple[Interaction, ...]:
        """What was asked in this run, in the order it was asked in, and what was answered."""
        return tuple(self._taken)

    @property
    def added(self) -> bool:
        """Whether anything was asked that was not played."""
        return len(self._taken) > len(self._used)

    def unused(self) -> list[Interaction]:
        """What was recorded and not played."""
        return [interaction for index, interaction in enumerate(self._recorded) if index not in self._used]

    async def answer(self, request: Request, send: Callable[[], Awaitable[Sent]]) -> Sent:
        """The answer to a request, when its time has come. One that was given up when it was recorded never comes."""
        found = self._play(request)
        if found is not None:
            if found.response is None and not found.failure:
                await asyncio.get_running_loop().create_future()
            await asyncio.sleep(found.duration_s)
            return Sent(found.response, found.chunks_s, found.failure)
        place = self._begin(request)
        work = RealWork()
        try:
            with real_timers():
                sent = await send()
        except BaseException:
            work.abandon()
            raise
        self._end(place, sent, await work.end())
        return sent

    def answer_blocking(self, request: Request, send: Callable[[], Sent]) -> Sent:
        """The answer to a request of a client without an event loop; its time is spent when the effect ends."""
        if self.can_play(request):
            return self.play_blocking(request)
        place = self._begin(request)
        began = time.monotonic()
        sent = send()
        self._end(place, sent, self._spent(began))
        return sent

    def can_play(self, request: Request) -> bool:
        """Whether the request is answered from the recording; otherwise it is to be sent.

        Raises:
            Unanswerable: nothing recorded answers, and nothing may be sent.
        """
        if self._find(request) is not None:
            return True
        if not self._sends:
            _stop(self._refuse(request, self._used))
        return False

    def play_blocking(self, request: Request) -> Sent:
        """The recorded answer to a request that `can_play`."""
        found = self._play(request)
        assert found is not None
        if found.response is None and not found.failure:
            raise TimeoutError("nobody waited for the answer when this was recorded")
        _spend(found.duration_s)
        return Sent(found.response, found.chunks_s, found.failure)

    def take_down(self, request: Request, sent: Sent, began: float) -> None:
        """Keep a request that was sent by a client without an event loop; `began` is of `time.monotonic()`."""
        self._end(self._begin(request), sent, self._spent(began))

    def _spent(self, began: float) -> float:
        seconds = round(time.monotonic() - began, MEASURED)
        _spend(seconds)
        return seconds

    def _find(self, request: Request) -> int | None:
        """The first recorded interaction of this turn that matches and was not used."""
        if not self._recorded:
            return None
        if self._by_key is None:
            self._by_key = {}
            for index, interaction in enumerate(self._recorded):
                self._by_key.setdefault(self._key(interaction.request), []).append(index)
        for index in self._by_key.get(self._key(request), ()):
            if index not in self._used and self._recorded[index].turn in (None, self.turn):
                return index
        return None

    def _play(self, request: Request) -> Interaction | None:
        """The recorded interaction that answers, used up with this; None when the request is to be sent.

        Raises:
            Unanswerable: nothing recorded answers, and nothing may be sent.
        """
        index = self._find(request)
        if index is not None:
            self._used.add(index)
            self._taken.append(self._recorded[index])
            return self._recorded[index]
        if not self._sends:
            _stop(self._refuse(request, self._used))
        return None

    def _begin(self, request: Request) -> int:
        self._taken.append(Interaction(request, None, self.turn))
        return len(self._taken) - 1

    def _end(self, place: int, sent: Sent, seconds: float) -> None:
        self._taken[place] = replace(
            self._taken[place],
            response=sent.response,
            duration_s=seconds,
            chunks_s=sent.chunks_s,
            failure=sent.failure,
        )
        self._seen(self._taken[place])


def _spend(seconds: float) -> None:
    doing = _doing.get()
    if doing is not None:
        doing.owed_s = round(doing.owed_s + seconds, MEASURED)


def _stop(error: CassetteError) -> NoReturn:
    doing = _doing.get()
    if doing is None:
        raise error
    doing.refused = doing.refused or error
    raise Unanswerable(str(error))
