"""Recorded MCP servers in a world: stubs take precedence, and HTTP of other clients is separate."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import pytest

from harness.errors import CassetteMismatch
from harness.graph.effects import MCPCall, MCPEndpoint
from harness.interception.real_effects import not_intercepted
from harness.recording.interactions import Exchange
from harness.recording.mcp.proxy import MCPRecorder
from harness.time.clock import VirtualTimeLoop
from harness.world.mcp.servers import MCPServers
from tests.recording.mcp.sessions import (
    all_kinds,
    over_http,
    recording,
)
from tests.world.stubs import world_spec


def test_http_of_mcp_is_distinguished_from_other_http(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def noting(send: Any) -> Any:
        async def noted(self: Any, request: Any) -> Any:
            seen.append(not_intercepted.get())
            return await send(self, request)

        return noted

    for name in ("httpx", "httpx2"):  # which of them it is depends on the version of the SDK
        with suppress(ModuleNotFoundError):
            transport = import_module(name).AsyncHTTPTransport
            monkeypatch.setattr(transport, "handle_async_request", noting(transport.handle_async_request))
    with over_http() as endpoint:
        recording(all_kinds, endpoint)
    assert len(seen) >= 7
    assert set(seen) == {True}
    assert not not_intercepted.get()


class Replayed:
    """A backend that only has MCP sessions: one with the harbour server, from its recording."""

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self.recorder = MCPRecorder(exchanges, server="harbour")

    def session(self, endpoint: MCPEndpoint) -> Any:
        return self.recorder.session(endpoint) if endpoint.id == "harbour" else None


@pytest.mark.parametrize("said", [{}, {"harbour": "real"}])
def test_a_server_without_stubs_is_answered_by_the_backend(day: Any, said: Any) -> None:
    async def main() -> tuple[list[str], Any]:
        backend: Any = Replayed(day)
        servers = MCPServers(backend)
        servers.put_in_front(world_spec(mcp=said))
        endpoint = MCPEndpoint("harbour", "stdio", command="/no/such/server")
        names = [tool.name for tool in await servers.tools(endpoint)]
        args = {"place": "Vardø", "when": "today or tomorrow", "knots": 2}
        answer = await servers.answer(MCPCall(name="report", args=args, endpoint=endpoint), {})
        assert answer is not None
        with pytest.raises(CassetteMismatch):
            await servers.answer(MCPCall(name="fail", args={}, endpoint=endpoint), {})
        pier = MCPCall(name="fail", args={}, endpoint=MCPEndpoint("pier", "stdio"))
        assert await servers.answer(pier, {}) is None
        await servers.close()
        return names, answer.value.structured

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        names, structured = runner.run(main())
    assert names[0] == "report"
    assert structured == {"wind": 3}


def test_stubs_come_before_the_backend(day: Any) -> None:
    async def main() -> str:
        backend: Any = Replayed(day)
        servers = MCPServers(backend)
        stub = {"return": "calm"}
        harbour = {"tools": [{"name": "report", "stubs": [stub]}]}
        servers.put_in_front(world_spec(mcp={"harbour": harbour}))
        answer = await servers.answer(MCPCall(name="report", endpoint=MCPEndpoint("harbour", "stdio")), {})
        assert answer is not None
        await servers.close()
        return str(answer.value.content[0]["text"])

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(main()) == "calm"
