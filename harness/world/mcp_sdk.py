"""The one place that knows the MCP Python SDK: client sessions and low-level servers.

Works with `mcp` 1.30 and 2.x alike. Everything that crosses this module is plain data in the wire
spelling of the protocol, so no other module sees a version of the SDK.

A connection lives in a task of its own: anyio's cancel scopes want to be closed by the task that
opened them, and a server that breaks must fail its calls, not cancel the run. So a session may be
opened, used and closed from any tasks of the loop.

The loop may be in virtual time. A server outside it holds the clock while it is asked, and is given real
time to go.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass
from threading import Timer
from typing import TYPE_CHECKING, Any

from harness.graph.clock import in_real_time, real_wait
from harness.world.mcp_tools import (
    INTERNAL_ERROR,
    MCPFailure,
    MCPResult,
    MCPTool,
    ToolDesk,
    tool_from_wire,
)

if TYPE_CHECKING:
    import anyio

_BLOCKS = {
    "text": "TextContent",
    "image": "ImageContent",
    "audio": "AudioContent",
    "resource": "EmbeddedResource",
    "resource_link": "ResourceLink",
}

# What closes a sentence or a quotation is no part of a URL's query.
_URL = re.compile(r"(\w[\w+.-]*://)(?:[^\s/?#]*@)?([^\s?#]*)(?:[?#]\S*?(?=[\"')\].,;:>]*(?:\s|$)))?")


class SDKSession:
    """The `MCPSession` over the SDK's own client session."""

    def __init__(self, session: Any, where: _Where) -> None:
        self._session = session
        self._where = where
        self._waiting: list[anyio.CancelScope] = []
        self._closed = False

    async def initialize(self) -> None:
        """Agree with the server on the protocol; needed once, before anything else."""
        await self._reply(self._session.initialize())

    async def list_tools(self) -> list[MCPTool]:
        """Every tool of the server: see `MCPSession`."""
        from mcp import types

        tools: list[MCPTool] = []
        cursor: str | None = None
        while True:
            params = None if cursor is None else types.PaginatedRequestParams(cursor=cursor)
            page = _plain(await self._reply(self._session.list_tools(params=params)))
            tools += [tool_from_wire(tool) for tool in page["tools"]]
            if (cursor := page.get("nextCursor")) is None:
                return tools

    async def call_tool(
        self, name: str, args: Mapping[str, Any], meta: Mapping[str, Any] | None = None
    ) -> MCPResult:
        """The answer of one tool: see `MCPSession`. `meta` is sent as the request's `_meta`."""
        sent = dict(meta) if meta is not None else None
        wire = _plain(await self._reply(self._session.call_tool(name, dict(args), meta=sent)))
        return MCPResult(wire["content"], wire.get("structuredContent"), bool(wire.get("isError", False)))

    def end(self) -> None:
        """Fail the calls still waiting and all later ones. The SDK 1.x would leave them waiting for ever."""
        self._closed = True
        for scope in self._waiting:
            scope.cancel()

    async def _reply(self, request: Awaitable[Any]) -> Any:
        import anyio

        limit = self._where.read_timeout_s
        with (
            _failures(),
            self._where.holding(),
            anyio.CancelScope() as scope,
            _real_timer(limit, scope.cancel),
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
        raise MCPFailure(f"the MCP server did not answer within {limit:g} s")


@dataclass(frozen=True)
class _Where:
    """Which server a session is with, by the name people see. `read_timeout_s`: real seconds for a request."""

    name: str
    outside: bool = True
    read_timeout_s: float | None = None

    def holding(self) -> AbstractContextManager[None]:
        """The clock stands still while a server outside the loop takes its time."""
        return real_wait() if self.outside else nullcontext()

    def leaving(self) -> AbstractContextManager[None]:
        """The SDK gives what it closes some seconds by the loop's clock, which has to go like real ones."""
        return in_real_time() if self.outside else nullcontext()


@contextmanager
def _real_timer(seconds: float | None, then: Callable[[], None]) -> Iterator[None]:
    """Call `then` in the loop after this many real seconds inside, though the loop's clock may stand still."""
    if seconds is None:
        yield
        return
    timer = Timer(seconds, asyncio.get_running_loop().call_soon_threadsafe, (then,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def connect_memory(server: Any) -> AbstractAsyncContextManager[SDKSession]:
    """An initialized session with a `build_server` server in this loop. Takes no time on the loop's clock."""
    return _connected(_memory_streams(server), _Where("the server in memory", outside=False))


def connect_stdio(
    command: str,
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    *,
    cwd: str | None = None,
    read_timeout_s: float | None = None,
) -> AbstractAsyncContextManager[SDKSession]:
    """An initialized session with a child process, ended on leaving.

    `env` is added to the few variables the SDK passes on (PATH, HOME, …). The child's stderr is ours.
    `read_timeout_s` is in real seconds, for each request.

    Raises:
        MCPFailure: on entering, when the process cannot be started or does not speak MCP.
    """
    from mcp.client.stdio import StdioServerParameters, stdio_client

    parameters = StdioServerParameters(
        command=command, args=list(args), env=dict(env) if env is not None else None, cwd=cwd
    )
    # The SDK's default is sys.stderr of import time, which may be a capture that is closed by now.
    errlog: Any = sys.__stderr__ or subprocess.DEVNULL
    where = _Where(command, read_timeout_s=read_timeout_s)
    return _connected(stdio_client(parameters, errlog=errlog), where)


def connect_http(
    url: str, headers: Mapping[str, str] | None = None, *, read_timeout_s: float | None = None
) -> AbstractAsyncContextManager[SDKSession]:
    """An initialized session over streamable HTTP. `read_timeout_s` is in real seconds, for each request.

    Raises:
        MCPFailure: on entering, when nothing answers there or it does not speak MCP.
    """
    where = _Where(_without_secrets(url), read_timeout_s=read_timeout_s)
    return _connected(_http_streams(url, headers), where)


def connect_sse(
    url: str, headers: Mapping[str, str] | None = None, *, read_timeout_s: float | None = None
) -> AbstractAsyncContextManager[SDKSession]:
    """An initialized session over the older HTTP+SSE transport; see `connect_http`.

    Raises:
        MCPFailure: on entering, when nothing answers there or it does not speak MCP.
    """
    from mcp.client.sse import sse_client

    streams = sse_client(url, headers=dict(headers or {}))
    return _connected(streams, _Where(_without_secrets(url), read_timeout_s=read_timeout_s))


def build_server(
    name: str, tools: Sequence[MCPTool], call: Callable[[str, dict[str, Any]], Awaitable[MCPResult]]
) -> Any:
    """A low-level SDK server that lists `tools` and answers calls of them with `call`.

    Arguments are checked against the tool's input schema first; a call that breaks it gets a tool
    error, an unknown tool a protocol error (Source: MCP specification 2025-11-25, Tools, Error
    Handling). When `call` raises `MCPFailure` the answer is a protocol error, at any other exception
    a tool error with its text.

    Raises:
        WorldError: a schema is not a valid JSON Schema.
    """
    from mcp import types
    from mcp.server.lowlevel import Server

    desk = ToolDesk(name, tools, call)
    if hasattr(Server, "add_request_handler"):  # 2.x

        async def on_list(_context: Any, _params: Any) -> Any:
            return types.ListToolsResult.model_validate(desk.listing())

        async def on_call(_context: Any, params: Any) -> Any:
            with _protocol_errors():
                return types.CallToolResult.model_validate(await desk.answer(_plain(params)))

        return Server(name, version="1.0.0", on_list_tools=on_list, on_call_tool=on_call)

    # 1.x. Not its call_tool decorator, which turns every exception into a tool error.
    wrap: Any = types.ServerResult

    async def list_handler(_request: Any) -> Any:
        return wrap(types.ListToolsResult.model_validate(desk.listing()))

    async def call_handler(request: Any) -> Any:
        with _protocol_errors():
            wire = await desk.answer(_plain(request.params))
        return wrap(types.CallToolResult.model_validate(wire))

    server: Any = Server(name, version="1.0.0")
    server.request_handlers[types.ListToolsRequest] = list_handler
    server.request_handlers[types.CallToolRequest] = call_handler
    return server


def check_content(block: Mapping[str, Any]) -> None:
    """Refuse what is not an MCP content block.

    Raises:
        ValueError: naming what is wrong with it.
    """
    from mcp import types
    from pydantic import ValidationError

    kind = block.get("type")
    if kind not in _BLOCKS:
        raise ValueError(f"{kind!r} is no type of MCP content block; there are {', '.join(_BLOCKS)}")
    try:
        getattr(types, _BLOCKS[kind]).model_validate(dict(block))
    except ValidationError as error:
        reasons = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ValueError(f"not an MCP content block of type {kind!r}: {reasons}") from None


@asynccontextmanager
async def _connected(streams: AbstractAsyncContextManager[Any], where: _Where) -> AsyncIterator[SDKSession]:
    """Hold a session over `streams` in a task of its own, from initialization to the end of the block."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[SDKSession] = loop.create_future()
    leave = asyncio.Event()
    owner = loop.create_task(_own(streams, where, ready, leave))
    either: set[asyncio.Future[Any]] = {owner, ready}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            cause = _leaf(owner.exception())
            why = _without_secrets(str(cause)) or type(cause).__name__
            raise MCPFailure(f"cannot connect to {where.name}: {why}") from cause
        yield ready.result()
    finally:
        if not ready.done():
            owner.cancel()
        leave.set()
        await _outlast(owner)


async def _outlast(task: asyncio.Task[None]) -> None:
    """Return when `task` has ended, whatever happens to us meanwhile; what it raised is dropped.

    By now whatever broke a connection has been told to the calls it broke.
    """
    interrupted: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            interrupted = error
    if not task.cancelled():
        task.exception()
    if interrupted is not None:
        raise interrupted


async def _own(
    streams: AbstractAsyncContextManager[Any],
    where: _Where,
    ready: asyncio.Future[SDKSession],
    leave: asyncio.Event,
) -> None:
    from mcp import ClientSession

    with ExitStack() as clock:
        clock.enter_context(where.holding())
        async with streams as pair, ClientSession(pair[0], pair[1]) as client:
            session = SDKSession(client, where)
            try:
                await session.initialize()
                ready.set_result(session)
                clock.close()
                await leave.wait()
            finally:
                session.end()
                clock.enter_context(where.leaving())


@asynccontextmanager
async def _memory_streams(server: Any) -> AsyncIterator[Any]:
    import anyio
    from mcp.shared.memory import create_client_server_memory_streams

    async with (
        create_client_server_memory_streams() as (client_side, server_side),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(server.run, *server_side, server.create_initialization_options())
        try:
            yield client_side
        finally:
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def _http_streams(url: str, headers: Mapping[str, str] | None) -> AsyncIterator[Any]:
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async with (
        create_mcp_http_client(headers=dict(headers or {})) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


@contextmanager
def _failures() -> Iterator[None]:
    """Say `MCPFailure` for everything the SDK raises at a client's request."""
    import anyio

    try:
        yield
    except _protocol_error_type() as error:
        raise MCPFailure(error.error.message, error.error.code) from error
    except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
        raise MCPFailure("the MCP connection is closed") from error
    except (RuntimeError, ValueError) as error:  # answers that break their schema, or the protocol's
        raise MCPFailure(_without_secrets(str(error))) from error


@contextmanager
def _protocol_errors() -> Iterator[None]:
    """Say what the SDK sends as a protocol error for an `MCPFailure` of a server."""
    try:
        yield
    except MCPFailure as failure:
        raise _protocol_error(failure.code or INTERNAL_ERROR, str(failure)) from failure


def _protocol_error_type() -> Any:
    from mcp.shared import exceptions

    return getattr(exceptions, "MCPError", None) or exceptions.McpError  # type: ignore[attr-defined]


def _protocol_error(code: int, message: str) -> Exception:
    from mcp import types

    cls = _protocol_error_type()
    error: Exception = getattr(cls, "from_error_data", cls)(types.ErrorData(code=code, message=message))
    return error


def _plain(model: Any) -> dict[str, Any]:
    """A protocol object of either SDK as it goes over the wire."""
    data: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return data


def _without_secrets(text: str) -> str:
    """The text with its URLs without user, password, query and fragment, any of which may hold a key."""
    return _URL.sub(r"\1\2", text)


def _leaf(error: BaseException | None) -> BaseException | None:
    """The first error inside the groups that task groups wrap around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
