"""A client session of the MCP Python SDK.

It works with `mcp` 1.30 and 2.x alike, as do `connect`, which opens connections, `build`, which builds servers, and
`wire`, which has the names that differ between versions. Their interfaces are plain data in the wire spelling of the
protocol, so that no other module depends on a version of the SDK.

The loop may be in virtual time. Its clock stops while an external server answers, and runs in real time while a
connection is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError
from harness.secrets import bare_urls
from harness.time.clock import in_real_time, real_wait
from harness.world.mcp.opening import CONNECT_LIMIT_S, after_real_seconds
from harness.world.mcp.tools import MCPFailure, MCPResult, MCPTool, tool_from_wire
from harness.world.mcp.wire import model_json, protocol_error_type

if TYPE_CHECKING:
    import anyio


class SDKSession:
    """The `MCPSession` over the SDK's own client session."""

    def __init__(self, session: Any, options: SessionOptions) -> None:
        self._session = session
        self._options = options
        self._waiting: list[anyio.CancelScope] = []
        self._closed = False

    async def initialize(self) -> None:
        """Perform the handshake with the server. It must be called once, before all other methods."""
        await self._reply(self._session.initialize(), self._options.initialize_limit_s)

    async def list_tools(self) -> list[MCPTool]:
        """Return all tools of the server: see `MCPSession`."""
        from mcp import types

        tools: list[MCPTool] = []
        cursor: str | None = None
        while True:
            params = None if cursor is None else types.PaginatedRequestParams(cursor=cursor)
            page = model_json(await self._in_time(self._session.list_tools(params=params)))
            tools += [tool_from_wire(tool) for tool in page["tools"]]
            if (cursor := page.get("nextCursor")) is None:
                return tools

    async def call_tool(
        self, name: str, args: Mapping[str, Any], meta: Mapping[str, Any] | None = None
    ) -> MCPResult:
        """Call a tool: see `MCPSession`. `meta` is sent as the `_meta` of the request."""
        sent = dict(meta) if meta is not None else None
        wire = model_json(await self._in_time(self._session.call_tool(name, dict(args), meta=sent)))
        return MCPResult(wire["content"], wire.get("structuredContent"), bool(wire.get("isError", False)))

    def end(self) -> None:
        """Fail the pending calls and all later ones. With the SDK 1.x they would wait for ever."""
        self._closed = True
        for scope in self._waiting:
            scope.cancel()

    async def _in_time(self, request: Awaitable[Any]) -> Any:
        return await self._reply(request, self._options.read_timeout_s)

    async def _reply(self, request: Awaitable[Any], limit_s: float | None) -> Any:
        import anyio

        with (
            _translated_errors(),
            self._options.hold_clock(),
            anyio.CancelScope() as scope,
            self._options.limit(limit_s, scope.cancel),
        ):
            if self._closed:
                scope.cancel()
            self._waiting.append(scope)
            try:
                return await request
            finally:
                self._waiting.remove(scope)
        if self._closed:
            raise MCPFailure("the MCP connection is closed")
        raise MCPFailure(f"the MCP server did not answer within {limit_s:g} s")


@dataclass(frozen=True)
class SessionOptions:
    """The options of a session: the server's name for messages, its time limits, and their clock.

    is_external      the server takes real time, during which the loop's clock is stopped
    read_timeout_s   time limit of a request: in real seconds for an external server, else by the loop's clock
    connect_limit_s  upper bound of the time limit of the first request, `initialize`
    advice           a hint for the error if the connection fails
    """

    name: str
    is_external: bool = True
    read_timeout_s: float | None = None
    connect_limit_s: float = CONNECT_LIMIT_S
    advice: str = ""

    @property
    def initialize_limit_s(self) -> float:
        """The time limit of `initialize`, in seconds."""
        return min(self.connect_limit_s, self.read_timeout_s or self.connect_limit_s)

    def not_connected(self, reason: str) -> str:
        """Return the message of the error for a failed connection."""
        return "; ".join(filter(None, [f"cannot connect to {self.name}: {reason}", self.advice]))

    def hold_clock(self) -> AbstractContextManager[None]:
        """Stop the loop's clock within the context, if the server is external."""
        return real_wait() if self.is_external else nullcontext()

    def use_real_clock(self) -> AbstractContextManager[None]:
        """Run the loop's clock in real time within the context, if the server is external.

        The SDK waits some seconds for the processes it ends.
        """
        return in_real_time() if self.is_external else nullcontext()

    @contextmanager
    def limit(self, seconds: float | None, then: Callable[[], None]) -> Iterator[None]:
        """Call `then` in the loop if the context lasts longer."""
        if seconds is None:
            yield
        elif self.is_external:
            with after_real_seconds(seconds, then):
                yield
        else:
            timer = asyncio.get_running_loop().call_later(seconds, then)
            try:
                yield
            finally:
                timer.cancel()


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Convert all exceptions of the SDK for a client's request to `MCPFailure`."""
    import anyio

    try:
        yield
    except protocol_error_type() as error:
        if isinstance(error.error.data, HarnessError):  # only possible from a server in memory
            raise error.error.data from None
        raise MCPFailure(error.error.message, error.error.code) from error
    except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
        raise MCPFailure("the MCP connection is closed") from error
    except (RuntimeError, ValueError) as error:  # answers that violate their schema or the protocol
        raise MCPFailure(bare_urls(str(error))) from error
