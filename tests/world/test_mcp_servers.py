"""The MCP servers of a world: connected once, on first use, by any task."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from harness.errors import UnscriptedCall, WorldError
from harness.graph.effects import MCPCall, MCPEndpoint
from harness.time.clock import VirtualTimeLoop
from harness.world.mcp.tools import MCPFailure
from harness.world.scripted import ScriptedWorld
from tests import forked
from tests.world.stubs import world_spec

T = TypeVar("T")

SERVER = Path(__file__).with_name("prepared_server.py")
WEATHER = MCPEndpoint("weather", "stdio")


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main())


def now() -> float:
    return asyncio.get_running_loop().time()


def tool(name: str, says: str) -> Any:
    return {"name": name, "stubs": [{"return": says}]}


def scripted(*tools: Any, **more: Any) -> ScriptedWorld:
    return ScriptedWorld(world_spec(mcp={"weather": {"tools": [*tools], **more}}))


def really() -> ScriptedWorld:
    return ScriptedWorld(world_spec(mcp={"weather": "real"}))


async def ask(
    world: ScriptedWorld, name: str = "report", endpoint: MCPEndpoint = WEATHER, **more: Any
) -> str:
    """Return the text that a tool answers."""
    answer = await world.answer(MCPCall(name=name, endpoint=endpoint, **more), {})
    if answer.error is not None:
        raise answer.error
    return str(answer.value.content[0]["text"])


def child(code: str, **more: Any) -> MCPEndpoint:
    """Return a server that is a child process running this code."""
    return MCPEndpoint("weather", "stdio", command=sys.executable, args=("-c", code), **more)


def weather_server(before: str = "", **more: Any) -> MCPEndpoint:
    """Return a real server that runs some code first."""
    program, *args = forked.command(SERVER, before)
    return MCPEndpoint("weather", "stdio", command=program, args=tuple(args), **more)


def noting_starts(log: Path) -> str:
    log.touch()
    return (
        f"log = open({str(log)!r}, 'a+'); log.seek(0); starts = len(log.read());"
        "print(end='x', file=log, flush=True);"
    )


# ------------------------------------------------------------ on first use


def test_the_first_call_of_any_task_connects_to_a_server() -> None:
    async def main() -> tuple[list[str], int]:
        world = scripted(tool("report", "calm"), tool("depth", "12"))
        answers = await asyncio.gather(ask(world, "report"), ask(world, "depth"))
        await asyncio.create_task(world.close())
        return list(answers), len(asyncio.all_tasks())

    assert run(main) == (["calm", "12"], 1)


def test_a_session_outlives_the_task_that_opened_it() -> None:
    async def main() -> list[str]:
        world = scripted(tool("report", "calm"))
        opener = asyncio.create_task(ask(world))
        first = await opener
        second = await ask(world)
        await world.close()
        return [first, second]

    assert run(main) == ["calm", "calm"]


def test_concurrent_first_calls_start_one_real_server_in_no_virtual_time(tmp_path: Path) -> None:
    log = tmp_path / "starts"

    async def main() -> tuple[Any, float]:
        world, endpoint = really(), weather_server(noting_starts(log))
        calls = [ask(world, endpoint=endpoint, args={"place": place}) for place in ("Oslo", "Vardø")]
        async with asyncio.timeout(1):
            answers = await asyncio.gather(*calls)
        elapsed = now()
        await asyncio.create_task(world.close())
        assert len(asyncio.all_tasks()) == 1
        return answers, elapsed

    assert run(main) == (["Oslo: calm, no season", "Vardø: calm, no season"], 0)
    assert log.read_text() == "x"


def test_a_tool_of_a_later_turn_is_added_to_the_others() -> None:
    async def main() -> list[str]:
        world = scripted(tool("report", "calm"))
        world.put_in_front(world_spec(mcp={"weather": {"tools": [tool("depth", "12")]}}))
        names = [tool.name for tool in await world.mcp_tools(WEATHER)]
        await world.close()
        return names

    assert run(main) == ["report", "depth"]


# ------------------------------------------------------------ when it cannot be opened


def test_a_server_that_failed_to_start_is_started_again_on_the_next_call(tmp_path: Path) -> None:
    endpoint = weather_server(noting_starts(tmp_path / "starts") + "starts or sys.exit(1)", cwd=str(tmp_path))

    async def main() -> str:
        world = really()
        with pytest.raises(MCPFailure, match="cannot connect to"):
            await ask(world, "folder", endpoint)
        assert len(asyncio.all_tasks()) == 1
        try:
            return await ask(world, "folder", endpoint)
        finally:
            await world.close()

    assert run(main) == str(tmp_path)


@contextmanager
def gives_up_at(fifo: Path, asking: asyncio.Task[Any]) -> Iterator[None]:
    """Cancel `asking` within the context as soon as a server opens `fifo`."""
    loop, end = asyncio.get_running_loop(), os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)

    def abort() -> None:
        loop.remove_reader(end)
        asking.cancel()

    loop.add_reader(end, abort)
    try:
        yield
    finally:
        os.close(end)


@pytest.fixture
def started(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "started")
    return tmp_path / "started"


def telling(fifo: Path) -> str:
    return f"open({str(fifo)!r}, 'w').close();"


def test_a_concurrent_caller_is_answered_although_the_first_is_cancelled(started: Any) -> None:
    async def main() -> list[type]:
        world, endpoint = really(), weather_server(telling(started))
        gives_up, stays = (asyncio.create_task(ask(world, "folder", endpoint)) for _ in range(2))
        with gives_up_at(started, gives_up):
            outcome = await asyncio.gather(gives_up, stays, return_exceptions=True)
        await world.close()
        assert len(asyncio.all_tasks()) == 1
        return [type(found) for found in outcome]

    assert run(main) == [asyncio.CancelledError, str]


DEAF = "import time; time.sleep(1000)"  # a server that neither answers nor ends when it is hung up on


@pytest.fixture
def _soon_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the SDK wait 0.1 seconds, instead of 2, for a server that does not exit."""
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.1)


