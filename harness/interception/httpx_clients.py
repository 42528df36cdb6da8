"""Intercepts httpx and httpx2, which the providers' clients use. They are patched at the transports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from harness.interception.interceptor import Interceptor
from harness.interception.messages import Request, Response, SendResult
from harness.interception.patches import failure_text, is_stream, kept_response_headers, patched, to_exception
from harness.interception.real_effects import not_intercepted
from harness.time.paced import real_timers
from harness.time.real import real
from harness.units import MEASURED_PRECISION

_OWN: Final = {"connection": "ConnectError: {}", "timeout": "ReadTimeout: {}"}


@contextmanager
def patched_httpx(module: Any, interceptor: Interceptor) -> Iterator[None]:
    """Intercept the requests of an httpx module, asynchronous and blocking."""
    with (
        patched(module.AsyncHTTPTransport, handle_async_request=_async(module, interceptor)),
        patched(module.HTTPTransport, handle_request=_blocking(module, interceptor)),
    ):
        yield


def _async(module: Any, interceptor: Interceptor) -> Any:
    send_really = module.AsyncHTTPTransport.handle_async_request

    async def handle_async_request(transport: Any, request: Any) -> Any:
        if not_intercepted.get():
            return await send_really(transport, request)

        async def send() -> SendResult:
            body = _Body()
            try:
                response = await send_really(transport, request)
                if not interceptor.buffers_streams and is_stream(response.headers):
                    return _passed_through(module, response, body)
                try:
                    async for part in response.stream:
                        body.add(part)
                finally:
                    await response.stream.aclose()
                return _received(module, response, body)
            except module.RequestError as error:
                return SendResult(None, failure=failure_text(error))

        message = _request(request, await request.aread())
        return _to_client_response(module, request, await interceptor.answer(message, send))

    return handle_async_request


def _blocking(module: Any, interceptor: Interceptor) -> Any:
    send_really = module.HTTPTransport.handle_request

    def handle_request(transport: Any, request: Any) -> Any:
        if not_intercepted.get():
            return send_really(transport, request)

        def send() -> SendResult:
            body = _Body()
            try:
                response = send_really(transport, request)
                if not interceptor.buffers_streams and is_stream(response.headers):
                    return SendResult(_response(response, b""), passed_through=response)
                try:
                    for part in response.stream:
                        body.add(part)
                finally:
                    response.stream.close()
                return _received(module, response, body)
            except module.RequestError as error:
                return SendResult(None, failure=failure_text(error))

        message = _request(request, request.read())
        return _to_client_response(module, request, interceptor.answer_blocking(message, send))

    return handle_request


class _Body:
    """The parts of a body, and their arrival times in seconds since the request."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.times: list[float] = []
        self._began = real.monotonic()

    def add(self, part: bytes) -> None:
        self.parts.append(part)
        self.times.append(round(real.monotonic() - self._began, MEASURED_PRECISION))


def _request(request: Any, body: bytes) -> Request:
    headers = {k.lower(): v for k, v in request.headers.items()}
    timeout_s = (request.extensions.get("timeout") or {}).get("read")
    return Request(request.method, str(request.url), headers, body, timeout_s)


def _received(module: Any, response: Any, body: _Body) -> SendResult:
    # httpx decodes the body, as for its own clients.
    whole = module.Response(response.status_code, headers=response.headers, content=b"".join(body.parts))
    return SendResult(
        _response(response, whole.content), tuple(body.times) if is_stream(response.headers) else ()
    )


def _response(response: Any, body: bytes) -> Response:
    headers = kept_response_headers(response.headers.multi_items())
    return Response(response.status_code, response.reason_phrase, headers, body)


def _to_client_response(module: Any, request: Any, sent: SendResult) -> Any:
    """Return the answer as the client's transport returns it; it is the same live and replayed."""
    if sent.passed_through is not None:
        return sent.passed_through
    if sent.response is None:
        error: Any = to_exception(sent.failure, [module], (module.TransportError, module.RequestError), _OWN)
        error.request = request
        raise error
    response = sent.response
    return module.Response(
        response.status,
        headers=list(response.headers),
        stream=module.ByteStream(response.body),
        extensions={"reason_phrase": response.reason.encode("ascii", "replace")} if response.reason else {},
    )


def _passed_through(module: Any, response: Any, body: _Body) -> SendResult:
    """Return a response whose stream is passed through, and which calls `on_end` at the end of the stream."""

    class Stream(module.AsyncByteStream):  # type: ignore[misc]
        on_end: Callable[[SendResult], Awaitable[None]]

        def __init__(self, stream: Any) -> None:
            self._stream = stream
            self._is_open = True

        async def __aiter__(self) -> AsyncIterator[bytes]:
            parts = aiter(self._stream)
            while True:
                with real_timers():
                    part = await anext(parts, None)
                if part is None:
                    return
                body.add(part)
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()
            if self._is_open:
                self._is_open = False
                await self.on_end(SendResult(_response(response, b"".join(body.parts)), tuple(body.times)))

    response.stream = Stream(response.stream)
    return SendResult(None, passed_through=response)
