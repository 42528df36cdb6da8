"""Builds low-level servers of the MCP Python SDK from tools as plain data, with `mcp` 1.30 and 2.x alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from harness.world.mcp.tools import INTERNAL_ERROR, MCPFailure, MCPResult, MCPTool, ToolServer
from harness.world.mcp.wire import model_json, protocol_error

_BLOCKS = {
    "text": "TextContent",
    "image": "ImageContent",
    "audio": "AudioContent",
    "resource": "EmbeddedResource",
    "resource_link": "ResourceLink",
}


def build_server(
    name: str, tools: Sequence[MCPTool], call: Callable[[str, dict[str, Any]], Awaitable[MCPResult]]
) -> Any:
    """Return a low-level server of the SDK that lists `tools` and answers calls of them with `call`.

    Arguments are first validated by the tool's input schema; invalid ones get a tool error, an unknown tool a
    protocol error (Source: MCP specification 2025-11-25, Tools, Error Handling). If `call` raises `MCPFailure`, the
    answer is a protocol error; for any other exception it is a tool error with its text.

    Raises:
        WorldError: a schema is not a valid JSON Schema.
    """
    from mcp import types
    from mcp.server.lowlevel import Server

    tool_server = ToolServer(name, tools, call)
    if hasattr(Server, "add_request_handler"):  # 2.x

        async def on_list(_context: Any, _params: Any) -> Any:
            return types.ListToolsResult.model_validate(tool_server.listing())

        async def on_call(_context: Any, params: Any) -> Any:
            with _protocol_errors():
                return types.CallToolResult.model_validate(await tool_server.answer(model_json(params)))

        return Server(name, version="1.0.0", on_list_tools=on_list, on_call_tool=on_call)

    # 1.x. Not its call_tool decorator, which converts every exception to a tool error.
    wrap: Any = types.ServerResult

    async def list_handler(_request: Any) -> Any:
        return wrap(types.ListToolsResult.model_validate(tool_server.listing()))

    async def call_handler(request: Any) -> Any:
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
