"""What goes over the wire between an MCP client and a server, as plain data, from either version of the SDK."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

Message = Mapping[str, Any]
"""A JSON-RPC message: a request, a notification, or a response, which alone has no `method`."""

CONNECTION_CLOSED = -32000  # the code with which the SDK itself fails what was asked of a closed connection


def model_json(model: Any) -> dict[str, Any]:
    """A protocol object as it goes over the wire."""
    data: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return data


def message_json(item: Any) -> Message:
    """The message in what the SDK passes through the streams of a connection."""
    data: dict[str, Any] = item.message.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return data


def session_message(message: Message) -> Any:
    """A message as the SDK passes it through the streams of a connection. An error's `data` may be any object."""
    from mcp import types
    from mcp.shared.message import SessionMessage

    if adapter := getattr(types, "jsonrpc_message_adapter", None):  # 2.x
        return SessionMessage(adapter.validate_python(dict(message), by_name=False))
    return SessionMessage(types.JSONRPCMessage.model_validate(dict(message)))  # type: ignore[attr-defined]


def is_request(message: Message) -> bool:
    """True if the message wants a response."""
    return "method" in message and "id" in message


def is_response(message: Message) -> bool:
    """True if the message answers a request."""
    return "method" not in message


def error_response(request: Message, text: str, data: Any = None) -> Message:
    """The answer to a request that a connection cannot carry, in the words of the SDK."""
    error = {"code": CONNECTION_CLOSED, "message": text} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": request["id"], "error": error}


def handshake_versions() -> Collection[str]:
    """The protocol versions that the client of the installed SDK accepts from `initialize`."""
    from importlib import import_module

    try:
        versions: Collection[str] = import_module("mcp_types.version").HANDSHAKE_PROTOCOL_VERSIONS
    except ModuleNotFoundError:  # 1.x
        versions = import_module("mcp.shared.version").SUPPORTED_PROTOCOL_VERSIONS
    return versions


def protocol_error_type() -> Any:
    """The exception that the SDK raises for an error response, and sends as one."""
    from mcp.shared import exceptions

    return getattr(exceptions, "MCPError", None) or exceptions.McpError  # type: ignore[attr-defined]


def protocol_error(code: int, message: str) -> Exception:
    """The exception that the SDK sends as an error response."""
    from mcp import types

    cls = protocol_error_type()
    error: Exception = getattr(cls, "from_error_data", cls)(types.ErrorData(code=code, message=message))
    return error
