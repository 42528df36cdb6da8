"""Intercepts curl_cffi, which yfinance uses. Its requests are made in C, where no closed network stops them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlencode, urljoin

from harness.interception.interceptor import Interceptor
from harness.interception.messages import Request, Response, SendResult
from harness.interception.patches import (
    body_of,
    failure_text,
    headers_of,
    kept_response_headers,
    patched,
    to_exception,
)
from harness.interception.real_effects import not_intercepted

MODULE: Final = "curl_cffi.requests.session"
_OWN: Final = {"connection": "ConnectionError: {}", "timeout": "ReadTimeout: {}"}


@contextmanager
def patched_curl_cffi(module: Any, interceptor: Interceptor) -> Iterator[None]:
    """Intercept the requests of curl_cffi, blocking and asynchronous. A stream is answered as a whole."""
    failures = (module.RequestException,)
    really, really_async = module.Session.request, module.AsyncSession.request

    def request(session: Any, method: str, url: str, *args: Any, **options: Any) -> Any:
        if not_intercepted.get():
            return really(session, method, url, *args, **options)
        received: list[Any] = []

        def send() -> SendResult:
            try:
                received.append(really(session, method, url, *args, **options))
            except failures as error:
                return SendResult(None, failure=failure_text(error))
            return _sent(received[0])

        message = _request(session, method, url, *args, **options)
        sent = interceptor.answer_blocking(message, send)
        return received[0] if received else _to_response(module, session, message, sent)

    async def request_async(session: Any, method: str, url: str, *args: Any, **options: Any) -> Any:
        if not_intercepted.get():
            return await really_async(session, method, url, *args, **options)
        received: list[Any] = []

        async def send() -> SendResult:
            try:
                received.append(await really_async(session, method, url, *args, **options))
            except failures as error:
                return SendResult(None, failure=failure_text(error))
            return _sent(received[0])

        message = _request(session, method, url, *args, **options)
        sent = await interceptor.answer(message, send)
        return received[0] if received else _to_response(module, session, message, sent)

    with (
        patched(module.Session, request=request),
        patched(module.AsyncSession, request=request_async),
    ):
        yield


def _request(
    session: Any,
    method: str,
    url: str,
    params: Any = None,
    data: Any = None,
    content: Any = None,
    json: Any = None,
    headers: Any = None,
    *_: Any,
    timeout: Any = None,
    **_options: Any,
) -> Request:
    if base := getattr(session, "base_url", None):
        url = urljoin(base, url)
    given = [*_pairs(getattr(session, "params", None)), *_pairs(params)]
    if given:
        url += ("&" if "?" in url else "?") + urlencode(given, doseq=True)
    sent = {**headers_of(session.headers or {}), **headers_of(headers or {})}
    if json is not None:
        body, kind = _dumped(json), "application/json"
    elif isinstance(data, Mapping | list | tuple):
        body, kind = urlencode(_pairs(data), doseq=True).encode(), "application/x-www-form-urlencoded"
    else:
        body, kind = body_of(data if data is not None else content), ""
    if kind:
        sent.setdefault("content-type", kind)
    limit = timeout[-1] if isinstance(timeout, tuple) else timeout
    return Request(method, url, sent, body, limit if isinstance(limit, int | float) else None)


def _dumped(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _pairs(given: Any) -> list[tuple[str, Any]]:
    return list(given.items() if isinstance(given, Mapping) else given or ())


def _sent(response: Any) -> SendResult:
    headers = kept_response_headers((name, value or "") for name, value in response.headers.multi_items())
    return SendResult(Response(response.status_code, response.reason, headers, response.content))


def _to_response(module: Any, session: Any, request: Request, sent: SendResult) -> Any:
    if sent.response is None:
        exceptions = import_module("curl_cffi.requests.exceptions")
        raise to_exception(sent.failure, [exceptions], (exceptions.RequestException,), _OWN)
    response = getattr(session, "response_class", module.Response)()
    response.url, response.content = request.url, sent.response.body
    response.status_code, response.reason = sent.response.status, sent.response.reason
    response.ok = response.status_code < 400
    response.headers = module.Headers([*sent.response.headers])
    return response
