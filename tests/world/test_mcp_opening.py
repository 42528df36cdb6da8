"""Connecting to a real MCP server that breaks off or never answers fails, with the reason."""

import asyncio
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from harness.errors import WorldError
from harness.graph.effects import MCPEndpoint
from harness.recording.mcp.proxy import MCPRecorder
from harness.time.clock import VirtualTimeLoop
from harness.time.paced import PacedTimeLoop
from harness.world.mcp.connect import connect
from harness.world.mcp.session import CONNECT_LIMIT_S
from harness.world.mcp.tools import MCPFailure
from harness.world.network import closed_network

SOON_S = 0.3
"""Time limit, in real seconds, for a server that sends nothing at all."""
LATER_S = 1.0
"""Time limit for a server that accepts the connection but answers nothing; connecting takes some time."""

EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
IN_CHUNKS = EVENTS + b"transfer-encoding: chunked\r\n\r\n"
UNTIL_CLOSED = EVENTS + b"connection: close\r\n\r\n"
ENDPOINT = UNTIL_CLOSED + b"event: endpoint\ndata: /messages\n\n"
NO_BODY = b"content-length: 0\r\n\r\n"

Server = Callable[[socket.socket, bytes], None]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.1)


@contextmanager
def serving(server: Server) -> Iterator[str]:
    """Yield the URL of a server that passes each connection, with its request, to a function."""
    ended = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(65536)
            server(connection, request)

    def accept() -> None:
        while not ended.is_set():
            with suppress(OSError):
                connection, _ = listening.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            ended.set()
            listening.shutdown(socket.SHUT_RDWR)


def stays(connection: socket.socket) -> None:
    """Keep the connection open until the client closes it."""
    while connection.recv(65536):
        pass


def says(answer: bytes) -> Server:
    """Return a server that sends this answer and closes the connection."""
    return lambda connection, _: connection.sendall(answer)


def says_and_stays(answer: bytes = b"") -> Server:
    def server(connection: socket.socket, _: bytes) -> None:
        connection.sendall(answer)
        stays(connection)

    return server


def pings(connection: socket.socket, _: bytes) -> None:
    connection.sendall(UNTIL_CLOSED)
    while True:
        connection.sendall(b": ping\n\n")
        threading.Event().wait(0.05)


def answers_messages_with(status: bytes) -> Server:
    """Return a server that sends its endpoint, and answers messages only with this status."""

    def server(connection: socket.socket, request: bytes) -> None:
        connection.sendall(ENDPOINT if request.startswith(b"GET") else b"HTTP/1.1 " + status + NO_BODY)
        stays(connection)

    return server


def why_not(context: Any, loop: Any = VirtualTimeLoop) -> str:
    """Return the reason why connecting fails, and check that no resources are left open."""

    async def main() -> str:
        with pytest.raises(MCPFailure) as raised:
            async with context:
                pytest.fail("it is not connected")
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return str(raised.value)

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(main())


BROKEN_OFF = "the server ended the connection before its first event, `endpoint`"
NO_EVENT = f"the server sent no event within {SOON_S} s"
NO_ANSWER = f"the MCP server did not answer within {LATER_S:g} s"


def limit(why: str) -> float:
    """Return the time limit for a server; one that breaks off fails immediately, whatever the limit."""
    return {NO_EVENT: SOON_S, NO_ANSWER: LATER_S}.get(why, CONNECT_LIMIT_S)


SSE = {
    "breaks off": (says(IN_CHUNKS), BROKEN_OFF),
    "ends": (says(UNTIL_CLOSED), BROKEN_OFF),
    "says nothing": (says_and_stays(), NO_EVENT),
    "begins and says nothing": (says_and_stays(IN_CHUNKS), NO_EVENT),
    "says nothing but comments": (pings, NO_EVENT),
    "takes messages and answers none": (answers_messages_with(b"202 Accepted\r\n"), NO_ANSWER),
    "refuses messages": (
        answers_messages_with(b"503 Busy\r\n"),
        "the server answered a message with status 503",
    ),
}
HTTP = {
    "breaks off": (says(IN_CHUNKS), "SSE stream ended without a response"),
    "says nothing": (says_and_stays(), NO_ANSWER),
    "begins and says nothing": (says_and_stays(IN_CHUNKS), NO_ANSWER),
    "says nothing but comments": (pings, NO_ANSWER),
}


@pytest.mark.parametrize(("server", "why"), SSE.values(), ids=SSE)
def test_a_server_over_sse_that_does_not_connect_is_given_up_with_the_reason(
    server: Server, why: str
) -> None:
    gives_up(server, why, "sse", "SSE")


@pytest.mark.parametrize(("server", "why"), HTTP.values(), ids=HTTP)
def test_a_server_over_http_that_does_not_connect_is_given_up_with_the_reason(
    server: Server, why: str
) -> None:
    gives_up(server, why, "streamable_http", "streamable HTTP")


def gives_up(server: Server, why: str, transport: Any, name: str) -> None:
    with serving(server) as url:
        assert why_not(connect(MCPEndpoint("weather", transport, url=url), limit(why))) == (
            f"cannot connect to {url}: {why}; check that server 'weather' runs there and speaks MCP over {name}, "
            "or script its tools under `mcp:`"
        )


@pytest.mark.parametrize("does", ["sys.stdin.read()", "print('ready', flush=True); sys.stdin.read()"])
def test_a_child_process_that_does_not_connect_is_given_up_with_the_reason(does: str) -> None:
    endpoint = MCPEndpoint("weather", "stdio", command=sys.executable, args=["-c", f"import sys; {does}"])
    assert why_not(connect(endpoint, LATER_S)) == (
        f"cannot connect to {sys.executable}: {NO_ANSWER}; check that server 'weather' starts and speaks MCP on its "
        "standard input and output, or script its tools under `mcp:`"
    )


def test_a_server_that_breaks_off_is_given_up_in_a_recording_too() -> None:
    with serving(says(IN_CHUNKS)) as url:
        endpoint = MCPEndpoint("weather", "sse", url=url)
        why = why_not(
            MCPRecorder(server="weather").session(endpoint, replays=False, sends=True), PacedTimeLoop
        )
    assert why.startswith(f"cannot connect to {url}: {BROKEN_OFF}; check that server 'weather' runs there")


@pytest.mark.parametrize("transport", ["sse", "streamable_http"])
def test_a_server_beyond_the_closed_network_is_no_server_that_does_not_run(transport: str) -> None:
    endpoint = MCPEndpoint("weather", transport, url="http://127.0.0.1:1/mcp")
    with closed_network(), pytest.raises(WorldError) as raised:
        connect(endpoint)
    assert str(raised.value) == (
        "MCP server 'weather' cannot be real: it is reached over the network, which is closed during a scenario "
        "that is neither recorded nor live; script the server's tools, or record it (--record-mode once)"
    )
