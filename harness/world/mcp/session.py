"""Client sessions of the MCP Python SDK.

Works with `mcp` 1.30 and 2.x alike, as do `connect`, which makes the connections, `build`, which makes
servers, and `wire`, which has what the versions call by different names. Everything that crosses these modules
is plain data in the wire spelling of the protocol, so no other module sees a version of the SDK.

The loop may be in virtual time. An external server holds the clock while it answers, and is given real
time to go.
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
        """Agree with the server on the protocol; needed once, before anything else."""
        await self._reply(self._session.initialize(), self._options.initialize_limit_s)

    async def list_tools(self) -> list[MCPTool]:
        """Every tool of the server: see `MCPSession`."""
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
        """The answer of one tool: see `MCPSession`. `meta` is sent as the request's `_meta`."""
        sent = dict(meta) if meta is not None else None
        wire = model_json(await self._in_time(self._session.call_tool(name, dict(args), meta=sent)))
        return MCPResult(wire["content"], wire.get("structuredContent"), bool(wire.get("isError", False)))

    def end(self) -> None:
        """Fail the calls still waiting and all later ones. The SDK 1.x would leave them waiting for ever."""
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
    """How a session treats its server: the name that people see, and the clock by which it answers.

    is_external      it takes real time, for which the loop's clock stands still
    read_timeout_s   how long it may take for a request: real seconds for an external one, else by the loop's clock
    connect_limit_s  how long it may take at most for the first, `initialize`
    advice           what to do when it cannot be connected to
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

    def not_connected(self, why: str) -> str:
        """The message that it cannot be connected to."""
        return "; ".join(filter(None, [f"cannot connect to {self.name}: {why}", self.advice]))

    def hold_clock(self) -> AbstractContextManager[None]:
        """The clock stands still while an external server takes its time."""
        return real_wait() if self.is_external else nullcontext()

    def use_real_clock(self) -> AbstractContextManager[None]:
        """The SDK waits some seconds by the loop's clock for what it closes: they must be real ones."""
        return in_real_time() if self.is_external else nullcontext()

    @contextmanager
    def limit(self, seconds: float | None, then: Callable[[], None]) -> Iterator[None]:
        """Call `then` in the loop if the block takes longer."""
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
    """Say `MCPFailure` for everything the SDK raises at a client's request."""
    import anyio

    try:
        yield
    except protocol_error_type() as error:
        if isinstance(error.error.data, HarnessError):  # from a peer in memory: never from the wire
            raise error.error.data from None
        raise MCPFailure(error.error.message, error.error.code) from error
    except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
        raise MCPFailure("the MCP connection is closed") from error
    except (RuntimeError, ValueError) as error:  # answers that break their schema, or the protocol's
        raise MCPFailure(bare_urls(str(error))) from error
