"""Limits the connections of the server: their number, and the time in which a request must arrive.

Without these limits, a client that opens connections and sends nothing, or a byte a minute, would hold them for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
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
