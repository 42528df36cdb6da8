"""Requests to an MCP server without a recorded answer are refused, with the nearest recorded request."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.errors import CassetteBroken, CassetteMismatch, CassetteMissing
from harness.recording.interactions import Exchange
from harness.world.mcp.tools import MCPSession
from tests.recording.mcp.sessions import AGAIN, REPORT, Use, replaying, report


def refused(exchanges: Sequence[Exchange], use: Use, **more: Any) -> str:
    with pytest.raises(CassetteMismatch) as raised:
        replaying(exchanges, use, **more)
    return str(raised.value)


def test_a_changed_argument_is_a_mismatch_that_names_the_tool_and_the_word(day: Any) -> None:
    text = refused(day, report(place="Vardø", when="today or yesterday", knots=2))
    assert text == (
        "nothing recorded of MCP server 'harbour' answers tools/call of 'report' in turn 1\n"
        "  nearest recorded: tools/call of 'report'\n"
        '    - arguments.when: "today or [-tomorrow-]{+yesterday+}"\n'
        f"  {AGAIN}"
    )


def test_the_nearest_request_is_of_the_same_tool_and_has_a_location(day: Any) -> None:
    other = replace(
        day[-1], sent={**day[-1].sent, "params": {"name": "reports", "arguments": {"place": "Oslo"}}}
    )
    text = refused([*(replace(e, line=12) for e in day), other], report(place="Oslo"))
    assert "nearest recorded: tools/call of 'report', line 12" in text


def test_a_call_that_was_recorded_once_answers_once(day: Any) -> None:
    async def twice(session: MCPSession) -> None:
        await REPORT(session)
        await REPORT(session)

    assert "it was recorded once, and is asked once more" in refused(day, twice)


def test_exchanges_of_another_turn_do_not_answer(day: Any) -> None:
    assert "it was recorded in turn 1" in refused(day, REPORT, turn=2)


def test_exchanges_without_a_turn_answer_in_any(day: Any) -> None:
    _, replayed = replaying([replace(e, turn=None) for e in day], REPORT, turn=5)
    assert replayed.structured == {"wind": 3}


def test_a_mismatch_leaves_the_session_usable(day: Any) -> None:
    async def use(session: MCPSession) -> Any:
        with pytest.raises(CassetteMismatch):
            await session.call_tool("fail", {})
        return await REPORT(session)

    assert replaying(day, use)[1].structured == {"wind": 3}


def test_the_error_for_an_unrecorded_method_lists_the_recorded_ones(day: Any) -> None:
    unlisted = [e for e in day if e.sent["method"] != "tools/list"]
    text = refused(unlisted, lambda session: session.list_tools())
    assert "no tools/list was recorded, but initialize, tools/call" in text


def test_a_server_of_which_nothing_was_recorded_is_missing() -> None:
    with pytest.raises(
        CassetteMissing, match=r"nothing was recorded of MCP server 'harbour'\n  record it again"
    ):
        replaying([], REPORT)


def test_a_recording_that_is_no_json_rpc_is_broken(day: Any) -> None:
    broken = replace(day[-1], received=[{"id": "x", "result": 3}])
    with pytest.raises(CassetteBroken, match="not JSON-RPC messages"):
        replaying([*day[:-1], broken], REPORT)


def test_requests_that_were_not_made_again_are_listed(day: Any) -> None:
    recorder, _ = replaying(day, lambda session: session.list_tools())
    assert [e.sent["params"]["name"] for e in recorder.unused()] == ["report"]
