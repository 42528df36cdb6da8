"""Sessions with real servers: a child process, streamable HTTP and SSE on loopback, and one in memory.

Run as a program, this file is the stdio server of its own tests.
"""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from harness.graph.effects import MCPEndpoint
from harness.world.mcp.connect import connect, connect_memory
from harness.world.mcp.fake import build_server
from harness.world.mcp.session import SDKSession
from harness.world.mcp.tools import INVALID_PARAMS, MCPFailure, MCPResult, MCPSession, MCPTool

ROOT = Path(__file__).parents[2]
TOOLS = [
    MCPTool("report", "The weather", {"type": "object", "properties": {"place": {"type": "string"}}}),
    MCPTool("fail"),
    MCPTool("die"),
    MCPTool("folder"),
    MCPTool("wait"),
]


async def answer(name: str, args: dict[str, Any]) -> MCPResult:
    if name == "fail":
        raise RuntimeError("the mast broke")
    if name == "die":
        os._exit(3)
    if name == "folder":
        return MCPResult([{"type": "text", "text": os.getcwd()}])
    if name == "wait":
        await asyncio.Event().wait()
    text = f"{args['place']}: calm, {os.environ.get('SEASON', 'no season')}"
    return MCPResult([{"type": "text", "text": text}], {"place": args["place"], "wind": None})


def weather_server() -> Any:
    return build_server("weather", TOOLS, answer)


async def serve_stdio() -> None:
    from mcp.server.stdio import stdio_server

    server = weather_server()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


# the transports


@contextlib.asynccontextmanager
async def http_server(app: Any) -> AsyncIterator[str]:
    """Serve an ASGI app on loopback, and return its address, which accepts connections immediately."""
    import uvicorn

    from harness.serve.connections import ImmediateServer

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none")
    server = ImmediateServer(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.end()
        await serving


KEY = {"Authorization": "Bearer abc"}


def stdio_endpoint(command: str, **more: Any) -> MCPEndpoint:
    return MCPEndpoint("weather", "stdio", command=command, **more)


def http_endpoint(url: str, **more: Any) -> MCPEndpoint:
    return MCPEndpoint("weather", "streamable_http", url=url, **more)


def sse_endpoint(url: str, **more: Any) -> MCPEndpoint:
    return MCPEndpoint("weather", "sse", url=url, **more)


Seen = list[dict[str, str]]


def noting(app: Any, seen: Seen) -> Any:
    """Return the app, which adds the headers of every request to `seen`."""

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        seen.append({key.decode(): value.decode() for key, value in scope["headers"]})
        await app(scope, receive, send)

    return noted


@contextlib.asynccontextmanager
async def over_http(seen: Seen, **more: Any) -> AsyncIterator[SDKSession]:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    manager = StreamableHTTPSessionManager(weather_server())
    async with (
        manager.run(),
        http_server(noting(manager.handle_request, seen)) as address,
        connect(http_endpoint(f"{address}/mcp", headers=KEY, **more)) as session,
    ):
        yield session


@contextlib.asynccontextmanager
async def over_sse(seen: Seen, **more: Any) -> AsyncIterator[SDKSession]:
    from mcp.server.sse import SseServerTransport

    transport, server = SseServerTransport("/messages/"), weather_server()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] == "POST":
            await transport.handle_post_message(scope, receive, send)
            return
        async with transport.connect_sse(scope, receive, send) as (read, write):
            await server.run(read, write, server.create_initialization_options())

    async with (
        http_server(noting(app, seen)) as address,
        connect(sse_endpoint(f"{address}/sse", headers=KEY, **more)) as session,
    ):
        yield session


def over_stdio() -> Any:
    from tests import forked  # not known to the program that this file is

    program, *args = forked.command(__file__)
    return connect(stdio_endpoint(program, args=args, env={"SEASON": "winter"}))


def in_memory() -> Any:
    return connect_memory(weather_server())


CONNECTIONS: dict[str, Callable[[], Any]] = {
    "memory": in_memory,
    "stdio": over_stdio,
    "http": lambda: over_http([]),
    "sse": lambda: over_sse([]),
}
every_transport = pytest.mark.parametrize("connect", CONNECTIONS.values(), ids=CONNECTIONS)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


