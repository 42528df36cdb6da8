"""Real MCP servers are recorded once, message by message, and replayed without them."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from harness.recording.interactions import Exchange
from harness.recording.mcp.replay import adapted_answer
from harness.world.mcp.tools import MCPSession
from tests.recording.mcp.sessions import (
    REPORT,
    all_kinds,
    now,
    outcome,
    over_http,
    over_stdio,
    recording,
    replaying,
    report,
)


@pytest.mark.parametrize("reached", [over_stdio, over_http])
def test_sessions_are_replayed_with_the_same_results_at_the_same_times(reached: Any) -> None:
    with reached() as endpoint:
        exchanges, recorded = recording(all_kinds, endpoint)
    recorder, replayed = replaying(exchanges, all_kinds)
    assert replayed == recorded
    assert recorder.unused() == []
    (_, listed_at), (reported, _), (failed, _), (refused, failed_at), (_, waited_until) = replayed
    assert listed_at > 0
    assert reported.structured == {"wind": 3}
    assert failed.is_error
    assert refused == ("the harbour is closed", -32050)
    assert waited_until - failed_at >= 0.05


def test_calls_side_by_side_cost_the_longest_of_them() -> None:
    async def use(session: MCPSession) -> list[Any]:
        began = now()
        waits = (session.call_tool("wait", {"seconds": seconds}) for seconds in (0.2, 0.21, 0.19))
        outcomes = await asyncio.gather(*map(outcome, waits), asyncio.sleep(0.1))
        return [now() - began, *outcomes]

    exchanges, recorded = recording(use)
    durations = [e.duration_s for e in exchanges if e.sent.get("params", {}).get("name") == "wait"]
    assert len(durations) == 3
    assert min(durations) > 0.1
    assert recorded[0] < sum(durations)
    assert replaying(exchanges, use)[1] == recorded


def test_exchanges_stand_in_the_order_they_were_sent_in_each_with_all_that_came_before_its_answer() -> None:
    async def use(session: Any) -> Any:  # the session over the SDK, which takes `meta` too
        slow = asyncio.create_task(session.call_tool("wait", {"seconds": 0.1}))
        await asyncio.sleep(0)
        await session.call_tool("report", {"place": "Oslo"}, meta={"progressToken": "p"})
        return await slow

    exchanges, _ = recording(use)
    told = [(e.sent["method"], e.sent.get("params", {}).get("name")) for e in exchanges]
    assert told[:4] == [
        ("initialize", None),
        ("notifications/initialized", None),
        ("tools/call", "wait"),
        ("tools/call", "report"),
    ]
    report = exchanges[3]
    methods = [message.get("method") for message in report.received]
    assert methods == ["notifications/progress", "notifications/message", None]
    assert report.received[0]["params"]["progressToken"] == "p"
    assert report.received[-1]["result"]["structuredContent"] == {"wind": 3}
    assert exchanges[2].duration_s >= 0.1
    assert report.duration_s > 0
    assert {e.turn for e in exchanges} == {1}


def test_ids_and_progress_tokens_are_those_of_the_request_that_is_answered() -> None:
    sent = {"id": 7, "method": "tools/call", "params": {"name": "report", "_meta": {"progressToken": "old"}}}
    progress = {"method": "notifications/progress", "params": {"progressToken": "old", "progress": 1}}
    exchange = Exchange(sent, [progress, {"id": 7, "result": {"content": []}}])
    asked = sent | {"id": 2, "params": {"name": "report", "_meta": {"progressToken": "new"}}}
    assert adapted_answer(exchange, asked) == [
        {"method": "notifications/progress", "params": {"progressToken": "new", "progress": 1}},
        {"id": 2, "result": {"content": []}},
    ]


def test_requests_of_the_server_to_the_client_are_replayed() -> None:
    async def use(session: MCPSession) -> Any:
        return await session.call_tool("ask", {})

    exchanges, recorded = recording(use)
    call = next(e for e in exchanges if e.sent.get("method") == "tools/call")
    assert [message.get("method") for message in call.received] == ["ping", None]
    assert any("result" in e.sent for e in exchanges)
    recorder, replayed = replaying(exchanges, use)
    assert replayed == recorded
    assert sum("result" in e.sent for e in recorder.exchanges()) == 1


def test_the_order_of_keys_and_the_spelling_of_numbers_do_not_matter(day: Any) -> None:
    _, replayed = replaying(day, report(knots=2.0, when="today or tomorrow", place="Vardø"))
    assert replayed.structured == {"wind": 3}


def test_a_version_of_the_protocol_that_the_client_does_not_speak_is_passed_over(day: Any) -> None:
    received = day[0].received
    old = replace(
        day[0], received=[{**received[0], "result": received[0]["result"] | {"protocolVersion": "1999"}}]
    )
    _, replayed = replaying([old, *day[1:]], REPORT)
    assert replayed.structured == {"wind": 3}


def test_a_list_of_tools_may_be_requested_more_often_than_recorded(day: Any) -> None:
    async def use(session: MCPSession) -> bool:
        return await session.list_tools() == await session.list_tools()

    assert replaying(day, use)[1]
