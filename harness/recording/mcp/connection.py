"""The connection of a recording session to a real MCP server: a task of its own, whose timers use the real clock."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.interception.real_effects import not_intercepted
from harness.time.paced import real_timers
from harness.world.mcp.connect import failure_reason
from harness.world.mcp.session import CONNECT_LIMIT_S, after_real_seconds
from harness.world.mcp.tools import MCPFailure
from harness.world.mcp.wire import Message, is_request, is_response, message_json


@dataclass(eq=False, repr=False)
class MCPConnection:
    """Transports messages of the SDK to and from a server until it is closed.

    Args:
        streams: the SDK's transport, not yet entered.
        handshake: the client's handshake messages that a recording answered; they are sent to the server first.
        on_message: called with each message of the server, or with the exception for a line that is no message.
        on_close: called once with the reason if the connection ends before `close` is called.
    """

    streams: AbstractAsyncContextManager[Any]
    handshake: Sequence[Any]
    on_message: Callable[[Any], None]
    on_close: Callable[[str], None]
    _ready: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    _state: Literal["new", "connecting", "connected"] = "new"
    _is_closed: bool = False

    def __post_init__(self) -> None:
        import anyio

        self._connecting = anyio.CancelScope()
        self._to_send, self._sending = anyio.create_memory_object_stream[Any](math.inf)

    def send(self, item: Any) -> None:
        """Send a message, after all earlier ones. A message sent after the end of the connection is lost."""
        if not self._is_closed:
            self._to_send.send_nowait(item)

    async def run(self) -> None:
        """Connect, and transport messages until `close`."""
        import anyio

        self._state = "connecting"
        not_intercepted.set(True)
        try:
            with real_timers(), self._connecting:
                async with (
                    self.streams as (reads, writes, *_),
                    reads,
                    writes,
                    anyio.create_task_group() as tasks,
                ):
                    self._state = "connected"
                    tasks.start_soon(self._receive, reads, writes)
                    tasks.start_soon(self._transmit, writes)
                    await self._closing.wait()
                    tasks.cancel_scope.cancel()
        except Exception as error:
            self._closed(failure_reason(error))
        finally:
            self._ended.set()

    async def close(self) -> None:
        """Close the connection, or abort opening it, and wait for the server to exit."""
        import anyio

        self._closing.set()
        if self._state != "connected":
            self._connecting.cancel()
        if self._state != "new":
            with anyio.CancelScope(shield=True):
                await self._ended.wait()
        self._to_send.close()
        self._sending.close()

    async def _receive(self, reads: Any, writes: Any) -> None:
        await self._replay_handshake(reads, writes)
        self._ready.set()
        async for item in reads:
            self.on_message(item)
        self._closed("Connection closed")

    async def _transmit(self, writes: Any) -> None:
        import anyio

        await self._ready.wait()
        try:
            async for item in self._sending:
                await writes.send(item)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._closed("Connection closed")

    async def _replay_handshake(self, reads: Any, writes: Any) -> None:
        import anyio

        with anyio.CancelScope() as waiting, after_real_seconds(CONNECT_LIMIT_S, waiting.cancel):
            for item in self.handshake:
                await writes.send(item)
                message = message_json(item)
                if is_request(message):
                    answer = await _answer_to(message, reads)
                    if "error" in answer:
                        raise MCPFailure(str(answer["error"]["message"]))
            return
        raise MCPFailure(f"the MCP server did not answer within {CONNECT_LIMIT_S:g} s")

    def _closed(self, why: str) -> None:
        if not self._is_closed and not self._closing.is_set():
            self._is_closed = True
            self.on_close(why)


async def _answer_to(request: Message, reads: Any) -> Message:
    while True:
        item = await reads.receive()
        if not isinstance(item, Exception):
            message = message_json(item)
            if is_response(message) and str(message.get("id")) == str(request["id"]):
                return message