@pytest.mark.usefixtures("_soon_ended")
def test_a_real_server_that_does_not_answer_in_time_fails_and_is_ended() -> None:
    async def main() -> int:
        world = really()
        with pytest.raises(MCPFailure, match=r"cannot connect to .*did not answer within 0\.1 s"):
            await ask(world, endpoint=child(DEAF, read_timeout_s=0.1))
        await world.close()
        return len(asyncio.all_tasks())

    assert run(main) == 1


@pytest.mark.usefixtures("_soon_ended")
def test_giving_up_on_a_real_server_while_it_is_opened_ends_it(started: Any) -> None:
    async def main() -> int:
        asking = asyncio.create_task(ask(really(), endpoint=child(telling(started) + DEAF)))
        with gives_up_at(started, asking), pytest.raises(asyncio.CancelledError):
            await asking
        return len(asyncio.all_tasks())

    assert run(main) == 1


MUTUAL = MCPEndpoint("weather", "streamable_http", url="https://127.0.0.1:1/mcp", client_certificate=True)


@pytest.mark.parametrize(
    "asked", [lambda world: ask(world, endpoint=MUTUAL), lambda world: world.mcp_tools(MUTUAL)]
)
def test_a_real_server_that_wants_a_client_certificate_is_not_connected_to_without(asked: Any) -> None:
    with pytest.raises(WorldError, match=r"'weather' cannot be real: it wants a client certificate \(mTLS\)"):
        run(lambda: asked(really()))


def test_a_scripted_server_wants_no_client_certificate() -> None:
    async def main() -> str:
        world = scripted(tool("report", "calm"))
        try:
            return await ask(world, endpoint=MUTUAL)
        finally:
            await world.close()

    assert run(main) == "calm"


def test_a_scripted_server_that_cannot_be_reached_fails_every_call() -> None:
    async def main() -> str:
        with pytest.raises(ConnectionError) as raised:
            await ask(
                scripted(tool("report", "calm"), error={"kind": "connection", "message": "host is down"})
            )
        return str(raised.value)

    assert run(main) == "host is down"


def test_nothing_is_opened_after_the_end() -> None:
    async def main() -> int:
        world = scripted(tool("report", "calm"))
        await world.close()
        with pytest.raises(MCPFailure, match="'weather' is asked after the end of the run"):
            await ask(world)
        return len(asyncio.all_tasks())

    assert run(main) == 1


# ------------------------------------------------------------ nobody answers


def test_a_call_of_an_unknown_server_is_unscripted_and_has_a_hint() -> None:
    async def main() -> None:
        call = MCPCall(name="report", endpoint=replace(WEATHER, id="wether"), hint="or give it a stub")
        await scripted().answer(call, {})

    with pytest.raises(UnscriptedCall) as raised:
        run(main)
    text = str(raised.value)
    assert "MCP tool 'report' of server 'wether'" in text
    assert "add `wether` under `mcp:` (did you mean 'weather'?), or give it a stub" in text


@pytest.mark.parametrize(
    ("tools", "hint"),
    [
        ([tool("report", "calm"), tool("depth", "12")], "did you mean 'report'?"),
        ([tool("depth", "12"), tool("wind", "3")], "known: depth, wind"),
        ([], "it has no tools"),
    ],
)
def test_a_tool_the_server_does_not_have_is_the_server_s_own_error(tools: Any, hint: Any) -> None:
    async def main() -> str:
        world = scripted(*tools)
        with pytest.raises(MCPFailure) as raised:
            await ask(world, "reports")
        await world.close()
        return str(raised.value)

    assert run(main) == f"Unknown tool: reports of MCP server 'weather' ({hint})"
