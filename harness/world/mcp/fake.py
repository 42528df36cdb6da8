"""A scripted MCP server that speaks the real protocol in memory, and the results of its tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from harness.errors import HarnessError, WorldError
from harness.world.mcp.connect import connect_memory
from harness.world.mcp.session import SDKSession
from harness.world.mcp.tools import (
    INTERNAL_ERROR,
    MCPFailure,
    MCPResult,
    MCPSession,
    MCPTool,
    ToolServer,
    request_client,
    request_meta,
)
from harness.world.mcp.wire import client_of, model_json, protocol_error, require_sdk

_BLOCKS = {
    "text": "TextContent",
    "image": "ImageContent",
    "audio": "AudioContent",
    "resource": "EmbeddedResource",
    "resource_link": "ResourceLink",
}


def build_server(
    name: str,
    tools: Sequence[MCPTool],
    call: Callable[[str, dict[str, Any]], Awaitable[MCPResult]],
    *,
    forwards: bool = False,
) -> Any:
    """Return a low-level server of the SDK that lists `tools` and answers calls of them with `call`.

    Arguments are first validated by the tool's input schema; invalid ones get a tool error, an unknown tool a
    protocol error (Source: MCP specification 2025-11-25, Tools, Error Handling). If `call` raises `MCPFailure`, the
    answer is a protocol error; for any other exception it is a tool error with its text. With `forwards`, every call
    reaches `call`, which asks a server that checks it.

    Raises:
        WorldError: a schema is not a valid JSON Schema.
    """
    require_sdk()
    from mcp import types
    from mcp.server.lowlevel import Server

    tool_server = ToolServer(name, tools, call, forwards=forwards)
    if hasattr(Server, "add_request_handler"):  # 2.x

        async def on_list(_context: Any, _params: Any) -> Any:
            return types.ListToolsResult.model_validate(tool_server.listing())

        async def on_call(context: Any, params: Any) -> Any:
            request_client.set(client_of(context.session))
            with _protocol_errors():
                return types.CallToolResult.model_validate(await tool_server.answer(model_json(params)))

        return Server(name, version="1.0.0", on_list_tools=on_list, on_call_tool=on_call)

    # 1.x. Not its call_tool decorator, which converts every exception to a tool error.
    wrap: Any = types.ServerResult

    async def list_handler(_request: Any) -> Any:
        return wrap(types.ListToolsResult.model_validate(tool_server.listing()))

    async def call_handler(request: Any) -> Any:
        request_client.set(client_of(server.request_context.session))
        with _protocol_errors():
            wire = await tool_server.answer(model_json(request.params))
        return wrap(types.CallToolResult.model_validate(wire))

    server: Any = Server(name, version="1.0.0")
    server.request_handlers[types.ListToolsRequest] = list_handler
    server.request_handlers[types.CallToolRequest] = call_handler
    return server


def check_content(block: Mapping[str, Any]) -> None:
    """Raise ValueError unless the mapping is an MCP content block.

    Raises:
        ValueError: it is not valid; the text names the errors.
    """
    require_sdk()
    from mcp import types
    from pydantic import ValidationError

    kind = block.get("type")
    if kind not in _BLOCKS:
        raise ValueError(f"{kind!r} is not a type of MCP content block; expected one of {', '.join(_BLOCKS)}")
    try:
        getattr(types, _BLOCKS[kind]).model_validate(dict(block))
    except ValidationError as error:
        reasons = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ValueError(f"not an MCP content block of type {kind!r}: {reasons}") from None


@contextmanager
def _protocol_errors() -> Iterator[None]:
    """Convert `MCPFailure` to the exception that the SDK sends as a protocol error."""
    try:
        yield
    except MCPFailure as failure:
        raise protocol_error(failure.code or INTERNAL_ERROR, str(failure)) from failure


Answer = Callable[[str, dict[str, Any]], Awaitable[MCPResult]]

CALL_ID = "harness/call"  # the key in `_meta` with the number of the call


def fake_session(
    name: str, tools: Sequence[MCPTool], answer: Answer
) -> AbstractAsyncContextManager[MCPSession]:
    """Return a client session with a server `name` that lists `tools` and calls `answer` for results.

    `answer(tool, args)` is awaited once for each call with valid arguments. It runs with the context variables of the
    task that called `call_tool`, and is cancelled with that call. If it raises a `HarnessError` (such as
    `UnscriptedCall`), `call_tool` raises the same object; `MCPFailure` arrives as a protocol error, any other
    exception as a tool error with its text, as from any server.

    Raises:
        WorldError: on entering, if a tool's schema is not a valid JSON Schema.
    """
    return _FakeSession(name, tools, answer)


def text_result(text: str) -> MCPResult:
    """Return a result with one text block."""
    return MCPResult([{"type": "text", "text": text}])


def structured_result(value: Any) -> MCPResult:
    """Return a result with structured content, and its compact JSON as a text block for clients that only read text.

    Structured content must be an object: a value that is not a mapping becomes `{"result": value}`, as in the SDK's
    servers; its text is the JSON of the value alone. Source: MCP specification 2025-11-25, Tools, Structured Content.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    plain = json.loads(text)
    structured = plain if isinstance(plain, dict) else {"result": plain}
    return MCPResult([{"type": "text", "text": text}], structured)


