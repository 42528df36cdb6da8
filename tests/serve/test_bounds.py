"""The resources that a client can use are limited: connections, time, memory. Tested over real sockets."""

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress

import httpx
import pytest

from harness.serve import Serving, connections, serving
from harness.serve.app import MAX_BODY_BYTES
from harness.time.real import real
from tests.world.stubs import world_spec

WORLD = world_spec(
    http=[{"url": "https://shop.test/*", "times": "any", "json": {"stock": 1}}], mcp={"shop": {}}
)
HEAD = b"POST /items HTTP/1.1\r\nhost: localhost\r\n"


@pytest.fixture
def server() -> Iterator[Serving]:
    with serving(WORLD) as served:
        yield served


Connect = Callable[..., socket.socket]


@pytest.fixture
def connect(server: Serving) -> Iterator[Connect]:
    opened = []

    def connection(data: bytes = b"") -> socket.socket:
        found = socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=60)
        opened.append(found)
        found.sendall(data)
        return found

    yield connection
    for each in opened:
        each.close()


CUT_OFF = r"reset|Broken pipe|aborted"


def send(connection: socket.socket, data: bytes, times: int) -> None:
    for _ in range(times):
        connection.sendall(data)


def is_closed(connection: socket.socket) -> bool:
    """Read all that the server sends; return True if the server closes the connection."""
    try:
        while connection.recv(4096):
            pass
        return True
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("sent", [b"", b"G", HEAD, HEAD + b"content-length: 9\r\n\r\n", b"\r\n"])
def test_a_request_that_does_not_arrive_in_time_is_cut_off(
    server: Serving, connect: Connect, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(connections, "ARRIVAL_S", 0.1)
        assert is_closed(connect(sent))
    assert httpx.get(f"{server.url}/items").status_code == 200


def test_single_bytes_do_not_extend_the_time_limit(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ARRIVAL_S", 0.2)
    slow = connect(HEAD)
    slow.settimeout(0.02)
    began = real.monotonic()
    while real.monotonic() - began < 60:
        try:
            slow.sendall(b"x: y\r\n")
            if slow.recv(1) == b"":
                break
        except TimeoutError:
            continue
        except OSError:
            break
    assert real.monotonic() - began < 60


def test_a_later_request_on_a_connection_is_bounded_too(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = HEAD + b"content-length: 0\r\n\r\n"
    kept = connect(whole)
    assert kept.recv(4096).startswith(b"HTTP/1.1 200")
    monkeypatch.setattr(connections, "ARRIVAL_S", 0.1)  # counts when the second is answered
    kept.sendall(whole + HEAD)
    assert is_closed(kept)


def test_an_answer_may_take_longer_than_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ARRIVAL_S", 0.2)
    slow = {"url": "https://shop.test/*", "latency": 0.4, "times": "any", "json": {"stock": 1}}
    answers = []
    with serving(world_spec(http=[slow])) as server:
        for _ in range(50):  # a busy machine may be late with a request, but not with all of them
            with suppress(httpx.TransportError):
                answers.append(httpx.get(f"{server.url}/items").json())
                break
    assert answers == [{"stock": 1}]


@pytest.mark.parametrize("path", [b"/v1/messages", b"/mcp/shop", b"/items"])
def test_an_endless_body_is_cut_off(connect: Connect, monkeypatch: pytest.MonkeyPatch, path: bytes) -> None:
    monkeypatch.setattr(connections, "UNREAD_S", 0.01)  # the SDK's answer to /mcp does not wait for the body
    endless = connect(HEAD.replace(b"/items", path) + b"transfer-encoding: chunked\r\n\r\n")
    part = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    with pytest.raises(OSError, match=CUT_OFF):
        send(endless, part, times=40 * MAX_BODY_BYTES // len(part))


@pytest.mark.parametrize("headers", [b"x: y\r\n" * 100_000, b"x: " + b"y" * 1_000_000])
def test_endless_headers_are_cut_off(connect: Connect, headers: bytes) -> None:
    endless = connect(HEAD)
    with pytest.raises(OSError, match=CUT_OFF):
        send(endless, headers, times=100)


def test_connections_beyond_the_limit_are_closed(
    server: Serving, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 3)
    first = [connect() for _ in range(3)]
    assert is_closed(connect())
    for connection in first:
        connection.sendall(HEAD + b"content-length: 0\r\nconnection: close\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        assert is_closed(connection)
    assert httpx.get(f"{server.url}/items").status_code == 200


def test_a_server_in_the_foreground_keeps_no_list_of_requests() -> None:
    from harness.serve.responder import Client, StubResponder

    told: list[object] = []
    responder = StubResponder([WORLD], on_request=told.append)
    responder.log_refusal(Client("", "GET /"), "no")
    assert (len(told), responder.requests) == (1, [])
