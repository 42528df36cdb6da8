"""The stubs of scripted MCP servers: the answers of their tools, independent of the transport."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from harness.errors import Nearest, Span
from harness.graph.effects import Answer, Effect, MCPCall, MCPEndpoint
from harness.graph.model import State
from harness.world.answers import ScriptedAnswer
from harness.world.failures import to_exception
from harness.world.mcp.fake import content_result, error_result, structured_result, text_result
from harness.world.mcp.tools import MCPResult, MCPTool
from harness.world.responder import Responder
from harness.world.spec import MCPServerSpec, Stub
from harness.world.stubs import StubList


class MCPStubs(Responder):
    """The responder for calls of scripted servers. `servers` has all servers of the scenario, including real ones."""

    def __init__(self) -> None:
        self.servers: dict[str, MCPServerSpec] = {}
        self._stubs: dict[tuple[str, str], StubList] = {}

    def put_in_front(self, servers: Mapping[str, MCPServerSpec]) -> None:
        """Add the servers of a turn, or add stubs in front of those of an existing server.

        The turn's latency and error replace those of the server. Tools added to a server in use are not listed.
        """
        for name, server in servers.items():
            known_tools = self.servers[name].tools if name in self.servers else ()
            tools = {tool.name: tool for tool in (*known_tools, *server.tools)}
            self.servers[name] = replace(server, tools=tuple(tools.values()))
            for tool in server.tools:
                stubs = self._stubs.setdefault((name, tool.name), StubList((), f"mcp.{name}.{tool.name}"))
                stubs.put_in_front(tool.stubs)

    def name_of(self, endpoint: MCPEndpoint) -> str:
        """Return the name of a server in the scenario: its id, or else its alias."""
        return (
            endpoint.alias
            if endpoint.id not in self.servers and endpoint.alias in self.servers
            else endpoint.id
        )

    def tools(self, server: str) -> list[MCPTool]:
        """Return the tools that a scripted server lists."""
        return [
            MCPTool(tool.name, tool.description, dict(tool.input_schema))
            for tool in self.servers[server].tools
        ]

    def failure(self, endpoint: MCPEndpoint) -> ScriptedAnswer | None:
        """Return the error of a scripted server that cannot be reached; None if it can."""
        server = self.servers.get(self.name_of(endpoint))
        if server is None or server.error is None:
            return None
        error, latency_s = to_exception(server.error), server.latency_s
        return ScriptedAnswer(error=error, latency_s=latency_s, source=server, title=server.error.kind)

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """Return the answer, an `MCPResult`, of the tool's first stub that matches; None if there is none.

        Raises:
            WorldError: the stub's content is not valid in the protocol.
        """
        stubs = self._stub_list(effect)
        stub = None if stubs is None else stubs.consume(effect, state)
        if stub is None or stubs is None or not isinstance(effect, MCPCall):
            return None
        latency_s = self.servers[self.name_of(effect.endpoint)].latency_s + stub.latency_s
        return ScriptedAnswer(_result(stub), latency_s=latency_s, source=stub, title=stubs.title)

    def nearest(self, effect: Effect, state: State) -> Nearest | None:
        """Return the stub that is nearest to matching a call; None if the tool has none."""
        stubs = self._stub_list(effect)
        return None if stubs is None else stubs.nearest(effect, state)

    def unused(self) -> list[str]:
        """Return a description of each stub with uses left."""
        return [text for stubs in self._stubs.values() for text in stubs.unused()]

    def undecided(self) -> list[tuple[str, Span | None]]:
        """Return the reason and the location of each stub whose `when` could never be evaluated."""
        return [found for stubs in self._stubs.values() for found in stubs.undecided()]

    def _stub_list(self, effect: Effect) -> StubList | None:
        if not isinstance(effect, MCPCall):
            return None
        return self._stubs.get((self.name_of(effect.endpoint), effect.name))


def _result(stub: Stub) -> MCPResult:
    if stub.error is not None:
        return error_result(str(to_exception(stub.error)))
    if "content" in stub.answer:
        return content_result(stub.answer["content"])
    value = stub.answer.get("return")
    return text_result(value) if isinstance(value, str) else structured_result(value)
