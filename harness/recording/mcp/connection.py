"""The line to a real MCP server: a connection in a task of its own, by the real clock."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import Any

from harness.time.clock import real_timers
from harness.world.mcp.connect import reason
from harness.world.mcp.tools import MCPFailure
from harness.world.mcp.wire import Message, is_request, is_response, opened

mcp_traffic: ContextVar[bool] = ContextVar("mcp_traffic", default=False)
"""Whether the HTTP of this task is MCP's own: it is recorded message by message, not request by request."""


class Line:
    """Carries messages of the SDK between this loop and a server, until somebody hangs up.

    Args:
        streams: the SDK's transport, not yet entered.
        greeting: what the client said to introduce itself when a recording answered; said to the server first.
        heard: gets each message of the server, or the exception that one of its lines was read as.
        broke: is told once why the connection ended, unless we hung up.
    """

    def __init__(
        self,
        streams: AbstractAsyncContextManager[Any],
        greeting: Sequence[Any] = (),
        *,
        heard: Callable[[Any], None],
        broke: Callable[[str], None],
    ) -> None:
        import anyio

        self._streams = streams
        self._greeting = greeting
        self._heard = heard
        self._told = broke
        self._greeted = asyncio.Event()
        self._hung_up = asyncio.Event()
        self._ended = asyncio.Event()
        self._connecting = anyio.CancelScope()
        self._state = "new"  # then connecting, connected
        self._to_send, self._sending = anyio.create_memory_object_stream[Any](math.inf)
        self._broken = False

    def send(self, item: Any) -> None:
        """Send a message, after all earlier ones. What is sent on a broken line is lost."""
        if not self._broken:
            self._to_send.send_nowait(item)

    async def run(self) -> None:
        """Connect, and carry messages until `hang_up`."""
        import anyio

        self._state = "connecting"
        mcp_traffic.set(True)
        try:
            with real_timers(), self._connecting:
                async with (
                    self._streams as (reads, writes, *_),
                    reads,
                    writes,
                    anyio.create_task_group() as tasks,
                ):
                    self._state = "connected"
                    tasks.start_soon(self._receive, reads, writes)
                    tasks.start_soon(self._transmit, writes)
                    await self._hung_up.wait()
                    tasks.cancel_scope.cancel()
        except Exception as error:
            self._broke(reason(error))
        finally:
            self._ended.set()

    async def hang_up(self) -> None:
        """Close the connection in the server's own time; one that is not there yet is given up."""
        import anyio

        self._hung_up.set()
        if self._state != "connected":
            self._connecting.cancel()
        if self._state != "new":
            with anyio.CancelScope(shield=True):
                await self._ended.wait()
        self._to_send.close()
        self._sending.close()

    async def _receive(self, reads: Any, writes: Any) -> None:
        await self._greet(reads, writes)
        self._greeted.set()
        async for item in reads:
            self._heard(item)
        self._broke("Connection closed")

    async def _transmit(self, writes: Any) -> None:
        import anyio

        await self._greeted.wait()
        try:
            async for item in self._sending:
                await writes.send(item)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._broke("Connection closed")

    async def _greet(self, reads: Any, writes: Any) -> None:
        for item in self._greeting:
            await writes.send(item)
            said = opened(item)
            if is_request(said):
                answer = await _answer_to(said, reads)
                if "error" in answer:
                    raise MCPFailure(str(answer["error"]["message"]))

    def _broke(self, why: str) -> None:
        if not self._broken and not self._hung_up.is_set():
            self._broken = True
            self._told(why)


async def _answer_to(request: Message, reads: Any) -> Message:
    while True:
        item = await reads.receive()
        if not isinstance(item, Exception):
            message = opened(item)
            if is_response(message) and str(message.get("id")) == str(request["id"]):
                return message
