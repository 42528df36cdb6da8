"""Limits the connections of the server: their number, and the time in which a request must arrive.

Without these limits, a client that opens connections and sends nothing, or a byte a minute, would hold them for ever.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from types import FrameType
from typing import Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS: Final = 500
"""The maximal number of open connections; more are closed at once."""

ARRIVAL_S: Final = 30.0
"""Real seconds in which a whole request, headers and body, must arrive on a connection."""

UNREAD_S: Final = 1.0
"""Real seconds for which a client may continue to send a request that has been answered."""


class BoundedConnection(H11Protocol):
    """A connection that is closed if there are too many, or if its request does not arrive in time.

    `transports` has the open transports by the client's address. ASGI does not give access to them, but some stubs
    close the connection without an answer.
    """

    def __init__(self, transports: dict[Any, asyncio.Transport], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._transports = transports
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._transports[self.client] = transport
        if len(self._transports) > MAX_CONNECTIONS:
            transport.abort()
        else:
            self._expect_request(ARRIVAL_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._transports.pop(self.client, None)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop_waiting()

    def on_response_complete(self) -> None:
        self._expect_request(UNREAD_S if self.conn.their_state is h11.SEND_BODY else ARRIVAL_S)
        super().on_response_complete()

    def _expect_request(self, seconds: float) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


_POLL_S: Final = 0.005
"""Poll interval for the end of all connections, in real seconds."""


class ImmediateServer(uvicorn.Server):
    """A uvicorn server that `end` shuts down at once."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._to_end = asyncio.Event()

    def end(self) -> None:
        """Shut down. May be called at any time, from any thread and from signal handlers."""
        self.should_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the server has ended and its loop is closed
                self._loop.call_soon_threadsafe(self._to_end.set)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self.end()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        for listening in sockets or ():
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # its connections inherit it
        await super().startup(sockets)

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._to_end.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Do the same as uvicorn, but wait no longer than necessary."""
        loop = asyncio.get_running_loop()
        for listening in (each for server in self.servers for each in server.sockets):
            loop.remove_reader(listening)
        await asyncio.sleep(_POLL_S)  # connections that are being accepted would never be closed
        for listening in (*self.servers, *(sockets or ())):
            listening.close()
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        while (state.connections or state.tasks) and not self.force_exit:
            await asyncio.sleep(_POLL_S)
        if not self.force_exit:
            await self.lifespan.shutdown()
