"""A recording of an MCP server is extended by new requests; only these reach the server."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from harness.graph.effects import MCPEndpoint
from harness.recording.interactions import Exchange
from harness.recording.mcp.proxy import MCPRecorder
from harness.time.paced import PacedTimeLoop
from harness.world.mcp.tools import MCPFailure, MCPSession
from tests.recording.mcp.sessions import (
    AGAIN,
    REPORT,
    Use,
    outcome,
    over_http,
    over_stdio,
    replaying,
)


def extending(
    exchanges: Sequence[Exchange], use: Use, endpoint: MCPEndpoint
) -> tuple[tuple[Exchange, ...], Any]:
    recorder = MCPRecorder(exchanges, server="harbour", hint=AGAIN)

    async def main() -> Any:
        async with recorder.session(endpoint, sends=True) as session:
            return await use(session)

    with asyncio.Runner(loop_factory=PacedTimeLoop) as runner:
        gave = runner.run(main())
    return recorder.exchanges(), gave


@pytest.mark.parametrize("reached", [over_stdio, over_http])
def test_new_requests_go_to_the_real_server_and_known_ones_do_not(day: Any, reached: Any) -> None:
    async def use(session: MCPSession) -> list[Any]:
        return [
            await outcome(session.list_tools()),
            await outcome(
                session.call_tool("ask", {}) if reached is over_stdio else session.call_tool("fail", {})
            ),
            await outcome(REPORT(session)),
            await outcome(session.call_tool("wait", {"seconds": 0.01})),
        ]

    with reached() as endpoint:
        extended, gave = extending(day, use, endpoint)
    assert [e.sent["params"]["name"] for e in extended if e.sent.get("method") == "tools/call"] == [
        "ask" if reached is over_stdio else "fail",
        "report",
        "wait",
    ]
    assert [e for e in extended if e in day] == list(day)
    assert replaying(extended, use)[1] == gave


def test_the_real_server_is_not_reached_while_all_is_known(day: Any) -> None:
    nowhere = MCPEndpoint("harbour", "stdio", command="/no/such/server")
    extended, gave = extending(day, REPORT, nowhere)
    assert gave.structured == {"wind": 3}
    assert all(exchange in day for exchange in extended)

    async def use(session: MCPSession) -> str:
        with pytest.raises(MCPFailure) as raised:
            await session.call_tool("fail", {})
        return str(raised.value)

    assert "/no/such/server" in extending(day, use, nowhere)[1]


def test_a_real_server_that_does_not_answer_fails_on_its_first_use(
    day: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.recording.mcp.connection.CONNECT_LIMIT_S", 0.3)
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.1)
    deaf = MCPEndpoint(
        "harbour", "stdio", command=sys.executable, args=["-c", "import sys; sys.stdin.read()"]
    )

    async def use(session: MCPSession) -> str:
        with pytest.raises(MCPFailure) as raised:
            await session.call_tool("fail", {})
        return str(raised.value)

    assert extending(day, use, deaf)[1] == "the MCP server did not answer within 0.3 s"
