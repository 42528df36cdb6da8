"""Real MCP servers are recorded once, message by message, and replayed without them."""

import asyncio
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CassetteBroken, CassetteMismatch, CassetteMissing, WorldError
from harness.graph.effects import MCPCall, MCPEndpoint
from harness.interception.real_effects import not_intercepted
from harness.recording.interactions import Exchange
from harness.recording.mcp.recorder import MCPRecorder
from harness.recording.mcp.replay import fitted
from harness.time.clock import VirtualTimeLoop
from harness.time.paced import PacedTimeLoop
from harness.world.mcp.servers import MCPServers
from harness.world.mcp.tools import MCPFailure, MCPSession
from harness.world.network import closed_network
from harness.world.spec import MCPServerSpec, MCPToolSpec, Stub, WorldSpec
from tests import forked

SERVER = Path(__file__).with_name("servers") / "harbour.py"
AGAIN = "record it again: harness run harbour.yaml --record=all"
Use = Callable[[MCPSession], Awaitable[Any]]


def harbour(**more: Any) -> MCPEndpoint:
    """The server as a child process."""
    program, *args = forked.command(SERVER)
    return MCPEndpoint("harbour", "stdio", command=program, args=tuple(args), **more)


def recording(use: Use, endpoint: MCPEndpoint | None = None) -> tuple[tuple[Exchange, ...], Any]:
    """What is recorded while a session with the real server is used, and what the use gave."""
    recorder = MCPRecorder(server="harbour", again=AGAIN)

    async def main() -> Any:
        async with recorder.recording(endpoint or harbour()) as session:
            return await use(session)

    with asyncio.Runner(loop_factory=PacedTimeLoop) as runner:
        gave = runner.run(main())
    return recorder.exchanges(), gave


def replaying(
    exchanges: Sequence[Exchange], use: Use, *, turn: int = 1, **more: Any
) -> tuple[MCPRecorder, Any]:
    """The same without the server: nothing is there to be started or connected to."""
    recorder = MCPRecorder(exchanges, server="harbour", again=AGAIN)
    recorder.turn = turn

    async def main() -> Any:
        async with recorder.replaying(
            MCPEndpoint("harbour", "stdio", command="/no/such/server", **more)
        ) as session:
            return await use(session)

    with closed_network(), asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return recorder, runner.run(main())


def now() -> float:
    return asyncio.get_running_loop().time()


async def outcome(call: Awaitable[Any]) -> Any:
    """What came of a call, and when."""
    try:
        return await call, now()
    except MCPFailure as failure:
        return (str(failure), failure.code), now()


async def all_kinds(session: MCPSession) -> list[Any]:
    return [
        await outcome(session.list_tools()),
        await outcome(session.call_tool("report", {"place": "Vardø", "when": "today"})),
        await outcome(session.call_tool("fail", {})),
        await outcome(session.call_tool("refuse", {})),
        await outcome(session.call_tool("wait", {"seconds": 0.05})),
    ]


@contextmanager
def over_http() -> Iterator[MCPEndpoint]:
    """The server over streamable HTTP on loopback, in a thread of its own."""
    import uvicorn
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    sys.path.insert(0, str(SERVER.parent))
    try:
        make = import_module("harbour").harbour
    finally:
        sys.path.remove(str(SERVER.parent))
    manager = StreamableHTTPSessionManager(make())

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await manager.handle_request(scope, receive, send)

    config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none")
    listener, server = socket.create_server(("127.0.0.1", 0)), uvicorn.Server(config)

    async def serve() -> None:
        async with manager.run():
            await server.serve(sockets=[listener])

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        yield MCPEndpoint(
            "harbour", "streamable_http", url=f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        )
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def over_stdio() -> Iterator[MCPEndpoint]:
    yield harbour()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


# ------------------------------------------------------------ the same without the server


@pytest.mark.parametrize("reached", [over_stdio, over_http])
def test_what_was_recorded_is_replayed_with_the_same_results_at_the_same_times(reached: Any) -> None:
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
    assert fitted(exchange, asked) == [
        {"method": "notifications/progress", "params": {"progressToken": "new", "progress": 1}},
        {"id": 2, "result": {"content": []}},
    ]


def test_what_the_server_asks_the_client_meanwhile_is_asked_and_answered_again() -> None:
    async def use(session: MCPSession) -> Any:
        return await session.call_tool("ask", {})

    exchanges, recorded = recording(use)
    call = next(e for e in exchanges if e.sent.get("method") == "tools/call")
    assert [message.get("method") for message in call.received] == ["ping", None]
    assert any("result" in e.sent for e in exchanges)
    recorder, replayed = replaying(exchanges, use)
    assert replayed == recorded
    assert sum("result" in e.sent for e in recorder.exchanges()) == 1


