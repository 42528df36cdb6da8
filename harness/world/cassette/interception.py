"""The HTTP of this process, led through a tape while a scenario runs.

httpx and httpx2, on which the providers' clients are built, are met at their transports, so that their real clients
run; requests, urllib3, http.client and aiohttp by vcrpy's own patches.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from threading import get_ident
from typing import Any, Final

from harness.graph.clock import MEASURED
from harness.world.cassette.headers import kept_response_headers
from harness.world.cassette.interactions import Request, Response
from harness.world.cassette.tape import HTTPTape, Sent
from harness.world.mcp_line import mcp_traffic

HTTPX: Final = ("httpx", "httpx2")


@contextmanager
def led_through(tape: HTTPTape) -> Iterator[None]:
    """Answer all HTTP of this process from the tape, or as the tape says."""
    with ExitStack() as patches:
        for name in HTTPX:
            try:
                module = import_module(name)
            except ImportError:
                continue
            patches.enter_context(_httpx(module, tape))
        for patch in _others(tape):
            patches.enter_context(patch)
        yield


# ------------------------------------------------------------------ httpx


@contextmanager
def _httpx(module: Any, tape: HTTPTape) -> Iterator[None]:
    of_async, of_sync = module.AsyncHTTPTransport, module.HTTPTransport
    send_async, send_sync = of_async.handle_async_request, of_sync.handle_request

    async def handle_async_request(transport: Any, request: Any) -> Any:
        if mcp_traffic.get():
            return await send_async(transport, request)

        async def send() -> Sent:
            began, parts, times = time.monotonic(), [], []
            try:
                response = await send_async(transport, request)
                try:
                    async for part in response.stream:
                        parts.append(part)
                        times.append(time.monotonic() - began)
                finally:
                    await response.stream.aclose()
            except module.TransportError as error:
                return _failed(error)
            return _received(module, response, parts, times)

        asked = _request(request, await request.aread())
        return _given(module, request, await tape.answer(asked, send))

    def handle_request(transport: Any, request: Any) -> Any:
        if mcp_traffic.get():
            return send_sync(transport, request)

        def send() -> Sent:
            began, parts, times = time.monotonic(), [], []
            try:
                response = send_sync(transport, request)
                try:
                    for part in response.stream:
                        parts.append(part)
                        times.append(time.monotonic() - began)
                finally:
                    response.stream.close()
            except module.TransportError as error:
                return _failed(error)
            return _received(module, response, parts, times)

        asked = _request(request, request.read())
        return _given(module, request, tape.answer_blocking(asked, send))

    of_async.handle_async_request, of_sync.handle_request = handle_async_request, handle_request
    try:
        yield
    finally:
        of_async.handle_async_request, of_sync.handle_request = send_async, send_sync


def _request(request: Any, body: bytes) -> Request:
    return Request(request.method, str(request.url), {k.lower(): v for k, v in request.headers.items()}, body)


def _received(module: Any, response: Any, parts: list[bytes], times: list[float]) -> Sent:
    headers = [(name.lower(), value) for name, value in response.headers.multi_items()]
    # httpx undoes the compression it asked for, as it would for its own client.
    body = module.Response(response.status_code, headers=response.headers, content=b"".join(parts)).content
    streamed = response.headers.get("content-type", "").startswith("text/event-stream")
    return Sent(
        Response(response.status_code, response.reason_phrase, kept_response_headers(headers), body),
        tuple(round(at, MEASURED) for at in times) if streamed else (),
    )


def _failed(error: Exception) -> Sent:
    return Sent(None, failure=f"{type(error).__name__}: {error}")


def _given(module: Any, request: Any, sent: Sent) -> Any:
    """The answer as the client's transport gives it; the same whether it was sent or played."""
    if sent.response is None:
        name, _, text = sent.failure.partition(": ")
        cls = getattr(module, name, None)
        known = isinstance(cls, type) and issubclass(cls, module.TransportError)
        error: Any = cls if known else module.TransportError
        raise error(text, request=request)
    response = sent.response
    return module.Response(
        response.status,
        headers=list(response.headers),
        stream=module.ByteStream(response.body),
        extensions={"reason_phrase": response.reason.encode("ascii", "replace")} if response.reason else {},
    )


# ------------------------------------------------------------------ other clients, as vcrpy knows them


def _others(tape: HTTPTape) -> Iterator[Any]:
    from vcr.patch import CassettePatcherBuilder

    yield from CassettePatcherBuilder(_bridge(tape)).build()


def _bridge(tape: HTTPTape) -> Any:
    """What vcrpy's patches take for a cassette."""
    from vcr.cassette import Cassette
    from vcr.record_mode import RecordMode

    class Bridge(Cassette):  # type: ignore[misc]
        """Asks the tape. vcrpy asks before it sends, maybe more than once, and tells what came."""

        def __init__(self) -> None:
            super().__init__("", record_mode=RecordMode.NEW_EPISODES, skip_patchers=HTTPX)
            self._began: dict[int, float] = {}

        def can_play_response_for(self, request: Any) -> bool:
            if mcp_traffic.get():
                return False
            if tape.can_play(_from_vcr(request)):
                return True
            self._began.setdefault(get_ident(), time.monotonic())
            return False

        def play_response(self, request: Any) -> Any:
            sent = tape.play_blocking(_from_vcr(request))
            if sent.response is None:
                raise ConnectionError(sent.failure)
            return _as_vcr(sent.response)

        def append(self, request: Any, response: Any) -> None:
            began = self._began.pop(get_ident(), time.monotonic())
            if not mcp_traffic.get():
                tape.take_down(_from_vcr(request), Sent(_response_from_vcr(response)), began)

    return Bridge()


def _from_vcr(request: Any) -> Request:
    body = request.body or b""
    if not isinstance(body, bytes):
        body = body.encode() if isinstance(body, str) else b"".join(body)
    headers = {str(name).lower(): _first(value) for name, value in request.headers.items()}
    return Request(request.method, request.uri, headers, body)


def _response_from_vcr(response: Any) -> Response:
    from vcr.filters import decode_response

    decoded = decode_response(response)
    headers = [
        (str(name).lower(), str(value))
        for name, values in decoded["headers"].items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    status, body = decoded["status"], decoded["body"]["string"]
    body = body.encode() if isinstance(body, str) else body
    return Response(status["code"], status["message"] or "", kept_response_headers(headers), body)


def _as_vcr(response: Response) -> dict[str, Any]:
    headers: dict[str, list[str]] = {}
    for name, value in response.headers:
        headers.setdefault(name, []).append(value)
    status = {"code": response.status, "message": response.reason}
    return {"status": status, "headers": headers, "body": {"string": response.body}}


def _first(value: Any) -> str:
    found = value if isinstance(value, (str, bytes)) else next(iter(value), "")
    return found.decode("latin-1") if isinstance(found, bytes) else str(found)
