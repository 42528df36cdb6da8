"""The other end of the streams of an MCP client session: recorded exchanges answer it, or the real server does.

Messages pass here in the order the client sends them. An answer is given to the client when its time has come by the
loop's clock, with all that the server sent before it, so that a session goes the same way live and replayed.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.errors import CassetteBroken, CassetteError, HarnessError
from harness.recording.interactions import Exchange
from harness.recording.mcp.connection import Line
from harness.recording.mcp.replay import fitted, progress_token
from harness.time.clock import RealWork
from harness.world.mcp.wire import Message, error_response, is_request, is_response, opened, wrapped

# Stands in `received` where the connection broke.
_BROKEN: Message = {"jsonrpc": "2.0", "method": "harness/connection-closed"}


@dataclass
class Taped:
    """An exchange that is being recorded."""

    sent: Message
    turn: int
    received: list[Message] = field(default_factory=list)
    duration_s: float = 0.0

    def exchange(self) -> Exchange:
        """As it stands now."""
        return Exchange(self.sent, tuple(self.received), self.turn, self.duration_s)


class Tape(Protocol):
    """What a peer plays from, and records on."""

    def play(self, message: Message) -> Exchange | None:
        """The recorded exchange that answers a message of the client, used up with this."""
        ...

    def refusal(self, request: Message) -> CassetteError:
        """Why nothing recorded answers a request."""
        ...

    def note(self, message: Message) -> Taped:
        """Begin an exchange with a message that is sent to the server."""
        ...

    def last(self) -> Taped | None:
        """The exchange that was begun last."""
        ...

    def hear(self, message: Message) -> None:
        """See a message of the server, as soon as it is there."""
        ...


@dataclass
class _Asked:
    """A request that the server has not answered, or whose answer the client has not got yet."""

    taped: Taped
    work: RealWork
    held: list[Message] = field(default_factory=list)  # what the client gets with the answer


class Peer:
    """One end of one session.

    Args:
        tape: what was recorded, and where what is sent is recorded.
        plays: whether recorded exchanges answer.
        reach: opens the SDK's transport to the real server, for what they do not answer; None: nothing does.
    """

    def __init__(
        self, tape: Tape, *, plays: bool, reach: Callable[[], AbstractAsyncContextManager[Any]] | None
    ) -> None:
        self._tape = tape
        self._plays = plays
        self._reach = reach
        self._line: Line | None = None
        self._greeting: list[Any] = []
        self._pending: dict[str, _Asked] = {}
        self._answering: list[_Asked] = []
        self._asked_by_server: set[str] = set()
        self._to_client: Any
        self._tasks: Any

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[Any]:
        """The client's ends: the stream it reads from, and the one it writes to."""
        import anyio

        self._to_client, reads = anyio.create_memory_object_stream[Any](math.inf)
        writes, from_client = anyio.create_memory_object_stream[Any](math.inf)
        async with self._to_client, reads, writes, from_client, anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._listen, from_client)
            try:
                yield reads, writes
            finally:
                self._give_up()
                if self._line is not None:
                    await self._line.hang_up()
                self._tasks.cancel_scope.cancel()

    async def _listen(self, from_client: Any) -> None:
        async for item in from_client:
            message = opened(item)
            if is_response(message) and str(message.get("id")) in self._asked_by_server:
                self._send(item, message)
            elif self._plays and (exchange := self._tape.play(message)) is not None:
                if message.get("method") in ("initialize", "notifications/initialized"):
                    self._greeting.append(item)
                self._tasks.start_soon(self._replay, exchange, message)
            elif self._reach is None:
                if is_request(message):
                    self._refuse(message, self._tape.refusal(message))
            elif is_request(message) or self._line is not None:
                self._send(item, message)

    async def _replay(self, exchange: Exchange, asked: Message) -> None:
        await asyncio.sleep(exchange.duration_s)
        try:
            for message in fitted(exchange, asked):
                self._deliver(message)
        except ValueError:
            broken = CassetteBroken(f"not JSON-RPC messages: {list(exchange.received)!r}")
            if is_request(asked):
                self._refuse(asked, broken)

    # ------------------------------------------------------------------ the real server

    def _send(self, item: Any, message: Message) -> None:
        """Pass a message on to the real server, and record it. The line is opened for the first."""
        if self._line is None:
            assert self._reach is not None
            try:
                streams = self._reach()
            except HarnessError as error:
                self._refuse(message, error)
                return
            self._line = Line(streams, tuple(self._greeting), heard=self._heard, broke=self._broke)
            self._tasks.start_soon(self._line.run)
        taped = self._tape.note(message)
        if is_request(message):
            self._pending[str(message["id"])] = _Asked(taped, RealWork())
        elif message.get("method") == "notifications/cancelled":
            given_up = self._pending.pop(str((message.get("params") or {}).get("requestId")), None)
            if given_up is not None:
                given_up.work.abandon()
        self._line.send(item)

    def _heard(self, item: Any) -> None:
        """Keep what the server sends until the answer it belongs to; give the client at once what belongs to none."""
        if isinstance(item, Exception):  # a line that is no message
            self._put(item)
            return
        message = opened(item)
        self._tape.hear(message)
        if is_response(message):
            asked = self._pending.pop(str(message.get("id")), None)
            if asked is not None:  # else nobody waits for it any more
                self._answer_with(asked, message)
            return
        asked = self._occasion(message)
        taped = self._tape.last() if asked is None else asked.taped
        if taped is not None:
            taped.received.append(message)
        if is_request(message):
            self._asked_by_server.add(str(message["id"]))
        if asked is None or is_request(message):
            self._deliver(message)
        else:
            asked.held.append(message)

    def _occasion(self, message: Message) -> _Asked | None:
        """The request on whose occasion the server sends a message."""
        open_requests = [*self._answering, *self._pending.values()]
        token = (message.get("params") or {}).get("progressToken")
        for asked in open_requests:
            if token is not None and token == progress_token(asked.taped.sent):
                return asked
        return open_requests[-1] if open_requests else None

    def _answer_with(self, asked: _Asked, *messages: Message) -> None:
        asked.taped.received.extend(messages)
        asked.held.extend(messages)
        self._answering.append(asked)
        self._tasks.start_soon(self._answer, asked)

    async def _answer(self, asked: _Asked) -> None:
        asked.taped.duration_s = await asked.work.end()
        self._answering.remove(asked)
        for message in asked.held:
            self._deliver(message)

    def _broke(self, why: str) -> None:
        """The connection is gone: fail what is asked, and whatever would be asked later."""
        pending = list(self._pending.values())
        self._pending.clear()
        for asked in pending:
            self._answer_with(asked, error_response(asked.taped.sent, why), _BROKEN)
        if pending:
            return
        if self._answering:
            asked = self._answering[-1]
            asked.taped.received.append(_BROKEN)
            asked.held.append(_BROKEN)
            return
        if (taped := self._tape.last()) is not None:
            taped.received.append(_BROKEN)
        self._deliver(_BROKEN)

    def _give_up(self) -> None:
        """Wait for the server no longer."""
        for asked in self._pending.values():
            asked.work.abandon()
        self._pending.clear()

    # ------------------------------------------------------------------ to the client

    def _refuse(self, request: Message, error: HarnessError) -> None:
        """Answer with an error of ours. The session raises the very object: see `session`."""
        self._deliver(error_response(request, str(error), error))

    def _deliver(self, message: Message) -> None:
        if message == _BROKEN:
            self._to_client.close()
            self._give_up()
        else:
            self._put(wrapped(message))

    def _put(self, item: Any) -> None:
        import anyio

        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._to_client.send_nowait(item)
