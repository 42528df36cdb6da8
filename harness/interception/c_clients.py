"""Intercepts clients whose connections are made in C or Rust, where no closed network stops them.

No stub can write the answers of gRPC: a chat model is answered elsewhere, any other call is refused. yfinance uses
curl_cffi, and the search of DuckDuckGo primp.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlencode, urljoin

from harness.errors import WorldError
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
from harness.interception.real_effects import not_intercepted, raise_unanswerable


@contextmanager
def patched_grpc(module: Any, interceptor: Interceptor) -> Iterator[None]:
    """Intercept the calls that the classes of a module of gRPC make."""
    with ExitStack() as patches:
        for name, owner in list(vars(module).items()):
            if name.endswith("MultiCallable") and owner.__module__ == module.__name__:
                # What is called through `_blocking` has a `future`, too.
                entries = [each for each in ("_blocking", "future") if each in vars(owner)] or ["__call__"]
                made = {
                    each: _claimed(vars(owner)[each], interceptor, _method)
                    for each in entries
                    if each in vars(owner)
                }
                patches.enter_context(patched(owner, **made))
        channel = getattr(module, "Channel", None)
        if channel is not None and "subscribe" in vars(channel):  # waiting for a connection would never end
            connect = _claimed(channel.subscribe, interceptor, lambda self: self._channel.target())
            patches.enter_context(patched(channel, subscribe=connect))
        yield


def _method(call: Any) -> Any:
    return call._method


def _claimed(
    original: Callable[..., Any], interceptor: Interceptor, name_of: Callable[[Any], bytes | str]
) -> Callable[..., Any]:
    @wraps(original)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        if not not_intercepted.get():
            name = name_of(self)
            address = f"grpc://{(name.decode() if isinstance(name, bytes) else name).lstrip('/')}"
            if interceptor.claim(Request("POST", address, {}, b"")) is not None:
                raise_unanswerable(
                    WorldError(f"an http stub cannot answer {address}: gRPC has answers of its own")
                )
            sys.audit("socket.connect", None, address)
        return original(self, *args, **options)

    return call


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


# ---------------------------------------------------------------- primp

_METHODS: Final = ("get", "head", "options", "delete", "post", "put", "patch")
_OPTIONS: Final = ("params", "headers", "cookies", "content", "data", "json", "files")
"""In the order of its functions."""
_OF_PRIMP: Final = {"connection": "ConnectError: {}", "timeout": "TimeoutError: {}"}


@contextmanager
def patched_primp(module: Any, interceptor: Interceptor) -> Iterator[None]:
    """Intercept the requests of the clients of primp. Its functions without a client are those of a new one."""

    def blocking(really: Callable[..., Any]) -> Callable[..., Any]:
        def request(client: Any, method: str, url: str, *args: Any, **options: Any) -> Any:
            options |= zip(_OPTIONS, args, strict=False)
            if not_intercepted.get():
                return really(client, method, url, **options)
            received: list[Any] = []

            def send() -> SendResult:
                try:
                    received.append(really(client, method, url, **options))
                except module.PrimpError as error:
                    return SendResult(None, failure=failure_text(error))
                return _sent_by_primp(received[0])

            message = _request(client, method, url, **options)
            sent = interceptor.answer_blocking(message, send)
            return received[0] if received else _PrimpResponse.of(module, message, sent)

        return request

    def awaited(really: Callable[..., Any]) -> Callable[..., Any]:
        async def request(client: Any, method: str, url: str, *args: Any, **options: Any) -> Any:
            options |= zip(_OPTIONS, args, strict=False)
            if not_intercepted.get():
                return await really(client, method, url, **options)
            received: list[Any] = []

            async def send() -> SendResult:
                try:
                    received.append(await really(client, method, url, **options))
                except module.PrimpError as error:
                    return SendResult(None, failure=failure_text(error))
                return _sent_by_primp(received[0])

            message = _request(client, method, url, **options)
            sent = await interceptor.answer(message, send)
            return received[0] if received else _PrimpResponse.of(module, message, sent)

        return request

    with ExitStack() as patches:
        for owner, made in ((module.Client, blocking), (module.AsyncClient, awaited)):
            request = made(owner.request)
            methods = {name: _of_method(request, name) for name in _METHODS if name in vars(owner)}
            patches.enter_context(patched(owner, request=request, **methods))
        names = [name for name in (*_METHODS, "request") if name in vars(module)]
        functions = {name: _of_new_client(module, name) for name in names}
        patches.enter_context(patched(module, **functions))
        yield


def _of_method(request: Callable[..., Any], name: str) -> Callable[..., Any]:
    return lambda client, url, *args, **options: request(client, name.upper(), url, *args, **options)


def _of_new_client(module: Any, name: str) -> Callable[..., Any]:
    return lambda *args, **options: getattr(module.Client(), name)(*args, **options)


def _sent_by_primp(response: Any) -> SendResult:
    headers = kept_response_headers(response.headers.items())
    return SendResult(Response(response.status_code, "", headers, response.content))


class _PrimpResponse:
    """A response of primp, which only its own client can make."""

    encoding = "utf-8"

    def __init__(self, url: str, response: Response) -> None:
        self.url, self.status_code, self.content = url, response.status, response.body
        self.headers, self.cookies = dict(response.headers), dict[str, str]()
        self.text = self.text_plain = self.text_rich = self.text_markdown = response.body.decode()

    @classmethod
    def of(cls, module: Any, request: Request, sent: SendResult) -> _PrimpResponse:
        if sent.response is None:
            raise to_exception(sent.failure, [module], (module.PrimpError,), _OF_PRIMP)
        return cls(request.url, sent.response)

    def json(self) -> Any:
        return json.loads(self.content)

    def read(self) -> bytes:
        return self.content
