"""Converts the SDK's messages to plain data and back, for both major versions of the SDK."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from typing import Any

from harness.graph.effects import Ask
from harness.source.imports import import_extra

Message = Mapping[str, Any]
"""A JSON-RPC message: a request, a notification or a response. Only a response has no `method`."""

_MOST_TOKENS = 1024
CONNECTION_CLOSED = -32000  # the SDK's error code for requests on a closed connection


def require_sdk() -> None:
    """Import the SDK of MCP, which the functions here and beside use.

    Raises:
        ExtraMissing: it is not installed.
    """
    import_extra("mcp", "mcp", "for MCP servers")


def model_json(model: Any) -> dict[str, Any]:
    """Return a protocol object in its wire form."""
    data: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return data


def message_json(item: Any) -> Message:
    """Return the message in an item of the SDK's streams."""
    data: dict[str, Any] = item.message.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return data


def session_message(message: Message) -> Any:
    """Return a message as an item for the SDK's streams. The `data` of an error may be any object."""
    from mcp import types
    from mcp.shared.message import SessionMessage

    if adapter := getattr(types, "jsonrpc_message_adapter", None):  # 2.x
        return SessionMessage(adapter.validate_python(dict(message), by_name=False))
    return SessionMessage(types.JSONRPCMessage.model_validate(dict(message)))  # type: ignore[attr-defined]


def is_request(message: Message) -> bool:
    """True if the message expects a response."""
    return "method" in message and "id" in message


def is_response(message: Message) -> bool:
    """True if the message is a response."""
    return "method" not in message


def error_response(request: Message, text: str, data: Any = None) -> Message:
    """Return the error with which the SDK answers a request on a closed connection."""
    error = {"code": CONNECTION_CLOSED, "message": text} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": request["id"], "error": error}


def handshake_versions() -> Collection[str]:
    """Return the protocol versions that the installed SDK's client accepts in the answer to `initialize`."""
    from importlib import import_module

    try:
        versions: Collection[str] = import_module("mcp_types.version").HANDSHAKE_PROTOCOL_VERSIONS
    except ModuleNotFoundError:  # 1.x
        versions = import_module("mcp.shared.version").SUPPORTED_PROTOCOL_VERSIONS
    return versions


def protocol_error_type() -> Any:
    """Return the class of the SDK's exception for an error response."""
    from mcp.shared import exceptions

    return getattr(exceptions, "MCPError", None) or exceptions.McpError  # type: ignore[attr-defined]


def protocol_error(code: int, message: str) -> Exception:
    """Return the exception that the SDK sends as an error response."""
    from mcp import types

    cls = protocol_error_type()
    error: Exception = getattr(cls, "from_error_data", cls)(types.ErrorData(code=code, message=message))
    return error


def client_of(session: Any) -> Ask | None:
    """Return the client of a server's session, as far as it answers what servers ask; None if it answers nothing."""
    from mcp import types

    able = types.ClientCapabilities
    elicits = session.check_client_capability(able(elicitation=types.ElicitationCapability()))
    samples = session.check_client_capability(able(sampling=types.SamplingCapability()))
    if not (elicits or samples):
        return None

    async def ask(method: str, params: Message) -> dict[str, Any]:
        if method == "elicitation/create":
            send = getattr(session, "elicit_form", None) or session.elicit
            return model_json(await send(params["message"], dict(params["requestedSchema"])))
        read = types.CreateMessageRequestParams.model_validate(dict(params))
        given = {name: getattr(read, name, None) for name in ("system_prompt", "systemPrompt", "temperature")}
        more = {
            "system_prompt": given["system_prompt"] or given["systemPrompt"],
            "temperature": given["temperature"],
        }
        limit = params.get("maxTokens") or _MOST_TOKENS
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of later versions of the protocol, which have no sampling
            asking = session.create_message(read.messages, max_tokens=limit, **more)
            return model_json(await asking)

    return ask


def callbacks(ask: Ask) -> dict[str, Any]:
    """Return the callbacks of a client session that answer what its server asks."""
    from mcp import types

    async def answered(method: str, params: Any, result: Any) -> Any:
        try:
            return result.model_validate(await ask(method, model_json(params)))
        except Exception as error:  # the server is told
            return types.ErrorData(code=-32603, message=str(error))

    async def elicit(_context: Any, params: Any) -> Any:
        return await answered("elicitation/create", params, types.ElicitResult)

    async def sample(_context: Any, params: Any) -> Any:
        return await answered("sampling/createMessage", params, types.CreateMessageResult)

    return {"elicitation_callback": elicit, "sampling_callback": sample}


async def call_with_meta(session: Any, name: str, args: Mapping[str, Any], meta: Mapping[str, Any]) -> Any:
    """Call a tool with `_meta`, which the client session of the SDK cannot before 1.19."""
    from mcp import types

    wrapped: Any = types.ClientRequest
    params = {"name": name, "arguments": dict(args), "_meta": dict(meta)}
    request = types.CallToolRequest.model_validate({"method": "tools/call", "params": params})
    return await session.send_request(wrapped(request), types.CallToolResult)
