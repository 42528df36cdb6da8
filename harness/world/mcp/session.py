"""A client session of the MCP Python SDK.

It works with `mcp` 1.30 and 2.x alike (in memory, for apps, from 1.10 on), as do `connect`, which opens connections,
`build`, which builds servers, and `wire`, which has the names that differ between versions. Their interfaces are
plain data in the wire spelling of the protocol, so that no other module depends on a version of the SDK.

The loop may be in virtual time. Its clock stops while an external server answers, and runs in real time while a
connection is closed.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass
from threading import Timer
from typing import TYPE_CHECKING, Any, Final

import httpx

from harness.errors import HarnessError
from harness.graph.effects import Ask
from harness.secrets import bare_urls
from harness.time.clock import in_real_time, let_go, real_wait
from harness.world.mcp.tools import MCPFailure, MCPResult, MCPTool, tool_from_wire
from harness.world.mcp.wire import call_with_meta, model_json, protocol_error_type

if TYPE_CHECKING:
    import anyio


CONNECT_LIMIT_S: Final = 50.0
"""Time limit, in real seconds, for connecting to a server, and again for its answer to `initialize`.

A command such as `npx` may download the server first.
"""


@contextmanager
def after_real_seconds(seconds: float, then: Callable[[], None]) -> Iterator[None]:
    """Call `then` in the running loop if the context lasts longer, even while the loop's clock is stopped."""
    timer = Timer(seconds, asyncio.get_running_loop().call_soon_threadsafe, (then,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Opening:
    """Closes a connection with a reason, from within its transport."""

    def __init__(self) -> None:
        import anyio

        self.scope = anyio.CancelScope()
        self.is_done = False
        self.failure = ""

    def fail(self, reason: str) -> None:
        """Close the connection."""
        self.failure = self.failure or reason
        self.scope.cancel()

    def fail_unless_done(self, reason: str) -> None:
        """Close a connection that is still being opened."""
        if not self.is_done:
            self.fail(reason)


@asynccontextmanager
async def opened_in_time(
    streams: Callable[[Opening], AbstractAsyncContextManager[Any]], limit_s: float
) -> AsyncIterator[Any]:
    """Open the SDK's transport and yield its streams.

    Raises:
        MCPFailure: it was not open within `limit_s` real seconds, or has failed.
    """
    opening = Opening()
    with opening.scope:
        async with AsyncExitStack() as stack:
            transport = streams(opening)
            late = f"the server sent no event within {limit_s:g} s"
            with after_real_seconds(limit_s, lambda: opening.fail_unless_done(late)):
                pair = await stack.enter_async_context(transport)
            opening.is_done = True
            yield pair
    if opening.failure:
        raise MCPFailure(opening.failure)


def sse_streams(url: str, headers: Mapping[str, str], opening: Opening) -> AbstractAsyncContextManager[Any]:
    """Return the SDK's transport over SSE, which is closed where the SDK alone would wait for ever."""
    from mcp.client.sse import sse_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async def on_request(request: Any) -> None:
        if request.method == "GET":
            request.extensions = {**request.extensions, "trace": on_trace}

    async def on_trace(event: str, _info: Mapping[str, Any]) -> None:
        if event.endswith((".receive_response_body.complete", ".receive_response_body.failed")):
            opening.fail_unless_done("the server ended the connection before its first event, `endpoint`")

    async def on_response(response: Any) -> None:
        if response.request.method == "POST" and response.is_error:
            opening.fail(f"the server answered a message with status {response.status_code}")

    def with_hooks(**options: Any) -> Any:
        http = create_mcp_http_client(**options)
        http.event_hooks = {"request": [on_request], "response": [on_response]}
        return http

    factory: Any = with_hooks  # typed with names that differ between the versions of the SDK
    return sse_client(url, headers=dict(headers), httpx_client_factory=factory)


@asynccontextmanager
async def http_streams(url: str, headers: Mapping[str, str], opening: Opening) -> AsyncIterator[Any]:
    """Open the SDK's transport over streamable HTTP, which is closed if an answer is broken off."""
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async with create_mcp_http_client(headers=dict(headers)) as http:
        end_with_broken_answers(http, opening.fail)
        async with streamable_http_client(url, http_client=http) as streams:
            yield streams


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

        limit_s = self._options.read_timeout_s
        tools: list[MCPTool] = []
        cursor: str | None = None
        while True:
            more = {} if cursor is None else {"params": types.PaginatedRequestParams(cursor=cursor)}
            page = model_json(await self._reply(self._session.list_tools(**more), limit_s))
            tools += [tool_from_wire(tool) for tool in page["tools"]]
            if (cursor := page.get("nextCursor")) is None:
                return tools

    async def call_tool(
        self, name: str, args: Mapping[str, Any], meta: Mapping[str, Any] | None = None
    ) -> MCPResult:
        """Call a tool: see `MCPSession`. `meta` is sent as the `_meta` of the request."""
        if meta is None:
            request = self._session.call_tool(name, dict(args))
        elif "meta" in inspect.signature(self._session.call_tool).parameters:
            request = self._session.call_tool(name, dict(args), meta=dict(meta))
        else:  # before 1.19
            request = call_with_meta(self._session, name, args, meta)
        wire = model_json(await self._reply(request, self._options.read_timeout_s))
        return MCPResult(wire["content"], wire.get("structuredContent"), bool(wire.get("isError", False)))

    def end(self) -> None:
        """Fail the pending calls and all later ones. With the SDK 1.x they would wait for ever."""
        self._closed = True
        for scope in self._waiting:
            scope.cancel()

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
    asked            answers what the server asks; None: the client says that it does not
    """

    name: str
    is_external: bool = True
    read_timeout_s: float | None = None
    connect_limit_s: float = CONNECT_LIMIT_S
    advice: str = ""
    asked: Ask | None = None

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

    async def answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answer what the server asks. What that waits for takes virtual time, though the server is waited for."""
        assert self.asked is not None
        with let_go() if self.is_external else nullcontext():
            return await self.asked(method, params)

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


def end_with_broken_answers(http: Any, fail: Callable[[str], None]) -> None:
    """Call `fail` with the reason if an answer to this client is incomplete.

    The SDK 2.x detects this itself. Its client is not of httpx, and is left unchanged.
    """
    if not isinstance(http, httpx.AsyncClient):
        return

    async def on_response(response: httpx.Response) -> None:
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        is_readable = not (is_stream and "content-encoding" in response.headers)
        if response.request.method == "POST" and response.is_success and is_readable:
            response.stream = _WatchedBody(response.stream, is_stream, fail)

    http.event_hooks = {"response": [on_response]}


class _WatchedBody(httpx.AsyncByteStream):
    """The body of an answer. A stream of events with ids may end without an answer: the SDK requests the rest."""

    def __init__(self, body: Any, is_stream: bool, fail: Callable[[str], None]) -> None:
        self._body, self._is_stream, self._fail = body, is_stream, fail

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = b""
        try:
            async for chunk in self._body:
                if self._is_stream and not _ENDS.search(seen):
                    seen += chunk
                yield chunk
        except httpx.TransportError:
            if not _ENDS.search(seen):
                self._fail(_BROKEN_STREAM if self._is_stream else "the server broke off its answer")
            raise
        if self._is_stream and not _ENDS.search(seen):
            self._fail(_BROKEN_STREAM)

    async def aclose(self) -> None:
        await self._body.aclose()


_ENDS: Final = re.compile(rb'(?m)^id:|^data:.*"(?:result|error)"')
"""Matches an answer, or an event with an id, after which the stream can be resumed."""

_BROKEN_STREAM: Final = "SSE stream ended without a response"  # as the SDK 2.x says it