async def used(connect: Callable[[], Any], use: Callable[[MCPSession], Awaitable[Any]]) -> Any:
    async with connect() as session:
        return await use(session)


# every transport is used alike


@every_transport
def test_a_session_lists_and_calls_over_every_transport(connect: Any) -> None:
    async def main() -> None:
        async with connect() as session:
            assert await session.list_tools() == TOOLS
            result = await session.call_tool("report", {"place": "Vardø"})
            assert result.content[0]["text"].startswith("Vardø: calm")
            assert result.structured == {"place": "Vardø", "wind": None}
            assert not result.is_error

    asyncio.run(main())


@every_transport
def test_errors_look_the_same_over_every_transport(connect: Any) -> None:
    async def main() -> None:
        async with connect() as session:
            broken = await session.call_tool("fail", {})
            assert broken == MCPResult([{"type": "text", "text": "the mast broke"}], None, True)
            refused = await session.call_tool("report", {"place": 3})
            assert refused.is_error
            with pytest.raises(MCPFailure, match="Unknown tool: reports") as raised:
                await session.call_tool("reports", {})
            assert "MCP server 'weather' (did you mean 'report'?)" in str(raised.value)
            assert raised.value.code == INVALID_PARAMS

    asyncio.run(main())


@every_transport
def test_concurrent_calls_each_get_their_own_answer(connect: Any) -> None:
    async def main() -> list[str]:
        async with connect() as session:
            places = ["Vardø", "Oslo", "Bergen"]
            results = await asyncio.gather(*(session.call_tool("report", {"place": p}) for p in places))
            return [result.structured["place"] for result in results]

    assert asyncio.run(main()) == ["Vardø", "Oslo", "Bergen"]


@every_transport
def test_closing_leaves_no_tasks_over_any_transport(connect: Any) -> None:
    async def main() -> list[str]:
        await used(connect, lambda session: session.list_tools())
        running: list[Any] = [task.get_coro() for task in asyncio.all_tasks()]
        return sorted(coroutine.__qualname__.rpartition(".")[2] for coroutine in running)

    # sse_starlette keeps one watcher a loop: it belongs to the server of these tests, not to the session.
    assert [name for name in asyncio.run(main()) if name != "_shutdown_watcher"] == ["main"]


# what is particular to one


def test_a_child_process_gets_the_environment_of_its_manifest() -> None:
    result = asyncio.run(used(over_stdio, lambda session: session.call_tool("report", {"place": "Oslo"})))
    assert result.content[0]["text"] == "Oslo: calm, winter"


def test_a_child_process_that_dies_fails_the_call_and_the_later_ones() -> None:
    async def main() -> None:
        async with over_stdio() as session:
            for tool in ("die", "fail"):
                with pytest.raises(MCPFailure, match=r"(?i)connection.*closed"):
                    await session.call_tool(tool, {})

    asyncio.run(main())


@pytest.mark.parametrize("connect", [over_http, over_sse])
def test_headers_of_the_manifest_are_sent_with_every_request(connect: Any) -> None:
    seen: Seen = []
    asyncio.run(used(lambda: connect(seen), lambda session: session.list_tools()))
    assert len(seen) > 2
    assert {headers.get("authorization") for headers in seen} == {"Bearer abc"}


@pytest.mark.parametrize("connect", [over_http, over_sse])
def test_an_answer_that_takes_too_long_fails_the_call_and_not_the_session(connect: Any) -> None:
    async def main() -> Any:
        async with connect([], read_timeout_s=1.0) as session:
            with pytest.raises(MCPFailure, match="did not answer within 1 s"):
                await session.call_tool("wait", {})
            return await session.list_tools()

    assert asyncio.run(main()) == TOOLS


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(
    ("endpoint", "where"),
    [
        (lambda: stdio_endpoint("/no/such/server"), "/no/such/server"),
        (lambda: http_endpoint(f"http://127.0.0.1:{unused_port()}/mcp"), "http://127.0.0.1"),
        (lambda: sse_endpoint(f"http://127.0.0.1:{unused_port()}/sse"), "http://127.0.0.1"),
    ],
    ids=["stdio", "http", "sse"],
)
def test_the_error_for_an_unreachable_server_has_address_and_reason(endpoint: Any, where: Any) -> None:
    async def main() -> int:
        with pytest.raises(MCPFailure, match=f"cannot connect to {where}.*: .+"):
            await used(lambda: connect(endpoint()), lambda session: session.list_tools())
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1


