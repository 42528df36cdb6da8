"""Uvicorn's server, which sends at once what it has, and ends as soon as it is to.

Uvicorn itself looks ten times a second whether it is to end. The connections of a socket that it is given wait up to
40 ms for the client to confirm one packet before they send the next: asyncio ends that for its own sockets only.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from types import FrameType
from typing import Final

import uvicorn

_LOOKS_S: Final = 0.005
"""Real seconds between two looks whether all connections have ended."""


class PromptServer(uvicorn.Server):
    """A server that `end` ends."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._to_end = asyncio.Event()

    def end(self) -> None:
        """End: any thread may call this, and a handler of signals, at any time."""
        self.should_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended, and its loop is closed
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
        """What uvicorn does, without waiting for what has ended."""
        loop = asyncio.get_running_loop()
        for listening in (each for server in self.servers for each in server.sockets):
            loop.remove_reader(listening)
        await asyncio.sleep(_LOOKS_S)  # connections that are half made would be lost, and never closed
        for listening in (*self.servers, *(sockets or ())):
            listening.close()
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        while (state.connections or state.tasks) and not self.force_exit:
            await asyncio.sleep(_LOOKS_S)
        if not self.force_exit:
            await self.lifespan.shutdown()
