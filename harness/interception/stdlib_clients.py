"""Intercepts urllib.request, http.client where it is used directly, and urllib3 with the clients built on it.

urllib3 (requests, boto3) is intercepted at the connection pool: retries and redirects that it makes there are part of
one request.
"""

from __future__ import annotations

import builtins
import http.client
import io
import socket
import ssl
import urllib.error
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final
from urllib.request import AbstractHTTPHandler

from harness.interception.interceptor import Interceptor
from harness.interception.messages import Request, Response, SendResult
from harness.interception.patches import (
    body_of,
    failure_text,
    headers_of,
    is_in_body,
    is_stream,
    patched,
    response_of,
    to_exception,
)
from harness.interception.real_effects import not_intercepted

sending: ContextVar[bool] = ContextVar("sending", default=False)
"""True while this thread sends a request that was intercepted already, so that lower layers do not intercept it."""

# Subclasses belong to other clients, which are intercepted at a higher level.
_PLAIN: Final = (http.client.HTTPConnection, http.client.HTTPSConnection)
_FAILURES: Final = (OSError, http.client.HTTPException)
_OF_URLLIB: Final = {
    "connection": "URLError(ConnectionRefusedError): <urlopen error {}>",
    "timeout": "TimeoutError: {}",
}
_OF_HTTP_CLIENT: Final = {"connection": "ConnectionRefusedError: {}", "timeout": "TimeoutError: {}"}
_MODULES: Final = (urllib.error, http.client, builtins, socket, ssl)


@contextmanager
def patched_urllib(_module: Any, interceptor: Interceptor) -> Iterator[None]:
    """Intercept the requests of urllib.request."""
    open_really: Any = AbstractHTTPHandler.do_open

    def do_open(handler: Any, http_class: Any, request: Any, **options: Any) -> Any:
        if not_intercepted.get() or sending.get():
            return open_really(handler, http_class, request, **options)
        if request.data is not None and not isinstance(request.data, bytes):
            request.data = body_of(request.data)

        def send() -> Any:
            return open_really(handler, http_class, request, **options)

        headers = headers_of({**request.headers, **request.unredirected_hdrs})
        message = Request(
            request.get_method(), request.full_url, headers, request.data or b"", _timeout_s(request.timeout)
        )
        sent = interceptor.answer_blocking(message, _sender(interceptor, send))
        response = _to_client_response(message, sent, _OF_URLLIB)
        response.url, response.msg = request.full_url, response.reason
        return response

    with patched(AbstractHTTPHandler, do_open=do_open):
        yield


@contextmanager
def patched_http_client(_module: Any, interceptor: Interceptor) -> Iterator[None]:
    """Intercept the requests of plain connections. A request is sent when its response is read."""
    connections: Any = http.client.HTTPConnection
    send_really, response_really, close_really = connections.send, connections.getresponse, connections.close

    def send(connection: Any, data: Any) -> None:
        if type(connection) not in _PLAIN or not_intercepted.get() or sending.get():
            send_really(connection, data)
        else:
            vars(connection).setdefault("_unsent", []).append(body_of(data))

    def getresponse(connection: Any) -> Any:
        parts = vars(connection).pop("_unsent", None)
        if parts is None:
            return response_really(connection)

        def send_parts() -> Any:
            for part in parts:
                send_really(connection, part)
            return response_really(connection)

        message = _parse_request(connection, b"".join(parts))
        sent = None
        try:
            sent = interceptor.answer_blocking(message, _sender(interceptor, send_parts))
            return _to_client_response(message, sent, _OF_HTTP_CLIENT)
        finally:
            if sent is None or sent.passed_through is None:
                connection.close()  # so that it is ready for the next request, as after reading a response

    def close(connection: Any) -> None:
        vars(connection).pop("_unsent", None)
        close_really(connection)

    with patched(connections, send=send, getresponse=getresponse, close=close):
        yield


def _sender(interceptor: Interceptor, send: Callable[[], Any]) -> Callable[[], SendResult]:
    """Return a function that sends a request with `send`, which returns the client's response."""

    def sent() -> SendResult:
        token = sending.set(True)
        try:
            response = send()
            if not interceptor.buffers_streams and is_stream(response.headers):
                return SendResult(response_of(response, b""), passed_through=response)
            return SendResult(response_of(response, _decompressed(response, response.read())))
        except _FAILURES as error:
            return SendResult(None, failure=failure_text(error))
        finally:
            sending.reset(token)

    return sent


def as_http_client(response: Response, method: str) -> Any:
    """Return a response as http.client reads it from a socket."""
    lines = [f"HTTP/1.1 {response.status} {response.reason}", *(f"{k}: {v}" for k, v in response.headers)]
    head = "".join(f"{line}\r\n" for line in [*lines, ""]).encode("latin-1", "replace")
    read: Any = http.client.HTTPResponse(_Socket(head + response.body), method=method)  # type: ignore[arg-type]
    read.begin()
    return read


class _Socket:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, _: str) -> io.BytesIO:
        return io.BytesIO(self._data)


