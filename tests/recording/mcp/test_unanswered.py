"""Requests that an MCP server does not answer are replayed as they were recorded."""

import asyncio
import socket
import sys
from dataclasses import replace
from typing import Any

import pytest

from harness.errors import WorldError
from harness.graph.effects import MCPEndpoint
from harness.recording.mcp.proxy import MCPRecorder
from harness.time.paced import PacedTimeLoop
from harness.world.mcp.tools import MCPFailure, MCPSession
from tests.recording.mcp.sessions import (
    REPORT,
    now,
    outcome,
    recording,
    replaying,
)


def test_a_request_that_was_given_up_is_given_up_at_the_same_time_again() -> None:
    async def use(session: MCPSession) -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await session.call_tool("wait", {"seconds": 60})
        return now()

    exchanges, recorded = recording(use)
    call = next(e for e in exchanges if e.sent.get("params", {}).get("name") == "wait")
    assert call.received == ()
    assert replaying(exchanges, use)[1] == recorded


def test_the_time_limit_of_an_endpoint_is_in_virtual_time(day: Any) -> None:
    async def use(session: MCPSession) -> Any:
        return now(), await outcome(REPORT(session))

    unanswered = replace(day[-1], received=())
    _, (began, (failure, ended)) = replaying([*day[:-1], unanswered], use, read_timeout_s=3000)
    assert failure == ("the MCP server did not answer within 3000 s", None)
    assert ended - began == pytest.approx(3000)


def test_a_server_that_dies_fails_the_call_and_the_later_ones_when_it_is_replayed_too() -> None:
    async def use(session: MCPSession) -> list[Any]:
        return [await outcome(session.call_tool(tool, {})) for tool in ("fail", "die", "fail")]

    exchanges, recorded = recording(use)
    assert [type(first) for first, _ in recorded[1:]] == [tuple, tuple]
    assert "closed" in recorded[1][0][0]
    assert replaying(exchanges, use)[1] == recorded


def test_a_server_that_cannot_be_started_cannot_be_when_it_is_replayed() -> None:
    async def use(_session: MCPSession) -> None:
        pytest.fail("it is not there")

    endpoint = MCPEndpoint("harbour", "stdio", command="/no/such/server")
    recorder = MCPRecorder(server="harbour")

    async def main() -> None:
        async with recorder.session(endpoint, replays=False, sends=True):
            pytest.fail("it is not there")

    with asyncio.Runner(loop_factory=PacedTimeLoop) as runner, pytest.raises(MCPFailure) as recorded:
        runner.run(main())
    with pytest.raises(MCPFailure) as replayed:
        replaying(recorder.exchanges(), use)
    assert str(replayed.value) == str(recorded.value)
    assert "cannot connect to /no/such/server: " in str(replayed.value)


@pytest.mark.parametrize("transport", ["stdio", "sse", "streamable_http"])
def test_giving_up_on_a_server_while_it_is_connected_to_leaves_nothing_behind(transport: Any) -> None:
    async def main() -> int:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"
            deaf = ("-c", "import sys; sys.stdin.read()")
            endpoint = MCPEndpoint("harbour", transport, url=url, command=sys.executable, args=deaf)
            with pytest.raises(TimeoutError):
                async with (
                    asyncio.timeout(0.3),
                    MCPRecorder(server="harbour").session(endpoint, replays=False, sends=True),
                ):
                    pytest.fail("a server that says nothing is not connected")
        return len(asyncio.all_tasks())

    with asyncio.Runner(loop_factory=PacedTimeLoop) as runner:
        assert runner.run(main()) == 1


MUTUAL = MCPEndpoint("harbour", "streamable_http", url="https://127.0.0.1:1/mcp", client_certificate=True)


def test_a_server_that_wants_a_client_certificate_is_not_recorded_but_replayed(day: Any) -> None:
    with pytest.raises(WorldError, match=r"'harbour' cannot be real: it wants a client certificate \(mTLS\)"):
        recording(REPORT, MUTUAL)
    assert replaying(day, REPORT, client_certificate=True)[1].structured == {"wind": 3}
