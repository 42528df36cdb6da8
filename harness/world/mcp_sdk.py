"""The one place that knows the MCP Python SDK: client sessions and low-level servers.

Works with `mcp` 1.30 and 2.x alike. Everything that crosses this module is plain data in the wire
spelling of the protocol, so no other module sees a version of the SDK.

A connection lives in a task of its own: anyio's cancel scopes want to be closed by the task that
opened them, and a server that breaks must fail its calls, not cancel the run. So a session may be
opened, used and closed from any tasks of the loop.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from harness.errors import WorldError

if TYPE_CHECKING:
    import anyio

INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

_BLOCKS = {
    "text": "TextContent",
    "image": "ImageContent",
    "audio": "AudioContent",
    "resource": "EmbeddedResource",
    "resource_link": "ResourceLink",
}

request_meta: ContextVar[Mapping[str, Any]] = ContextVar("request_meta")
"""The `_meta` of the tools/call being answered: set for the `call` of a `build_server`, and only there."""


@dataclass(frozen=True)
class MCPTool:
    """A tool as a server lists it. The schemas are JSON Schema (2020-12 unless they say otherwise)."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = field(default_factory=lambda: {"type": "object"})
    output_schema: dict[str, Any] | None = None


@dataclass(frozen=True)
class MCPResult:
    """What a tool answered.

    `content`: MCP content blocks, such as `{"type": "text", "text": "calm"}`. `structured`: the
    structured content, None when there is none. `is_error`: the tool itself reports a failure.
    """

    content: list[dict[str, Any]]
    structured: Any | None = None
    is_error: bool = False


class MCPFailure(Exception):
    """The protocol failed where a tool result was expected: unreachable, closed, refused, malformed.

    `code` is the JSON-RPC error code, None when the peer did not send one.
    """

    def __init__(self, message: str, code: int | None = None) -> None:
        self.code = code
        super().__init__(message)


class MCPSession(Protocol):
    """An initialized client session with one server."""

    async def list_tools(self) -> list[MCPTool]:
        """Every tool of the server, all pages, in the server's order.

        Raises:
            MCPFailure: the server refused, or the connection is gone.
        """
        ...

    async def call_tool(self, name: str, args: Mapping[str, Any]) -> MCPResult:
        """The answer of one tool; a tool's own failure is a result with `is_error`.

        Raises:
            MCPFailure: a protocol error (an unknown tool, an output that breaks its own schema), or
                the connection is gone.
        """
        ...


class SDKSession:
    """The `MCPSession` over the SDK's own client session."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._waiting: list[anyio.CancelScope] = []
        self._closed = False

    async def list_tools(self) -> list[MCPTool]:
        """Every tool of the server: see `MCPSession`."""
        from mcp import types

        tools: list[MCPTool] = []
        cursor: str | None = None
        while True:
            params = None if cursor is None else types.PaginatedRequestParams(cursor=cursor)
            page = _plain(await self._reply(self._session.list_tools(params=params)))
            tools += [_tool_from_wire(tool) for tool in page["tools"]]
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

        with _failures(), anyio.CancelScope() as scope:
            if self._closed:
                scope.cancel()
            self._waiting.append(scope)
            try:
                return await request
            finally:
                self._waiting.remove(scope)
        raise MCPFailure("the MCP connection is closed")


def connect_memory(server: Any) -> AbstractAsyncContextManager[SDKSession]:
    """An initialized session with a `build_server` server in this loop. Takes no time on the loop's clock."""
    return _connected(_memory_streams(server), "the server in memory")


