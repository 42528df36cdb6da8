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
from harness.recording.mcp.connection import MCPConnection
from harness.recording.mcp.replay import adapted_answer, progress_token
from harness.time.real_work import RealWork
from harness.world.mcp.wire import (
    Message,
    error_response,
    is_request,
    is_response,
    message_json,
    session_message,
)

# Stands in `received` where the connection ended.
_CLOSED: Message = {"jsonrpc": "2.0", "method": "harness/connection-closed"}


@dataclass
class OpenExchange:
    """An exchange that is being recorded."""

    sent: Message
    turn: int
    received: list[Message] = field(default_factory=list)
    duration_s: float = 0.0

    def exchange(self) -> Exchange:
        """As it stands now."""
        return Exchange(self.sent, tuple(self.received), self.turn, self.duration_s)


class Recorder(Protocol):
    """Plays and keeps the exchanges of a proxy."""

    def play(self, message: Message) -> Exchange | None:
        """The recorded exchange that answers a message of the client, used up with this."""
        ...

    def refusal(self, request: Message) -> CassetteError:
        """Why nothing recorded answers a request."""
        ...

    def note(self, message: Message) -> OpenExchange:
        """Begin an exchange with a message that is sent to the server."""
        ...

    def last(self) -> OpenExchange | None:
        """The exchange that was begun last."""
        ...

    def hear(self, message: Message) -> None:
        """See a message of the server, as soon as it is there."""
        ...


@dataclass
class _Asked:
    """A request that the server has not answered, or whose answer the client has not got yet."""

    exchange: OpenExchange
    work: RealWork
    held: list[Message] = field(default_factory=list)  # what the client gets with the answer


class Proxy:
    """The server's end of one session.

    Args:
        recorder: gives recorded exchanges, and keeps new ones.
        plays: whether recorded exchanges answer.
        reach: opens the SDK's transport to the real server, for what they do not answer; None: nothing does.
    """

    def __init__(
        self,
        recorder: Recorder,
        *,
        replays: bool,
        reach: Callable[[], AbstractAsyncContextManager[Any]] | None,
    ) -> None:
        self._recorder = recorder
        self._replays = replays
        self._reach = reach
        self._connection: MCPConnection | None = None
        self._handshake: list[Any] = []
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
                if self._connection is not None:
                    await self._connection.close()
                self._tasks.cancel_scope.cancel()

    async def _listen(self, from_client: Any) -> None:
        async for item in from_client:
            message = message_json(item)
            if is_response(message) and str(message.get("id")) in self._asked_by_server:
                self._send(item, message)
            elif self._replays and (exchange := self._recorder.play(message)) is not None:
                if message.get("method") in ("initialize", "notifications/initialized"):
                    self._handshake.append(item)
                self._tasks.start_soon(self._replay, exchange, message)
            elif self._reach is None:
                if is_request(message):
                    self._refuse(message, self._recorder.refusal(message))
            elif is_request(message) or self._connection is not None:
                self._send(item, message)

    async def _replay(self, exchange: Exchange, asked: Message) -> None:
        await asyncio.sleep(exchange.duration_s)
        try:
            for message in adapted_answer(exchange, asked):
                self._deliver(message)
        except ValueError:
            broken = CassetteBroken(f"not JSON-RPC messages: {list(exchange.received)!r}")
            if is_request(asked):
                self._refuse(asked, broken)

    # ------------------------------------------------------------------ the real server

    def _send(self, item: Any, message: Message) -> None:
        """Pass a message on to the real server, and record it. The connection is opened for the first."""
        if self._connection is None:
            assert self._reach is not None
            try:
                streams = self._reach()
            except HarnessError as error:
                self._refuse(message, error)
                return
            self._connection = MCPConnection(
                streams, tuple(self._handshake), on_message=self._on_message, on_close=self._on_close
            )
            self._tasks.start_soon(self._connection.run)
        exchange = self._recorder.note(message)
        if is_request(message):
            self._pending[str(message["id"])] = _Asked(exchange, RealWork())
        elif message.get("method") == "notifications/cancelled":
            given_up = self._pending.pop(str((message.get("params") or {}).get("requestId")), None)
            if given_up is not None:
                given_up.work.abandon()
        self._connection.send(item)

    def _on_message(self, item: Any) -> None:
        """Keep what the server sends until the answer it belongs to; give the client at once what belongs to none."""
        if isinstance(item, Exception):  # a line that is no message
            self._put(item)
            return
        message = message_json(item)
        self._recorder.hear(message)
        if is_response(message):
            asked = self._pending.pop(str(message.get("id")), None)
            if asked is not None:  # else nobody waits for it any more
                self._answer_with(asked, message)
            return
        asked = self._occasion(message)
        exchange = self._recorder.last() if asked is None else asked.exchange
        if exchange is not None:
            exchange.received.append(message)
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
            if token is not None and token == progress_token(asked.exchange.sent):
                return asked
        return open_requests[-1] if open_requests else None

    def _answer_with(self, asked: _Asked, *messages: Message) -> None:
        asked.exchange.received.extend(messages)
        asked.held.extend(messages)
        self._answering.append(asked)
        self._tasks.start_soon(self._answer, asked)

    async def _answer(self, asked: _Asked) -> None:
        asked.exchange.duration_s = await asked.work.end()
        self._answering.remove(asked)
        for message in asked.held:
            self._deliver(message)

    def _on_close(self, why: str) -> None:
        """The connection is gone: fail what is asked, and whatever would be asked later."""
        pending = list(self._pending.values())
        self._pending.clear()
        for asked in pending:
            self._answer_with(asked, error_response(asked.exchange.sent, why), _CLOSED)
        if pending:
            return
        if self._answering:
            asked = self._answering[-1]
            asked.exchange.received.append(_CLOSED)
            asked.held.append(_CLOSED)
            return
        if (exchange := self._recorder.last()) is not None:
            exchange.received.append(_CLOSED)
        self._deliver(_CLOSED)

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
        if message == _CLOSED:
            self._to_client.close()
            self._give_up()
        else:
            self._put(session_message(message))

    def _put(self, item: Any) -> None:
        import anyio

        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._to_client.send_nowait(item)
