"""Clients that call real servers through a recorder: durations, and what is recorded."""

import asyncio
import http.client
import socket
import threading
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import requests

from harness.errors import CassetteMismatch
from harness.interception.intercept import intercepted
from harness.interception.messages import Request, Response, SendResult
from harness.interception.real_effects import within_effect
from harness.recording.recorder import HTTPRecorder
from harness.time.paced import PacedTimeLoop
from harness.time.real import real
from tests.timing import shortest
from tests.world.loopback import CannedReply, loopback


def recording_all(*, buffers_streams: bool = True) -> HTTPRecorder:
    """Return a recorder that sends all requests."""
    return HTTPRecorder(
        (),
        lambda *_: None,
        sends=True,
        mismatch_error=lambda *_: CassetteMismatch("no"),
        buffers_streams=buffers_streams,
    )


def paced(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    with asyncio.Runner(loop_factory=PacedTimeLoop) as runner:
        return runner.run(work())


@contextmanager
def streaming(answer: bytes, *, after_s: float = 0.0) -> Iterator[str]:
    """Yield a URL that sends this answer after some time, and then neither sends more nor closes the connection."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                over.wait(after_s)
                connection.sendall(answer)
                over.wait(100)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            over.set()
            thread.join()


EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: calm\n\ndata: gale\n\n"
SLOW = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ncalm"
SLOW_S = 0.2


# ------------------------------------------------------------ time


@pytest.mark.parametrize(
    "ask",
    [requests.get, httpx.get, urllib.request.urlopen],
    ids=["requests", "httpx", "urllib"],
)
def test_a_blocking_request_really_takes_its_time_once(ask: Callable[[str], Any]) -> None:
    url = ""

    async def effect() -> None:
        ask(url)

    async def run() -> tuple[float, float, float]:
        loop, began = asyncio.get_running_loop(), real.monotonic()
        await within_effect(effect)
        asked, virtual = real.monotonic() - began, loop.time()
        await asyncio.sleep(0.1)
        return asked, virtual, real.monotonic() - began - asked

    def took() -> float:
        nonlocal url
        with streaming(SLOW, after_s=SLOW_S) as url, intercepted(recording_all()):
            really, virtual, slept = paced(run)
        assert SLOW_S <= virtual <= really
        # What is waited for later still takes as long as it says.
        assert slept >= 0.1
        return float(really)

    assert shortest(took, below=2 * SLOW_S) < 2 * SLOW_S


def test_the_time_of_a_blocking_request_passes_though_the_effect_fails() -> None:
    async def effect() -> None:
        requests.get(url)
        raise ValueError

    async def run() -> float:
        with pytest.raises(ValueError):
            await within_effect(effect)
        return asyncio.get_running_loop().time()

    with streaming(SLOW, after_s=SLOW_S) as url, intercepted(recording_all()):
        assert paced(run) >= SLOW_S


# ------------------------------------------------------------ what is recorded


def test_a_request_whose_client_fails_is_not_recorded() -> None:
    recorder = recording_all()

    async def breaks() -> SendResult:
        raise RuntimeError("a client's own mistake")

    def breaks_at_once() -> SendResult:
        raise RuntimeError("a client's own mistake")

    async def run() -> None:
        with pytest.raises(RuntimeError):
            await recorder.answer(Request("GET", "http://a.test/"), breaks)
        with pytest.raises(RuntimeError):
            recorder.answer_blocking(Request("GET", "http://a.test/"), breaks_at_once)

    paced(run)
    assert recorder.interactions() == ()


def test_a_request_that_is_cancelled_is_taken_down_as_given_up() -> None:
    recorder = recording_all()

    async def run() -> None:
        with pytest.raises(TimeoutError):
            async with httpx.AsyncClient() as client, asyncio.timeout(0.2):
                await client.get(url)

    with streaming(b"", after_s=100) as url, intercepted(recorder):
        paced(run)
    (taken,) = recorder.interactions()
    assert (taken.request.url, taken.response, taken.failure) == (url, None, "")


def test_requests_are_met_no_more_when_it_is_over() -> None:
    recorder = recording_all()
    with loopback(CannedReply(text="calm")) as server:
        with intercepted(recorder):
            requests.get(server.url)
        for ask in (requests.get, httpx.get, urllib.request.urlopen):
            ask(server.url)
    assert len(recorder.interactions()) == 1


# ------------------------------------------------------------ streams that nobody keeps


def by_http_client(url: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(url.split("/")[2], timeout=60)
    connection.request("GET", "/")
    return connection.getresponse()


def test_without_buffering_an_endless_stream_is_passed_through() -> None:
    recorder = recording_all(buffers_streams=False)

    async def effect() -> str:
        async with httpx.AsyncClient() as client, client.stream("GET", url) as response:
            return await anext(line async for line in response.aiter_lines() if line)

    async def run() -> tuple[str, float]:
        async with asyncio.timeout(60):
            return await within_effect(effect), asyncio.get_running_loop().time()

    with streaming(EVENTS, after_s=0.2) as url, intercepted(recorder):
        text, virtual = paced(run)
    assert text == "data: calm"
    assert 0.2 <= virtual < 60
    # What came is known, since secrets are looked for in it.
    assert recorder.interactions()[0].response == Response(
        200, "OK", (("content-type", "text/event-stream"),), b"data: calm\n\ndata: gale\n\n"
    )


@pytest.mark.parametrize(
    "first",
    [
        lambda url: next(requests.get(url, stream=True, timeout=60).iter_lines(chunk_size=1)),
        lambda url: urllib.request.urlopen(url, timeout=60).readline().strip(),
        lambda url: by_http_client(url).readline().strip(),
    ],
    ids=["requests", "urllib", "http.client"],
)
def test_without_buffering_a_blocking_stream_is_passed_through(first: Callable[[str], bytes]) -> None:
    with streaming(EVENTS) as url, intercepted(recording_all(buffers_streams=False)):
        assert first(url) == b"data: calm"


def test_without_buffering_a_stream_of_blocking_httpx_is_passed_through() -> None:
    with (
        streaming(EVENTS) as url,
        intercepted(recording_all(buffers_streams=False)),
        httpx.stream("GET", url, timeout=60) as response,
    ):
        assert next(response.iter_lines()) == "data: calm"
