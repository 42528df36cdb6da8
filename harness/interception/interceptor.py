"""The interface between patched clients and who answers: a request is answered, or sent and then reported."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from harness.interception.messages import PreparedReply, Request, SendResult
from harness.interception.real_effects import charge_since, current_effects, wait_blocking
from harness.time.paced import RealWork, real_timers
from harness.time.real import real

Place = Any
"""Identifies a request that was sent, between `begin` and `end`."""


class Interceptor(ABC):
    """Answers the HTTP requests of this process, or lets the client send them.

    `buffers_streams` is True if streamed bodies must be read to their end before the client gets them, as recording
    requires; otherwise they are passed through.
    """

    buffers_streams = False

    @abstractmethod
    def claim(self, request: Request) -> PreparedReply | None:
        """Consume and return the known answer to a request; None if the request is to be sent.

        Raises:
            Unanswerable: there is no answer, and the request may not be sent; see `raise_unanswerable`.
        """

    @abstractmethod
    def begin(self, request: Request) -> Place:
        """Handle the start of a request that is sent. Its client abandoned it if neither `end` nor `drop` follows."""

    @abstractmethod
    def end(self, place: Place, sent: SendResult, seconds: float) -> None:
        """Handle the end of a request that was sent, after so many real seconds."""

    @abstractmethod
    def drop(self, place: Place) -> None:
        """Handle a request that was not made after all, or whose result is unknown."""

    async def answer(self, request: Request, send: Callable[[], Awaitable[SendResult]]) -> SendResult:
        """Return the answer to a request, when it is due. `send` sends the request.

        For a known answer with neither response nor failure, this waits for ever. If `send` raises, the request was
        not made.
        """
        found = self.claim(request)
        if found is not None:
            await self.wait_for(found)
            return SendResult(found.response, found.chunks_s, found.failure)
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
        if sent.passed_through is not None:
            sent.passed_through.stream.on_end = partial(self._on_end, place, work)
            return sent
        self.end(place, sent, await work.end())
        return sent

    async def _on_end(self, place: Place, work: RealWork, sent: SendResult) -> None:
        self.end(place, sent, await work.end())

    def answer_blocking(self, request: Request, send: Callable[[], SendResult]) -> SendResult:
        """Return the answer to a request of a client without an event loop. Its time passes when the effect ends."""
        found = self.claim(request)
        if found is not None:
            return self.reply_blocking(found)
        place = self.begin(request)
        began, effects = real.monotonic(), current_effects()
        try:
            sent = send()
        except BaseException:
            self.drop(place)
            raise
        self.end(place, sent, charge_since(began, effects))
        return sent

    def reply_blocking(self, reply: PreparedReply) -> SendResult:
        """Return a claimed answer to a client without an event loop."""
        if reply.response is None and not reply.failure:
            raise TimeoutError("nobody waited for the answer when this was recorded")
        wait_blocking(reply.duration_s)
        return SendResult(reply.response, reply.chunks_s, reply.failure)

    async def wait_for(self, reply: PreparedReply) -> None:
        """Wait until a claimed answer is due: for ever if it has neither response nor failure."""
        if reply.response is None and not reply.failure:
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(reply.duration_s)