def connect_stdio(
    command: str, args: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> AbstractAsyncContextManager[SDKSession]:
    """An initialized session with a child process, ended on leaving. Needs a loop in real time.

    In virtual time the grace the child is given to end would be over at once. `env` is added to the few
    variables the SDK passes on (PATH, HOME, …). The child's stderr is ours.

    Raises:
        MCPFailure: on entering, when the process cannot be started or does not speak MCP.
    """
    from mcp.client.stdio import StdioServerParameters, stdio_client

    parameters = StdioServerParameters(
        command=command, args=list(args), env=dict(env) if env is not None else None
    )
    # The SDK's default is sys.stderr of import time, which may be a capture that is closed by now.
    errlog: Any = sys.__stderr__ or subprocess.DEVNULL
    return _connected(stdio_client(parameters, errlog=errlog), command)


def connect_http(
    url: str, headers: Mapping[str, str] | None = None
) -> AbstractAsyncContextManager[SDKSession]:
    """An initialized session over streamable HTTP. Needs a loop in real time, or one held still.

    Raises:
        MCPFailure: on entering, when nothing answers there or it does not speak MCP.
    """
    return _connected(_http_streams(url, headers), url)


def connect_sse(
    url: str, headers: Mapping[str, str] | None = None
) -> AbstractAsyncContextManager[SDKSession]:
    """An initialized session over the older HTTP+SSE transport. Needs a loop in real time, or one held still.

    Raises:
        MCPFailure: on entering, when nothing answers there or it does not speak MCP.
    """
    from mcp.client.sse import sse_client

    return _connected(sse_client(url, headers=dict(headers or {})), url)


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

    desk = _ToolDesk(tools, call)
    if hasattr(Server, "add_request_handler"):  # 2.x

        async def on_list(_context: Any, _params: Any) -> Any:
            return types.ListToolsResult.model_validate(desk.listing())

        async def on_call(_context: Any, params: Any) -> Any:
            return types.CallToolResult.model_validate(await desk.answer(_plain(params)))

        return Server(name, version="1.0.0", on_list_tools=on_list, on_call_tool=on_call)

    # 1.x. Not its call_tool decorator, which turns every exception into a tool error.
    wrap: Any = types.ServerResult

    async def list_handler(_request: Any) -> Any:
        return wrap(types.ListToolsResult.model_validate(desk.listing()))

    async def call_handler(request: Any) -> Any:
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


class _ToolDesk:
    """The two requests of a tool server, in wire spelling, for whichever SDK carries them."""

    def __init__(
        self, tools: Sequence[MCPTool], call: Callable[[str, dict[str, Any]], Awaitable[MCPResult]]
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._validators = {tool.name: _validator(tool) for tool in tools}
        self._call = call

    def listing(self) -> dict[str, Any]:
        return {"tools": [_tool_to_wire(tool) for tool in self._tools.values()]}

    async def answer(self, params: dict[str, Any]) -> dict[str, Any]:
        name, args = params["name"], params.get("arguments") or {}
        if name not in self._tools:
            raise _protocol_error(INVALID_PARAMS, f"Unknown tool: {name}")
        if refusal := self._refusal(name, args):
            return _text_error(f"Input validation error: {refusal}")
        token = request_meta.set(params.get("_meta") or {})
        try:
            return _result_to_wire(await self._call(name, args))
        except MCPFailure as failure:
            raise _protocol_error(failure.code or INTERNAL_ERROR, str(failure)) from failure
        except Exception as error:
            return _text_error(str(error) or type(error).__name__)
        finally:
            request_meta.reset(token)

    def _refusal(self, name: str, args: dict[str, Any]) -> str:
        from jsonschema.exceptions import best_match
        from referencing.exceptions import Unresolvable

        try:
            error = best_match(self._validators[name].iter_errors(args))
        except Unresolvable as missing:
            return str(missing)
        return str(error.message) if error is not None else ""


def _validator(tool: MCPTool) -> Any:
    from jsonschema import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    for schema in (tool.output_schema or {}, tool.input_schema):
        cls = validator_for(schema, default=Draft202012Validator)
        try:
            cls.check_schema(schema)
        except SchemaError as error:
            raise WorldError(
                f"tool {tool.name!r} has a schema that is not valid JSON Schema: {error.message}"
            ) from None
    # An empty registry: a reference to elsewhere is an error, never a download.
    return cls(tool.input_schema, registry=Registry())


@asynccontextmanager
async def _connected(streams: AbstractAsyncContextManager[Any], where: str) -> AsyncIterator[SDKSession]:
    """Hold a session over `streams` in a task of its own, from initialization to the end of the block."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[SDKSession] = loop.create_future()
    leave = asyncio.Event()
    owner = loop.create_task(_own(streams, ready, leave))
    either: set[asyncio.Future[Any]] = {owner, ready}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            cause = _leaf(owner.exception())
            raise MCPFailure(f"cannot connect to {where}: {str(cause) or type(cause).__name__}") from cause
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
    streams: AbstractAsyncContextManager[Any], ready: asyncio.Future[SDKSession], leave: asyncio.Event
) -> None:
    from mcp import ClientSession

    async with streams as pair, ClientSession(pair[0], pair[1]) as client:
        with _failures():
            await client.initialize()
        session = SDKSession(client)
        ready.set_result(session)
        try:
            await leave.wait()
        finally:
            session.end()


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
        raise MCPFailure(str(error)) from error


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


def _tool_from_wire(tool: dict[str, Any]) -> MCPTool:
    # Sorted, because each SDK sends the keys of a schema in an order of its own.
    schemas = {
        key: dict(sorted(tool[key].items())) for key in ("inputSchema", "outputSchema") if tool.get(key)
    }
    return MCPTool(
        tool["name"], tool.get("description", ""), schemas.get("inputSchema", {}), schemas.get("outputSchema")
    )


def _tool_to_wire(tool: MCPTool) -> dict[str, Any]:
    wire: dict[str, Any] = {"name": tool.name, "inputSchema": {"type": "object", **tool.input_schema}}
    if tool.description:
        wire["description"] = tool.description
    if tool.output_schema is not None:
        wire["outputSchema"] = {"type": "object", **tool.output_schema}
    return wire


def _result_to_wire(result: MCPResult) -> dict[str, Any]:
    wire: dict[str, Any] = {"content": result.content, "isError": result.is_error}
    if result.structured is not None:
        wire["structuredContent"] = result.structured
    return wire


def _text_error(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _leaf(error: BaseException | None) -> BaseException | None:
    """The first error inside the groups that task groups wrap around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
