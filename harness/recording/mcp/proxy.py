"""The server end of an MCP client session: answers from recorded exchanges, or forwards to the real server.

Messages are handled in the order the client sends them. An answer is delivered when it is due by the loop's clock,
together with all messages that the server sent before it, so that a session is the same live and replayed.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from harness.errors import CassetteBroken, CassetteError, HarnessError
from harness.graph.effects import MCPEndpoint
from harness.recording.interactions import Exchange
from harness.recording.matching import Matcher
from harness.recording.mcp.connection import MCPConnection
from harness.recording.mcp.replay import RecordedExchanges, adapted_answer, progress_token
from harness.time.paced import RealWork
from harness.world.mcp.connect import connected, options_for, streams_to
from harness.world.mcp.tools import MCPSession
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


@dataclass
class _PendingRequest:
    """A request that the server has not answered, or whose answer has not been delivered to the client."""

    exchange: OpenExchange
    work: RealWork
    held: list[Message] = field(default_factory=list)  # messages to deliver together with the answer


@dataclass(eq=False, repr=False)
class Proxy:
    """The server end of one session.

    Args:
        recorder: supplies recorded exchanges, and stores new ones.
        replays: answer from recorded exchanges.
        reach: opens the SDK's transport to the real server, for messages that no recorded exchange answers; None if
            the real server must not be called.
    """

    recorder: MCPRecorder
    replays: bool
    reach: Callable[[], AbstractAsyncContextManager[Any]] | None
    _connection: MCPConnection | None = None
    _handshake: list[Any] = field(default_factory=list)
    _pending: dict[str, _PendingRequest] = field(default_factory=dict)  # not answered by the server, by id
    _answering: list[_PendingRequest] = field(
        default_factory=list
    )  # answered, but not delivered to the client
    _server_requests: set[str] = field(default_factory=set)  # ids of the server's own requests

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
            elif self.replays and (exchange := self.recorder.consume(message)) is not None:
                if message.get("method") in ("initialize", "notifications/initialized"):
                    self._handshake.append(item)
                self._tasks.start_soon(self._replay, exchange, message)
            elif self.reach is None:
                if is_request(message):
                    self._send_error(message, self.recorder.mismatch_error(message))
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
            assert self.reach is not None
            try:
                streams = self.reach()
            except HarnessError as error:
                self._send_error(message, error)
                return
            handshake = tuple(self._handshake)
            self._connection = MCPConnection(streams, handshake, self._on_message, self._on_close)
            self._tasks.start_soon(self._connection.run)
        exchange = self.recorder.begin(message)
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
        self.recorder.on_message(message)
        if is_response(message):
            request = self._pending.pop(str(message.get("id")), None)
            if request is not None:  # None: the client has cancelled it
                self._answer_with(request, message)
            return
        request = self._related_request(message)
        exchange = self.recorder.last() if request is None else request.exchange
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
        self.recorder.on_answer(request.exchange.exchange())
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
        if (exchange := self.recorder.last()) is not None:
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


class MCPRecorder:
    """Replays and records the exchanges with one server in one run. Its sessions are opened one after the other.

    A session raises, on entering or from `list_tools` and `call_tool`: `CassetteMismatch` if no recorded exchange of
    the current `turn` answers, `CassetteMissing` if there is no recording at all.

    Args:
        exchanges: the recorded exchanges, in order.
        server: id of the server, shown in errors.
        hint: how to record it again, shown in errors.
        file: path of the file with the exchanges, shown in errors.
        matcher: compares requests.
        comparable: converts a message to the form in which it is compared, without secrets. It is called with all
            messages in the order they arrive.
        learn: called with the name and value of a secret found at a placeholder of the recording.
        on_answer: called with each exchange with the real server that has ended.
    """

    def __init__(
        self,
        exchanges: Sequence[Exchange] = (),
        *,
        server: str,
        hint: str = "",
        file: str = "",
        matcher: Matcher | None = None,
        comparable: Callable[[Message], Message] = lambda message: message,
        learn: Callable[[str, str], None] = lambda name, value: None,
        on_answer: Callable[[Exchange], None] = lambda exchange: None,
    ) -> None:
        self.turn = 1
        self.on_answer = on_answer
        self._comparable = comparable
        self._learn = learn
        # Scrub again: a text that is a secret here need not have been one where it was recorded.
        exchanges = [replace(each, sent=comparable(each.sent)) for each in exchanges]
        self._recorded = RecordedExchanges(exchanges, server, hint, file, matcher or Matcher())
        self._log: list[Exchange | OpenExchange] = []

    def session(
        self, endpoint: MCPEndpoint, *, replays: bool = True, sends: bool = False
    ) -> AbstractAsyncContextManager[MCPSession]:
        """Return a session that recorded exchanges answer (`replays`) or the real server (`sends`), or either.

        Without `sends`, no process and no socket is opened. What the real server answers is recorded.

        Raises (on entering, with `sends`):
            WorldError: the server wants a client certificate.
            MCPFailure: the process or address does not exist, or does not speak MCP.
        """
        proxy = Proxy(self, replays, partial(streams_to, endpoint) if sends else None)
        # is_external=False: the proxy itself advances the loop's clock by the time the server takes.
        return connected(proxy.streams(), options_for(endpoint, is_external=False))

    def exchanges(self) -> tuple[Exchange, ...]:
        """Return the exchanges of this run, in order, replayed ones included."""
        return tuple(item.exchange() if isinstance(item, OpenExchange) else item for item in self._log)

    @property
    def added(self) -> bool:
        """True if the real server was called."""
        return any(isinstance(item, OpenExchange) for item in self._log)

    def asked(self) -> list[Exchange]:
        """Return the exchanges with the real server."""
        return [item.exchange() for item in self._log if isinstance(item, OpenExchange)]

    def unused(self) -> list[Exchange]:
        """Return the recorded requests that were not replayed."""
        return self._recorded.unused()

    # ------------------------------------------------------------------ for the proxy

    def consume(self, message: Message) -> Exchange | None:
        """Consume and return the recorded exchange that answers a message of the client; None if none does."""
        exchange, secrets = self._recorded.consume(self._comparable(message), self.turn)
        for name, value in secrets.items():
            self._learn(name, value)
        if exchange is not None:
            self._log.append(exchange)
        return exchange

    def mismatch_error(self, request: Message) -> CassetteError:
        """Return the error for a request that no recorded exchange answers."""
        return self._recorded.mismatch_error(self._comparable(request), self.turn)

    def begin(self, message: Message) -> OpenExchange:
        """Begin an exchange with a message that is sent to the server."""
        self._comparable(message)  # the scrubber behind it learns the secrets in the message
        exchange = OpenExchange(message, self.turn)
        self._log.append(exchange)
        return exchange

    def on_message(self, message: Message) -> None:
        """Handle a message of the server as soon as it arrives."""
        self._comparable(message)

    def last(self) -> OpenExchange | None:
        """Return the exchange that was begun last; None if there is none."""
        return next((item for item in reversed(self._log) if isinstance(item, OpenExchange)), None)
