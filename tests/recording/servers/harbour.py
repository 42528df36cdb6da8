"""A small MCP server, written with the SDK alone, version 1 or 2; run as a program it speaks on stdin and stdout.

Its tools:

    report   tells of its progress and logs a line, then answers with structured content
    wait     answers after some real seconds
    fail     a tool error
    refuse   a protocol error
    ask      asks the client for a sign of life before it answers
    die      ends the process
"""

import asyncio
import os
from types import SimpleNamespace
from typing import Any

from mcp import types
from mcp.server.lowlevel import Server
from mcp.shared import exceptions

REPORTED = {"type": "object", "properties": {"wind": {"type": "integer"}}, "required": ["wind"]}
TOOLS = [
    {"name": "report", "inputSchema": {"type": "object"}, "outputSchema": REPORTED},
    *({"name": name, "inputSchema": {"type": "object"}} for name in ("wait", "fail", "refuse", "ask", "die")),
]

ProtocolError: Any = getattr(exceptions, "MCPError", None) or exceptions.McpError  # type: ignore[attr-defined]


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def refusal() -> Exception:
    make = getattr(ProtocolError, "from_error_data", ProtocolError)
    error: Exception = make(types.ErrorData(code=-32050, message="the harbour is closed"))
    return error


async def answer(asked: Any, name: str, args: dict[str, Any]) -> dict[str, Any]:
    if name == "report":
        if asked.token is not None:
            await asked.tell("ProgressNotification", progressToken=asked.token, progress=0.5)
        await asked.tell("LoggingMessageNotification", level="info", data=f"looking out at {args['place']}")
        return text(f"{args['place']}: wind 3", structuredContent={"wind": 3})
    if name == "wait":
        await asyncio.sleep(args["seconds"])
        return text(f"waited {args['seconds']}")
    if name == "fail":
        return text("the mast broke", isError=True)
    if name == "ask":
        await asked.session.send_ping()
        return text("you are there")
    if name == "die":
        os._exit(3)
    raise refusal()


def harbour() -> Any:
    """Return the server, not running."""
    listing = types.ListToolsResult.model_validate({"tools": TOOLS})
    second = hasattr(Server, "add_request_handler")

    async def call(context: Any, name: str, args: Any) -> Any:
        async def tell(kind: str, **params: Any) -> None:
            notification = getattr(types, kind).model_validate({"method": METHODS[kind], "params": params})
            wrap: Any = (lambda it: it) if second else types.ServerNotification
            await context.session.send_notification(wrap(notification), related_request_id=context.request_id)

        meta = context.meta or {}
        token = meta.get("progress_token") if second else getattr(meta, "progressToken", None)
        asked = SimpleNamespace(session=context.session, tell=tell, token=token)
        return types.CallToolResult.model_validate(await answer(asked, name, args or {}))

    if second:

        async def on_list(_context: Any, _params: Any) -> Any:
            return listing

        async def on_call(context: Any, params: Any) -> Any:
            return await call(context, params.name, params.arguments)

        return Server("harbour", version="1", on_list_tools=on_list, on_call_tool=on_call)

    server: Any = Server("harbour", version="1")
    wrap: Any = types.ServerResult

    async def listed(_request: Any) -> Any:
        return wrap(listing)

    async def called(request: Any) -> Any:
        return wrap(await call(server.request_context, request.params.name, request.params.arguments))

    server.request_handlers[types.ListToolsRequest] = listed
    server.request_handlers[types.CallToolRequest] = called
    return server


METHODS = {
    "ProgressNotification": "notifications/progress",
    "LoggingMessageNotification": "notifications/message",
}


async def serve() -> None:
    from mcp.server.stdio import stdio_server

    server = harbour()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(serve())
