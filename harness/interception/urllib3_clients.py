"""Intercepts urllib3, and the clients built on it (requests, boto3), at the connection pool.

Retries and redirects that urllib3 makes there are part of one request.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

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
from harness.interception.stdlib_clients import as_http_client, sending

_OWN: Final = {"connection": "MaxRetryError(NewConnectionError): {}", "timeout": "ReadTimeoutError: {}"}
_PORTS: Final = {"http": 80, "https": 443}


@contextmanager
def patched_urllib3(interceptor: Interceptor) -> Iterator[None]:
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
            _timeout_s(options.get("timeout", pool.timeout)),
        )
        return _to_client_response(message, interceptor.answer_blocking(message, send), waiting)

    with patched(HTTPConnectionPool, urlopen=urlopen):
        yield


def _timeout_s(timeout: Any) -> float | None:
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


def _to_client_response(message: Request, sent: SendResult, waiting: dict[str, Any]) -> Any:
    """Return the answer as a pool returns it; it is the same live and replayed."""
    from urllib3 import HTTPHeaderDict, HTTPResponse, exceptions

    if sent.passed_through is not None:
        return sent.passed_through
    response = sent.response or Response(200)
    body = original = as_http_client(response, message.method)
    if sent.response is None:
        error = to_exception(sent.failure, [exceptions, builtins], (exceptions.HTTPError,), _OWN)
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