def _parse_request(connection: Any, data: bytes) -> Request:
    """Return the request in the bytes that were written to a connection."""
    head, _, body = data.partition(b"\r\n\r\n")
    line, _, rest = head.partition(b"\r\n")
    method, target, _ = line.decode("latin-1").split(" ", 2)
    headers = http.client.parse_headers(io.BytesIO(rest + b"\r\n\r\n"))
    if target.startswith("/"):
        scheme = "https" if isinstance(connection, http.client.HTTPSConnection) else "http"
        host, port = connection._tunnel_host or connection.host, connection._tunnel_port or connection.port
        place = (f"[{host}]" if ":" in host else host) + (
            f":{port}" if port != connection.default_port else ""
        )
        target = f"{scheme}://{place}{target}"
    return Request(method, target, headers_of(headers), body, _timeout_s(connection.timeout))


def _timeout_s(timeout: Any) -> float | None:
    return timeout if isinstance(timeout, (int, float)) else None


def _decompressed(response: Any, body: bytes) -> bytes:
    """Decompress a body; return it unchanged if that is not possible."""
    import httpx

    try:
        return httpx.Response(200, headers=response.headers.items(), content=body).content
    except httpx.DecodingError:
        return body


def _to_client_response(message: Request, sent: SendResult, own: Mapping[str, str]) -> Any:
    """Return the answer as http.client returns it; it is the same live and replayed."""
    if sent.passed_through is not None:
        return sent.passed_through
    if sent.response is None:
        raise to_exception(sent.failure, _MODULES, _FAILURES, own)
    return as_http_client(sent.response, message.method)


_OF_URLLIB3: Final = {
    "connection": "MaxRetryError(NewConnectionError): {}",
    "timeout": "ReadTimeoutError: {}",
}
_PORTS: Final = {"http": 80, "https": 443}


@contextmanager
def patched_urllib3(_module: Any, interceptor: Interceptor) -> Iterator[None]:
    """Intercept the requests of urllib3."""
    from urllib3.connectionpool import HTTPConnectionPool
    from urllib3.exceptions import HTTPError

    urlopen_really: Any = HTTPConnectionPool.urlopen

    def urlopen(
        pool: Any,
        method: str,
        url: str,
        body: Any = None,
        headers: Any = None,
        *args: Any,
        preload_content: bool = True,
        decode_content: bool = True,
        **options: Any,
    ) -> Any:
        waiting: dict[str, Any] = {"preload_content": preload_content, "decode_content": decode_content}
        if not_intercepted.get() or sending.get():
            return urlopen_really(pool, method, url, body, headers, *args, **waiting, **options)
        content = None if body is None else body_of(body)

        def send() -> SendResult:
            token = sending.set(True)
            try:
                unread = waiting | {"preload_content": False} | options
                response = urlopen_really(pool, method, url, content, headers, *args, **unread)
            except HTTPError as error:
                return SendResult(None, failure=failure_text(error))
            finally:
                sending.reset(token)
            if not interceptor.buffers_streams and is_stream(response.headers):
                return SendResult(response_of(response, b""), passed_through=response)
            try:
                return SendResult(response_of(response, response.read(decode_content=True)))
            except HTTPError as error:
                return SendResult(None, failure=failure_text(error, in_body=True))
            finally:
                response.release_conn()

        message = Request(
            method,
            _url(pool, url),
            headers_of(pool.headers if headers is None else headers),
            content or b"",
            _pool_timeout_s(options.get("timeout", pool.timeout)),
        )
        return _to_pool_response(message, interceptor.answer_blocking(message, send), waiting)

    with patched(HTTPConnectionPool, urlopen=urlopen):
        yield


def _pool_timeout_s(timeout: Any) -> float | None:
    """Return the time limit for an answer, in seconds, given a number or a `Timeout`; None if there is none."""
    for found in (getattr(timeout, "total", None), getattr(timeout, "_read", None), timeout):
        if isinstance(found, (int, float)) and found > 0:
            return found
    return None


def _url(pool: Any, url: str) -> str:
    if url.startswith(("http://", "https://")):  # the whole URL, as for a proxy
        return url
    host = f"[{pool.host}]" if ":" in pool.host else pool.host
    port = "" if pool.port in (None, _PORTS.get(pool.scheme)) else f":{pool.port}"
    return f"{pool.scheme}://{host}{port}/{url.removeprefix('/')}"


def _to_pool_response(message: Request, sent: SendResult, waiting: dict[str, Any]) -> Any:
    """Return the answer as a pool returns it; it is the same live and replayed."""
    from urllib3 import HTTPHeaderDict, HTTPResponse, exceptions

    if sent.passed_through is not None:
        return sent.passed_through
    response = sent.response or Response(200)
    body = original = as_http_client(response, message.method)
    if sent.response is None:
        error = to_exception(sent.failure, [exceptions, builtins], (exceptions.HTTPError,), _OF_URLLIB3)
        if not is_in_body(sent.failure):
            raise error
        body = _Broken(error)
    return HTTPResponse(
        body=body,
        headers=HTTPHeaderDict(original.headers.items()),
        status=response.status,
        reason=response.reason,
        original_response=original,
        request_method=message.method,
        request_url=message.url,
        **waiting,
    )


class _Broken:
    """A body that raises an error when it is read."""

    closed = False

    def __init__(self, error: Exception) -> None:
        self._error = error

    def read(self, *_: Any) -> bytes:
        raise self._error

    read1 = read

    def close(self) -> None:
        self.closed = True
