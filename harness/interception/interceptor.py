"""The interface between patched clients and who answers: a request is answered, or sent and then reported."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from typing import Any

from harness.errors import HarnessError
from harness.interception.messages import PreparedReply, Request, Response, SendResult
from harness.interception.real_effects import (
    charge_since,
    current_effects,
    raise_unanswerable,
    refuse_late,
    wait_blocking,
)
from harness.time.paced import RealWork, in_thread, real_timers
from harness.time.real import real

Place = Any
"""Identifies a request that was sent, between `begin` and `end`."""


class Permit(ABC):
    """Permission to send a request to a real system, which others share. The methods block the thread."""

    @abstractmethod
    def wait(self) -> None:
        """Wait in real time until the request may be sent.

        Raises:
            HarnessError: it may not.
        """

    @abstractmethod
    def answered(self, response: Response | None) -> bool:
        """Tell of the response, or that none arrived. True if the request is to be sent again, after `wait`."""

    @abstractmethod
    def spent(self, response: Response | None) -> None:
        """Tell of the body of the response, which says what it cost. It is the end of the permit."""

    @abstractmethod
    def close(self) -> None:
        """Give the permit back: the request was not sent, or nobody knows its response."""


class NoPermit(Permit):
    """The permit of a request that needs none."""

    def wait(self) -> None:
        """See `Permit`, as of all methods."""

    def answered(self, response: Response | None) -> bool:
        return False

    def spent(self, response: Response | None) -> None: ...

    def close(self) -> None: ...


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
    def received(self, place: Place, sent: SendResult, seconds: float) -> None:
        """Handle a response that has arrived after so many real seconds, before `end`, which may yet not come."""

    @abstractmethod
    def end(self, place: Place, sent: SendResult, seconds: float) -> None:
        """Handle the end of a request that was sent, after so many real seconds."""

    @abstractmethod
    def drop(self, place: Place) -> None:
        """Handle a request that was not made after all, or whose result is unknown."""

    def permit(self, request: Request, *, patient: bool) -> Permit:
        """Return the permit for a request that is to be sent; see `harness.recording.permits`.

        With `patient` false, it does not wait for other requests of this process to end.
        """
        return NoPermit()

    async def admitted(self, permit: Permit) -> None:
        """Wait for a permit in real time, while virtual time stands still.

        Raises:
            Unanswerable: the request may not be sent.
        """
        if isinstance(permit, NoPermit):
            return
        try:
            await in_thread(permit.wait, "waits for a permit")
        except HarnessError as error:
            raise_unanswerable(error)

    def admitted_blocking(self, permit: Permit) -> None:
        """Do the same as `admitted` in code without an event loop."""
        try:
            permit.wait()
        except HarnessError as error:
            raise_unanswerable(error)

    async def answer(self, request: Request, send: Callable[[], Awaitable[SendResult]]) -> SendResult:
        """Return the answer to a request, when it is due. `send` sends the request.

        For a known answer with neither response nor failure, this waits for ever. If `send` raises, the request was
        not made.
        """
        refuse_late()
        found = self.claim(request)
        if found is not None:
            await self.wait_for(found)
            return SendResult(found.response, found.chunks_s, found.failure)
        with closing(self.permit(request, patient=True)) as permit:
            while True:
                await self.admitted(permit)
                place, work = self.begin(request), RealWork()
                try:
                    with real_timers():
                        sent = await send()
                    seconds = work.elapsed_s
                except BaseException as error:
                    work.abandon()
                    if not isinstance(error, asyncio.CancelledError):
                        self.drop(place)
                    raise
                if not permit.answered(sent.response):
                    break
                work.abandon()
                self.drop(place)
            if sent.passed_through is not None:
                sent.passed_through.stream.on_end = partial(self._on_end, place, work)
                return sent
            # At once, not when virtual time has passed: it stands still while other requests wait for their permits.
            self.received(place, sent, seconds)
            permit.spent(sent.response)
            self.end(place, sent, await work.end(seconds))
            return sent

    async def _on_end(self, place: Place, work: RealWork, sent: SendResult) -> None:
        self.end(place, sent, await work.end())

    def answer_blocking(self, request: Request, send: Callable[[], SendResult]) -> SendResult:
        """Return the answer to a request of a client without an event loop. Its time passes when the effect ends."""
        refuse_late()
        found = self.claim(request)
        if found is not None:
            return self.reply_blocking(found)
        with closing(self.permit(request, patient=asyncio._get_running_loop() is None)) as permit:
            while True:
                self.admitted_blocking(permit)
                place, began, effects = self.begin(request), real.monotonic(), current_effects()
                try:
                    sent = send()
                except BaseException:
                    self.drop(place)
                    raise
                if not permit.answered(sent.response):
                    break
                self.drop(place)
            seconds = charge_since(began, effects)
            self.received(place, sent, seconds)
            permit.spent(sent.response)
            self.end(place, sent, seconds)
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
