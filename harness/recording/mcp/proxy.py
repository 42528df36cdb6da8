"""The server end of an MCP client session: answers from recorded exchanges, or forwards to the real server.

Messages are handled in the order the client sends them. An answer is delivered when it is due by the loop's clock,
together with all messages that the server sent before it, so that a session is the same live and replayed.
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
from harness.time.paced import RealWork
from harness.world.mcp.wire import (
    Message,
    error_response,
    is_request,
    is_response,
    message_json,
    session_message,
)

# Marks the end of the connection in `received`.
_CLOSED: Message = {"jsonrpc": "2.0", "method": "harness/connection-closed"}


@dataclass
class OpenExchange:
    """An exchange that is being recorded."""

    sent: Message
    turn: int
    received: list[Message] = field(default_factory=list)
    duration_s: float = 0.0

    def exchange(self) -> Exchange:
        """Return the exchange recorded so far."""
        return Exchange(self.sent, tuple(self.received), self.turn, self.duration_s)


class Recorder(Protocol):
    """Supplies recorded exchanges to a proxy, and stores new ones."""

    def consume(self, message: Message) -> Exchange | None:
        """Consume and return the recorded exchange that answers a message of the client; None if none does."""
        ...

    def mismatch_error(self, request: Message) -> CassetteError:
        """Return the error for a request that no recorded exchange answers."""
        ...

    def begin(self, message: Message) -> OpenExchange:
        """Begin an exchange with a message that is sent to the server."""
        ...

    def last(self) -> OpenExchange | None:
        """Return the exchange that was begun last; None if there is none."""
        ...

    def on_message(self, message: Message) -> None:
        """Handle a message of the server as soon as it arrives."""
        ...


@dataclass
class _PendingRequest:
    """A request that the server has not answered, or whose answer has not been delivered to the client."""

    exchange: OpenExchange
    work: RealWork
    held: list[Message] = field(default_factory=list)  # messages to deliver together with the answer


class Proxy:
    """The server end of one session.

    Args:
        recorder: supplies recorded exchanges, and stores new ones.
        replays: answer from recorded exchanges.
        reach: opens the SDK's transport to the real server, for messages that no recorded exchange answers; None if
            the real server must not be called.
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
        self._pending: dict[str, _PendingRequest] = {}  # not answered by the server, by id
        self._answering: list[_PendingRequest] = []  # answered, but not delivered to the client
        self._server_requests: set[str] = set()  # ids of the server's own requests
        self._to_client: Any
        self._tasks: Any

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[Any]:
        """Yield the client's streams: the one it reads from, and the one it writes to."""
        import anyio

        self._to_client, reads = anyio.create_memory_object_stream[Any](math.inf)
        writes, from_client = anyio.create_memory_object_stream[Any](math.inf)
        async with self._to_client, reads, writes, from_client, anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._listen, from_client)
            try:
                yield reads, writes
            finally:
                self._abandon_pending()
                if self._connection is not None:
                    await self._connection.close()
                self._tasks.cancel_scope.cancel()

    async def _listen(self, from_client: Any) -> None:
        async for item in from_client:
            message = message_json(item)
            if is_response(message) and str(message.get("id")) in self._server_requests:
                self._send(item, message)
            elif self._replays and (exchange := self._recorder.consume(message)) is not None:
                if message.get("method") in ("initialize", "notifications/initialized"):
                    self._handshake.append(item)
                self._tasks.start_soon(self._replay, exchange, message)
            elif self._reach is None:
                if is_request(message):
                    self._send_error(message, self._recorder.mismatch_error(message))
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
                self._send_error(asked, broken)

    # ------------------------------------------------------------------ the real server

    def _send(self, item: Any, message: Message) -> None:
        """Forward a message to the real server, and record it. The first message opens the connection."""
        if self._connection is None:
            assert self._reach is not None
            try:
                streams = self._reach()
            except HarnessError as error:
                self._send_error(message, error)
                return
            self._connection = MCPConnection(
                streams, tuple(self._handshake), on_message=self._on_message, on_close=self._on_close
            )
            self._tasks.start_soon(self._connection.run)
        exchange = self._recorder.begin(message)
        if is_request(message):
            self._pending[str(message["id"])] = _PendingRequest(exchange, RealWork())
        elif message.get("method") == "notifications/cancelled":
            cancelled = self._pending.pop(str((message.get("params") or {}).get("requestId")), None)
            if cancelled is not None:
                cancelled.work.abandon()
        self._connection.send(item)

    def _on_message(self, item: Any) -> None:
        """Hold a message of the server until the answer it belongs to; deliver one that belongs to none at once."""
        if isinstance(item, Exception):  # a line that is no message
            self._put(item)
            return
        message = message_json(item)
        self._recorder.on_message(message)
        if is_response(message):
            request = self._pending.pop(str(message.get("id")), None)
            if request is not None:  # None: the client has cancelled it
                self._answer_with(request, message)
            return
        request = self._related_request(message)
        exchange = self._recorder.last() if request is None else request.exchange
        if exchange is not None:
            exchange.received.append(message)
        if is_request(message):
            self._server_requests.add(str(message["id"]))
        if request is None or is_request(message):
            self._deliver(message)
        else:
            request.held.append(message)

    def _related_request(self, message: Message) -> _PendingRequest | None:
        """Return the request that a message of the server belongs to: by its progress token, else the last one."""
        open_requests = [*self._answering, *self._pending.values()]
        token = (message.get("params") or {}).get("progressToken")
        for request in open_requests:
            if token is not None and token == progress_token(request.exchange.sent):
                return request
        return open_requests[-1] if open_requests else None

    def _answer_with(self, request: _PendingRequest, *messages: Message) -> None:
        request.exchange.received.extend(messages)
        request.held.extend(messages)
        self._answering.append(request)
        self._tasks.start_soon(self._answer, request)

    async def _answer(self, request: _PendingRequest) -> None:
        request.exchange.duration_s = await request.work.end()
        self._answering.remove(request)
        for message in request.held:
            self._deliver(message)

    def _on_close(self, reason: str) -> None:
        """Handle the end of the connection: fail the pending requests and, by closing the stream, all later ones."""
        pending = list(self._pending.values())
        self._pending.clear()
        for request in pending:
            self._answer_with(request, error_response(request.exchange.sent, reason), _CLOSED)
        if pending:
            return
        if self._answering:
            request = self._answering[-1]
            request.exchange.received.append(_CLOSED)
            request.held.append(_CLOSED)
            return
        if (exchange := self._recorder.last()) is not None:
            exchange.received.append(_CLOSED)
        self._deliver(_CLOSED)

    def _abandon_pending(self) -> None:
        """Stop waiting for the server."""
        for request in self._pending.values():
            request.work.abandon()
        self._pending.clear()

    # ------------------------------------------------------------------ to the client

    def _send_error(self, request: Message, error: HarnessError) -> None:
        """Answer a request with an error of the harness; the session raises this very object."""
        self._deliver(error_response(request, str(error), error))

    def _deliver(self, message: Message) -> None:
        if message == _CLOSED:
            self._to_client.close()
            self._abandon_pending()
        else:
            self._put(session_message(message))

    def _put(self, item: Any) -> None:
        import anyio

        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._to_client.send_nowait(item)
