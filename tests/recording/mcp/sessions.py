"""Sessions with the MCP server `servers/harbour.py`, recorded and replayed."""

import asyncio
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from harness.graph.effects import MCPEndpoint
from harness.recording.interactions import Exchange
from harness.recording.mcp.proxy import MCPRecorder
from harness.time.clock import VirtualTimeLoop
from harness.time.paced import PacedTimeLoop
from harness.world.mcp.tools import MCPFailure, MCPSession
from harness.world.network import closed_network
from tests import forked

SERVER = Path(__file__).parents[1] / "servers" / "harbour.py"
AGAIN = "record it again: harness run harbour.yaml --record=all"
Use = Callable[[MCPSession], Awaitable[Any]]


def harbour(**more: Any) -> MCPEndpoint:
    """Return the endpoint of the server as a child process."""
    program, *args = forked.command(SERVER)
    return MCPEndpoint("harbour", "stdio", command=program, args=tuple(args), **more)


def recording(use: Use, endpoint: MCPEndpoint | None = None) -> tuple[tuple[Exchange, ...], Any]:
    """Record a session with the real server, and return the exchanges and the result of `use`."""
    recorder = MCPRecorder(server="harbour", hint=AGAIN)

    async def main() -> Any:
        async with recorder.session(endpoint or harbour(), replays=False, sends=True) as session:
            return await use(session)

    with asyncio.Runner(loop_factory=PacedTimeLoop) as runner:
        gave = runner.run(main())
    return recorder.exchanges(), gave


def replaying(
    exchanges: Sequence[Exchange], use: Use, *, turn: int = 1, **more: Any
) -> tuple[MCPRecorder, Any]:
    """Do the same by replay: there is no server to start or to connect to."""
    recorder = MCPRecorder(exchanges, server="harbour", hint=AGAIN)
    recorder.turn = turn

    async def main() -> Any:
        async with recorder.session(
            MCPEndpoint("harbour", "stdio", command="/no/such/server", **more)
        ) as session:
            return await use(session)

    with closed_network(), asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return recorder, runner.run(main())


def now() -> float:
    return asyncio.get_running_loop().time()


async def outcome(call: Awaitable[Any]) -> Any:
    """Return the result or failure of a call, and its time."""
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
    """Run the server over streamable HTTP on loopback, in a thread."""
    import uvicorn
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from harness.serve.connections import ImmediateServer

    sys.path.insert(0, str(SERVER.parent))
    try:
        make = import_module("harbour").harbour
    finally:
        sys.path.remove(str(SERVER.parent))
    manager = StreamableHTTPSessionManager(make())

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await manager.handle_request(scope, receive, send)

    config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none")
    listener, server = socket.create_server(("127.0.0.1", 0)), ImmediateServer(config)

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
        server.end()
        thread.join()


@contextmanager
def over_stdio() -> Iterator[MCPEndpoint]:
    yield harbour()


def report(**args: Any) -> Use:
    return lambda session: session.call_tool("report", args)


REPORT = report(place="Vardø", when="today or tomorrow", knots=2)
