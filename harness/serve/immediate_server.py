"""A uvicorn server that sends data and shuts down without delay.

Uvicorn polls ten times a second whether it must shut down. Connections of a socket passed to it wait up to 40 ms for
the acknowledgement of a packet before they send the next: asyncio sets TCP_NODELAY for its own sockets only.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from types import FrameType
from typing import Final

import uvicorn

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