def content_result(blocks: Sequence[Mapping[str, Any]]) -> MCPResult:
    """Return a result with these MCP content blocks, in wire spelling (`mimeType`).

    Raises:
        WorldError: a block is not valid.
    """
    for block in blocks:
        try:
            check_content(block)
        except ValueError as error:
            raise WorldError(str(error)) from None
    return MCPResult([dict(block) for block in blocks])


def error_result(text: str) -> MCPResult:
    """Return the result of a tool that failed, with its text."""
    return MCPResult([{"type": "text", "text": text}], is_error=True)


@dataclass
class _Call:
    """A call that is in progress."""

    context: Context = field(default_factory=copy_context)
    answering: asyncio.Task[MCPResult] | None = None
    raised: HarnessError | None = None


class _FakeSession(AbstractAsyncContextManager[MCPSession]):
    """Both ends of the scripted server: the client session, and the answers of the server."""

    def __init__(self, name: str, tools: Sequence[MCPTool], answer: Answer) -> None:
        self._name, self._tools, self._answer = name, tools, answer
        self._session: SDKSession
        self._calls: dict[int, _Call] = {}
        self._ids = count(1)

    async def __aenter__(self) -> MCPSession:
        self._connection = connect_memory(build_server(self._name, self._tools, self.serve))
        self._session = await self._connection.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.__aexit__(None, None, None)

    async def list_tools(self) -> list[MCPTool]:
        return await self._session.list_tools()

    async def call_tool(self, name: str, args: Mapping[str, Any]) -> MCPResult:
        call_id, call = next(self._ids), _Call()
        self._calls[call_id] = call
        try:
            result = await self._session.call_tool(name, args, meta={CALL_ID: call_id})
        finally:
            del self._calls[call_id]
            if call.answering is not None:
                call.answering.cancel()
        if call.raised is not None:
            raise call.raised
        return result

    async def serve(self, name: str, args: dict[str, Any]) -> MCPResult:
        """Answer a call, on the server side of the protocol."""
        call = self._calls.get(request_meta.get()[CALL_ID])
        if call is None:
            return error_result("the caller is gone")

        async def answer() -> MCPResult:
            return await self._answer(name, args)

        call.answering = asyncio.get_running_loop().create_task(answer(), context=call.context)
        try:
            return await call.answering
        except HarnessError as error:
            call.raised = error
            return error_result(str(error))
        except asyncio.CancelledError:
            server_task = asyncio.current_task()
            if server_task is not None and server_task.cancelling():
                raise
            return error_result("the call was cancelled")
