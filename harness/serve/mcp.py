"""The scripted MCP servers of a world over the real protocol: streamable HTTP, and stdio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from harness.errors import FormatError, Problem, UnscriptedCall
from harness.graph.effects import MCPCall, MCPEndpoint
from harness.serve.responder import Asker, Desk
from harness.source.suggest import did_you_mean
from harness.world.failures import to_exception
from harness.world.mcp.fake import error_result
from harness.world.mcp.tools import MCPFailure, MCPResult, MCPTool


def scripted(desk: Desk) -> list[str]:
    """The names of the servers that can be served: those that are not real."""
    return [name for name, server in desk.world.mcp.items() if not server.real]


def tool_server(desk: Desk, name: str) -> Any:
    """An SDK server with the tools of a scripted server, which answers from their stubs.

    Raises:
        WorldError: a tool's schema is not a valid JSON Schema.
    """
    from harness.world.mcp.build import build_server

    server = desk.world.mcp[name]
    endpoint = MCPEndpoint(id=name, transport="streamable_http")

    async def answer(tool: str, args: dict[str, Any]) -> MCPResult:
        effect = MCPCall(name=tool, args=args, endpoint=endpoint)
        try:
            said = desk.ask(effect, Asker("", f"MCP {name}"))
        except UnscriptedCall as error:
            raise MCPFailure(str(error)) from error
        await desk.wait(server.latency_s + said.latency_s)
        if said.error is not None:
            return error_result(str(to_exception(said.error)))
        result: MCPResult = said.value
        return result

    tools = [MCPTool(tool.name, tool.description, dict(tool.input_schema)) for tool in server.tools]
    return build_server(name, tools, answer)


class MCPOverHTTP:
    """Every scripted server as an ASGI application, without sessions: each request stands alone."""

    def __init__(self, desk: Desk) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        self._managers = {
            name: StreamableHTTPSessionManager(tool_server(desk, name), json_response=True, stateless=True)
            for name in scripted(desk)
        }

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """The servers can be asked inside."""
        async with AsyncExitStack() as running:
            for manager in self._managers.values():
                await running.enter_async_context(manager.run())
            yield

    def app(self, name: str) -> Any:
        """The ASGI application of a server."""
        return self._managers[name].handle_request


async def serve_stdio(desk: Desk, name: str) -> None:
    """Serve one server on standard input and output, until the input ends.

    Raises:
        FormatError: there is no such server, or it is real (`unknown-server`).
    """
    from mcp.server.stdio import stdio_server

    check_known(desk, name)
    server = tool_server(desk, name)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def check_known(desk: Desk, name: str) -> None:
    """Refuse the name of a server that cannot be served.

    Raises:
        FormatError: there is no such server, or it is real (`unknown-server`).
    """
    if name not in scripted(desk):
        what = "is real, and only scripted ones are served" if name in desk.world.mcp else "is not there"
        hint = did_you_mean(name, scripted(desk)) or "the scenario scripts none under `mcp:`"
        raise FormatError(Problem("unknown-server", f"MCP server '{name}' {what}", hint=hint))
