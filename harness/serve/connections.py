"""The connections of the server: how many there are at once, and how long a request may take to arrive.

Without these bounds, a client that opens connections and sends nothing, or a byte a minute, keeps them for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS: Final = 500
"""The limit of open connections; those beyond it are closed at once."""

ARRIVAL_S: Final = 30.0
"""Real seconds in which a connection must have brought a whole request, headers and body."""

UNREAD_S: Final = 1.0
"""Real seconds that a client may go on sending a request that is answered already."""


class BoundedConnection(H11Protocol):
    """A connection that is closed when there are too many of them, or its request does not arrive in time.

    `transports` has those that are open, by the address of the client, which ASGI does not show: some stubs close a
    connection without an answer.
    """

    def __init__(self, transports: dict[Any, asyncio.Transport], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._transports = transports
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._transports[self.client] = transport
        if len(self._transports) > MOST_CONNECTIONS:
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