async def turned_away(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 403, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize("endpoint", [http_endpoint, sse_endpoint])
@pytest.mark.parametrize("answers", [True, False], ids=["refused", "unreachable"])
def test_errors_name_a_url_without_user_password_and_query(endpoint: Any, answers: Any) -> None:
    async def main() -> str:
        async with http_server(turned_away) as address:
            host = address.partition("//")[2] if answers else f"127.0.0.1:{unused_port()}"
            with pytest.raises(MCPFailure) as raised:
                await used(
                    lambda: connect(endpoint(f"http://amy:hidden@{host}/mcp?key=hidden&to='hidden'#hidden")),
                    lambda session: session.list_tools(),
                )
            assert f"http://{host}/mcp" in str(raised.value)
            return str(raised.value)

    told = asyncio.run(main())
    assert "hidden" not in told
    assert "amy" not in told


def test_a_server_over_sse_that_refuses_a_message_fails_the_call_and_the_later_ones() -> None:
    from mcp.server.sse import SseServerTransport

    transport, server, refuses = SseServerTransport("/messages/"), weather_server(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] == "POST" and refuses.is_set():
            await turned_away(scope, receive, send)
        elif scope["method"] == "POST":
            await transport.handle_post_message(scope, receive, send)
        else:
            async with transport.connect_sse(scope, receive, send) as (read, write):
                await server.run(read, write, server.create_initialization_options())

    async def main() -> None:
        async with http_server(app) as address, connect(sse_endpoint(f"{address}/sse")) as session:
            assert await session.list_tools() == TOOLS
            refuses.set()
            for tool in ("report", "fail"):
                with pytest.raises(MCPFailure, match=r"(?i)connection.*closed"):
                    await session.call_tool(tool, {"place": "Oslo"})

    asyncio.run(main())


def test_giving_up_while_connecting_leaves_nothing_behind() -> None:
    async def main() -> int:
        silent = connect(stdio_endpoint(sys.executable, args=["-c", "import sys; sys.stdin.read()"]))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2), silent:
                pytest.fail("a server that says nothing is not connected")
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1


def paged_server() -> Any:
    """Return a server of three tools, one a page, that works with either SDK."""
    from mcp import types
    from mcp.server.lowlevel import Server

    def page(params: Any) -> Any:
        here = int(params.cursor) if params is not None and params.cursor else 0
        listing = {"tools": [{"name": f"t{here}", "inputSchema": {"type": "object"}}]}
        return types.ListToolsResult.model_validate(
            listing | ({"nextCursor": str(here + 1)} if here < 2 else {})
        )

    if hasattr(Server, "add_request_handler"):

        async def on_list(_context: Any, params: Any) -> Any:
            return page(params)

        return Server("paged", version="1", on_list_tools=on_list)

    async def handler(request: Any) -> Any:
        result: Any = types.ServerResult
        return result(page(request.params))

    server: Any = Server("paged", version="1")  # of the SDK 1.x
    server.request_handlers[types.ListToolsRequest] = handler
    return server


def test_all_pages_of_tools_are_listed() -> None:
    tools = asyncio.run(used(lambda: connect_memory(paged_server()), lambda session: session.list_tools()))
    assert [tool.name for tool in tools] == ["t0", "t1", "t2"]


def test_importing_the_adapter_does_not_import_the_sdk() -> None:
    heavy = ["mcp", "anyio", "jsonschema", "pydantic"]
    imports = "import sys, harness.world.mcp.fake, harness.recording.mcp.proxy"
    code = f"{imports}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


if __name__ == "__main__":
    asyncio.run(serve_stdio())
