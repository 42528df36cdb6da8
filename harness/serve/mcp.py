"""Serves the scripted MCP servers of a world over the real protocol: streamable HTTP and stdio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

from harness.errors import FormatError, Problem, UnscriptedCall
from harness.graph.effects import MCPCall, MCPEndpoint
from harness.serve.responder import Client, StubResponder
from harness.source.display import did_you_mean
from harness.world.mcp.fake import build_server, error_result
from harness.world.mcp.tools import MCPFailure, MCPResult
from harness.world.mcp.wire import require_sdk


def scripted_servers(responder: StubResponder) -> list[str]:
    """Return the names of the servers that can be served: those that are not real."""
    return [name for name, server in responder.mcp.servers.items() if not server.real]


def tool_server(responder: StubResponder, name: str) -> Any:
    """Return an SDK server with the tools of a scripted server, which answers from their stubs.

    Raises:
        WorldError: a tool's schema is not a valid JSON Schema.
    """
    endpoint = MCPEndpoint(id=name, transport="streamable_http")

    async def answer(tool: str, args: dict[str, Any]) -> MCPResult:
        effect = MCPCall(name=tool, args=args, endpoint=endpoint)
        try:
            answer = await responder.answer(effect, Client("", f"MCP {name}"))
        except UnscriptedCall as error:
            raise MCPFailure(str(error)) from error
        await responder.wait(answer.latency_s)
        if answer.error is not None:
            return error_result(str(answer.error))
        return cast(MCPResult, answer.value)

    return build_server(name, responder.mcp.listed(name), answer)


class MCPOverHTTP:
    """All scripted servers as ASGI applications, without sessions."""

    def __init__(self, responder: StubResponder) -> None:
        self._managers: dict[str, Any] = {}
        names = scripted_servers(responder)
        if not names:  # so that the SDK is not needed
            return
        require_sdk()
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        for name in names:
            server = tool_server(responder, name)
            self._managers[name] = StreamableHTTPSessionManager(server, json_response=True, stateless=True)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Run the servers within the context."""
        async with AsyncExitStack() as running:
            for manager in self._managers.values():
                await running.enter_async_context(manager.run())
            yield

    def app(self, name: str) -> Any:
        """Return the ASGI application of a server."""
        return self._managers[name].handle_request


async def serve_stdio(responder: StubResponder, name: str) -> None:
    """Serve a scripted server on standard input and output, until the input ends.

    Raises:
        FormatError: there is no such server, or it is real (`unknown-server`).
    """
    require_sdk()
    from mcp.server.stdio import stdio_server

    if name not in (known := scripted_servers(responder)):
        real = name in responder.mcp.servers
        what = "is real, and only scripted ones are served" if real else "is not there"
        hint = did_you_mean(name, known) or "the scenario scripts none under `mcp:`"
        raise FormatError(Problem("unknown-server", f"MCP server '{name}' {what}", hint=hint))
    server = tool_server(responder, name)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