@pytest.fixture(scope="module")
def day() -> tuple[Exchange, ...]:
    """A recorded session: a listing, and a report of Vardø."""

    async def use(session: MCPSession) -> None:
        await session.list_tools()
        await session.call_tool("report", {"place": "Vardø", "when": "today or tomorrow", "knots": 2})

    return recording(use)[0]


def report(**args: Any) -> Use:
    return lambda session: session.call_tool("report", args)


REPORT = report(place="Vardø", when="today or tomorrow", knots=2)


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


def test_a_listing_may_be_asked_for_more_often_than_it_was(day: Any) -> None:
    async def use(session: MCPSession) -> bool:
        return await session.list_tools() == await session.list_tools()

    assert replaying(day, use)[1]


# ------------------------------------------------------------ something else is asked


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


def test_the_nearest_is_of_the_same_tool_and_says_where_it_stands(day: Any) -> None:
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


def test_what_was_recorded_in_another_turn_does_not_answer(day: Any) -> None:
    assert "it was recorded in turn 1" in refused(day, REPORT, turn=2)


def test_what_belongs_to_no_turn_answers_in_any(day: Any) -> None:
    _, replayed = replaying([replace(e, turn=None) for e in day], REPORT, turn=5)
    assert replayed.structured == {"wind": 3}


def test_a_mismatch_leaves_the_session_usable(day: Any) -> None:
    async def use(session: MCPSession) -> Any:
        with pytest.raises(CassetteMismatch):
            await session.call_tool("fail", {})
        return await REPORT(session)

    assert replaying(day, use)[1].structured == {"wind": 3}


def test_a_request_of_a_kind_that_was_never_recorded_says_what_was(day: Any) -> None:
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


# ------------------------------------------------------------ without an answer


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


def test_an_endpoint_s_time_limit_goes_by_the_virtual_clock(day: Any) -> None:
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
        async with recorder.recording(endpoint):
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
                async with asyncio.timeout(0.3), MCPRecorder(server="harbour").recording(endpoint):
                    pytest.fail("a server that says nothing is not connected")
        return len(asyncio.all_tasks())

    with asyncio.Runner(loop_factory=PacedTimeLoop) as runner:
        assert runner.run(main()) == 1


MUTUAL = MCPEndpoint("harbour", "streamable_http", url="https://127.0.0.1:1/mcp", client_certificate=True)


def test_a_server_that_wants_a_client_certificate_is_not_recorded_but_replayed(day: Any) -> None:
    with pytest.raises(WorldError, match=r"'harbour' cannot be real: it wants a client certificate \(mTLS\)"):
        recording(REPORT, MUTUAL)
    assert replaying(day, REPORT, client_certificate=True)[1].structured == {"wind": 3}


# ------------------------------------------------------------ what is new


def extending(
    exchanges: Sequence[Exchange], use: Use, endpoint: MCPEndpoint
) -> tuple[tuple[Exchange, ...], Any]:
    recorder = MCPRecorder(exchanges, server="harbour", again=AGAIN)

    async def main() -> Any:
        async with recorder.extending(endpoint) as session:
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


# ------------------------------------------------------------ in a world


def test_http_that_is_mcp_s_own_can_be_told_from_other_http(monkeypatch: pytest.MonkeyPatch) -> None:
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
    """Of a backend only the sessions: one with the harbour, from its recording, and with nobody else."""

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self.recorder = MCPRecorder(exchanges, server="harbour")

    def session(self, endpoint: MCPEndpoint) -> Any:
        return self.recorder.replaying(endpoint) if endpoint.id == "harbour" else None


@pytest.mark.parametrize("said", [{}, {"harbour": MCPServerSpec(real=True)}])
def test_a_server_that_no_stub_stands_for_is_answered_by_the_backend(day: Any, said: Any) -> None:
    async def main() -> tuple[list[str], Any]:
        backend: Any = Replayed(day)
        servers = MCPServers(backend)
        servers.put_in_front(WorldSpec(mcp=said))
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
        stub = Stub(times="any", answer={"return": "calm"})
        harbour = MCPServerSpec(tools=(MCPToolSpec("report", stubs=(stub,)),))
        servers.put_in_front(WorldSpec(mcp={"harbour": harbour}))
        answer = await servers.answer(MCPCall(name="report", endpoint=MCPEndpoint("harbour", "stdio")), {})
        assert answer is not None
        await servers.close()
        return str(answer.value.content[0]["text"])

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(main()) == "calm"
