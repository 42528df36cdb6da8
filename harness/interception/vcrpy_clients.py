"""Intercepts httplib2, tornado and aiohttp with vcrpy, which converts their requests and responses.

Failures of httplib2 and tornado are not recorded. For aiohttp, matching, waiting and failures are done here.
"""

from __future__ import annotations

import asyncio
import builtins
import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from typing import Any, Final

from harness.interception.interceptor import Interceptor, NoPermit, Permit, Place
from harness.interception.messages import PreparedReply, Request, Response, SendResult
from harness.interception.patches import (
    body_of,
    failure_text,
    grouped,
    headers_of,
    kept_response_headers,
    patched,
    to_exception,
)
from harness.interception.real_effects import charge_since, current_effects, not_intercepted
from harness.time.paced import RealWork, real_timers
from harness.time.real import real

_OF_TORNADO: Final = {
    "tornado.simple_httpclient": "SimpleAsyncHTTPClient",
    "tornado.curl_httpclient": "CurlAsyncHTTPClient",
}


@contextmanager
def patched_httplib2(module: Any, interceptor: Interceptor) -> Iterator[None]:
    """Intercept the requests of httplib2."""
    from vcr import patch

    with _quiet():
        cassette, schemes = _httplib2_schemes()
        with (
            patched(cassette, interceptor=interceptor),
            patched(module, SCHEME_TO_CONNECTION=schemes),
            # While it sends, vcrpy removes all patches, in all threads. That is not needed for the patches used here.
            patched(patch, force_reset=nullcontext),
        ):
            yield


@cache
def _httplib2_schemes() -> tuple[Any, dict[str, type]]:
    """Return a cassette, and the classes of httplib2's connections with it, by scheme.

    A class is an expensive object, which only the garbage collector frees.
    """
    from vcr.stubs.httplib2_stubs import VCRHTTPConnectionWithTimeout, VCRHTTPSConnectionWithTimeout

    cassette = _cassette(None)
    # They must keep their names, by which they look each other up.
    http, https = (
        type(base.__name__, (base,), {"cassette": cassette})
        for base in (VCRHTTPConnectionWithTimeout, VCRHTTPSConnectionWithTimeout)
    )
    return cassette, {"http": http, "https": https}


def patched_tornado(module: Any, interceptor: Interceptor) -> AbstractContextManager[None]:
    """Intercept the requests of the client of tornado that a module has."""
    client = getattr(module, _OF_TORNADO[module.__name__])
    really = client.fetch_impl

    def fetch_impl(*args: Any) -> None:
        from vcr.stubs.tornado_stubs import vcr_fetch_impl

        with _quiet():
            vcr_fetch_impl(_cassette(interceptor), really)(*args)

    return patched(client, fetch_impl=fetch_impl)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep vcrpy's records of what it does out of the log, unless the app asked for them."""
    logger = logging.getLogger("vcr")
    asked = logger.level != logging.NOTSET
    if not asked:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        if not asked:
            logger.setLevel(logging.NOTSET)


def _cassette(interceptor: Interceptor | None) -> Any:
    """Return a cassette for vcrpy's patches that forwards to its interceptor, which may be replaced."""
    from vcr.record_mode import RecordMode

    cassette = _bridge()("", record_mode=RecordMode.NEW_EPISODES)
    cassette.interceptor = interceptor
    return cassette


@cache
def _bridge() -> Any:
    from vcr.cassette import Cassette

    class Bridge(Cassette):  # type: ignore[misc]
        """Forwards requests to its interceptor, if it has one. vcrpy asks before it sends a request, maybe twice."""

        interceptor: Interceptor | None

        def can_play_response_for(self, request: Any) -> bool:
            interceptor = self.interceptor
            if not_intercepted.get() or interceptor is None:
                return False
            if _found(request) is None:
                request.harness_found = interceptor.claim(message := from_vcr_request(request))
                if request.harness_found is None and not hasattr(request, "harness_permit"):
                    request.harness_permit = interceptor.permit(message, patient=False)
                    interceptor.admitted_blocking(request.harness_permit)
                request.harness_began = real.monotonic(), current_effects()
            return _found(request) is not None

        def play_response(self, request: Any) -> Any:
            found = _found(request)
            assert found is not None  # vcrpy asks first
            assert self.interceptor is not None
            request.harness_found = None
            sent = self.interceptor.reply_blocking(found)
            if sent.response is None:
                raise ConnectionError(sent.failure)
            return to_vcr_response(sent.response)

        def append(self, request: Any, response: Any) -> None:
            interceptor = self.interceptor
            if not_intercepted.get() or interceptor is None:
                return
            received = from_vcr_response(response)
            request.harness_permit.answered(received)
            place, seconds = (
                interceptor.begin(from_vcr_request(request)),
                charge_since(*request.harness_began),
            )
            interceptor.received(place, SendResult(received), seconds)
            request.harness_permit.spent(received)
            interceptor.end(place, SendResult(received), seconds)

    return Bridge


def _found(request: Any) -> PreparedReply | None:
    return getattr(request, "harness_found", None)


def from_vcr_request(request: Any) -> Request:
    """Convert a request of vcrpy."""
    return Request(request.method, request.uri, headers_of(request.headers), body_of(request.body))


def from_vcr_response(response: Any) -> Response:
    """Convert a response of vcrpy, and decode its body."""
    from vcr.filters import decode_response

    decoded = decode_response({**response, "headers": dict(response["headers"])})
    headers = [
        (str(name).lower(), str(value))
        for name, values in decoded["headers"].items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    status, body = decoded["status"], decoded["body"].get("string") or b""
    body = body.encode() if isinstance(body, str) else body
    return Response(status["code"], status["message"] or "", kept_response_headers(headers), body)


def to_vcr_response(response: Response) -> dict[str, Any]:
    """Convert a response to vcrpy's form."""
    status = {"code": response.status, "message": response.reason}
    return {"status": status, "headers": grouped(response.headers), "body": {"string": response.body}}


_OWN: Final = {"connection": "ClientConnectorError: {}", "timeout": "ServerTimeoutError: {}"}


@contextmanager
def patched_aiohttp(aiohttp: Any, interceptor: Interceptor) -> Iterator[None]:
    """Intercept the requests of aiohttp."""
    # vcrpy saves the original functions when it is imported, so import it before patching.
    from vcr.stubs.aiohttp_stubs import vcr_request

    request_really = aiohttp.ClientSession._request
    failures = (aiohttp.ClientError, OSError)

    async def request(session: Any, method: str, url: Any, **options: Any) -> Any:
        if not_intercepted.get():
            return await request_really(session, method, url, **options)
        options = await _with_bytes(aiohttp, session, options)
        timeout_s = _timeout_s(options.get("timeout", session.timeout))
        cassette = _Cassette(interceptor, session._base_url, timeout_s)
        work = RealWork()
        response, failure = None, None

        async def send(*args: Any, **given: Any) -> Any:
            """Send a request that nothing recorded answers, again if its host asks for that."""
            nonlocal work
            cassette.permit = interceptor.permit(cassette.message, patient=True)
            while True:
                work.abandon()
                await interceptor.admitted(cassette.permit)
                work = RealWork()
                received = await request_really(*args, **given)
                if not cassette.permit.answered(Response(received.status, headers=_lower_headers(received))):
                    return received
                received.release()

        try:
            with real_timers():
                response = await vcr_request(cassette, send)(session, method, url, **options)
        except _NoResponse as none:
            text = str(none)
            failure = to_exception(text, [aiohttp, builtins], failures, _OWN) if text else None
        except failures as error:
            failure = error
        except BaseException as error:
            work.abandon()
            cassette.permit.close()
            cassette.abort(is_cancelled=isinstance(error, asyncio.CancelledError))
            raise
        if cassette.played:
            work.abandon()
            for played in cassette.played:
                await interceptor.wait_for(played)
        else:
            cassette.spent(work.elapsed_s)
            cassette.end(await work.end(), failure)
        if failure is not None:
            raise failure
        return response

    with patched(aiohttp.ClientSession, _request=request):
        yield


def _timeout_s(timeout: Any) -> float | None:
    """Return the time limit for an answer, in seconds, given a number or a `ClientTimeout`. 0 means no limit."""
    return (timeout if isinstance(timeout, (int, float)) else getattr(timeout, "total", None)) or None


async def _with_bytes(aiohttp: Any, session: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a request with its body as aiohttp sends it: as bytes, with their content type.

    vcrpy takes a body as it is given: JSON data, a form, an iterator.
    """
    data, json = options.get("data"), options.get("json")
    if (data is None) == (json is None):  # no body, or two, which aiohttp refuses
        return dict(options)
    payload = _json_payload(aiohttp, session, json) if data is None else _payload(aiohttp, data)
    written = _Written()
    await payload.write(written)
    headers = session._prepare_headers(options.get("headers"))
    skipped = {*session.skip_auto_headers, *(options.get("skip_auto_headers") or ())}
    if "content-type" not in {name.lower() for name in (*headers, *skipped)}:
        headers["content-type"] = payload.headers["content-type"]
    return {**options, "data": bytes(written.body), "json": None, "headers": headers}


def _json_payload(aiohttp: Any, session: Any, value: Any) -> Any:
    to_bytes = getattr(session, "_json_serialize_bytes", None)  # not in all versions of aiohttp
    if to_bytes is not None:
        return aiohttp.JsonBytesPayload(value, dumps=to_bytes)
    return aiohttp.JsonPayload(value, dumps=session.json_serialize)


def _payload(aiohttp: Any, data: Any) -> Any:
    made = data() if isinstance(data, aiohttp.FormData) else data
    try:
        return aiohttp.get_payload(made, disposition=None)
    except aiohttp.payload.LookupError:
        return aiohttp.FormData(made)()


class _Written:
    """A stream that a body is written to."""

    def __init__(self) -> None:
        self.body = bytearray()

    async def write(self, chunk: bytes) -> None:
        self.body += chunk


class _NoResponse(Exception):
    """No response arrived when the request was recorded. Its text is the failure, "" if nothing ever arrives."""


def _lower_headers(response: Any) -> tuple[tuple[str, str], ...]:
    return tuple((name.lower(), value) for name, value in response.headers.items())


class _Cassette:
    """A request and its redirects, in the form of a vcrpy cassette."""

    write_protected = False

    def __init__(self, interceptor: Interceptor, base_url: Any, timeout_s: float | None) -> None:
        self.interceptor, self.base_url, self.timeout_s = interceptor, base_url, timeout_s
        self.played: list[PreparedReply] = []
        self.permit: Permit = NoPermit()
        self.message = Request("GET", "")
        """The request that is sent."""
        self._place: Place | None = None
        self._results: list[tuple[Request, SendResult]] = []

    # ------------------------------------------------------------ what vcrpy calls

    def filter_request(self, request: Any) -> Any:
        return request

    def find_requests_with_most_matches(self, request: Any) -> list[tuple[Any]]:
        return [(request,)]

    def can_play_response_for(self, request: Any) -> bool:
        if self.base_url is not None:
            request.uri = str(self.base_url.join(type(self.base_url)(request.uri)))
        self.message = message = replace(from_vcr_request(request), timeout_s=self.timeout_s)
        found = self.interceptor.claim(message)
        if found is not None:
            self.played.append(found)
        else:
            self._place = self.interceptor.begin(message)
        return found is not None

    def play_response(self, request: Any) -> Any:
        found = self.played[-1]
        if found.response is None:
            raise _NoResponse(found.failure)
        return to_vcr_response(found.response)

    def append(self, request: Any, response: Any) -> None:
        self._results.append((from_vcr_request(request), SendResult(from_vcr_response(response))))

    # ------------------------------------------------------------ how it ended

    def spent(self, seconds: float) -> None:
        """Keep the response, if there is one, and tell what the request cost."""
        if self._results and self._place is not None:
            self.interceptor.received(self._place, self._results[0][1], seconds)
            self.permit.spent(self._results[0][1].response)
        self.permit.close()

    def end(self, seconds: float, failure: Exception | None) -> None:
        """Report the results of the request and its redirects, after so many seconds."""
        if not self._results and failure is not None and self._place is not None:
            self.interceptor.end(self._place, SendResult(None, failure=failure_text(failure)), seconds)
        for number, (request, sent) in enumerate(self._results):
            place = self.interceptor.begin(request) if number or self._place is None else self._place
            self.interceptor.end(place, sent, 0.0 if number else seconds)

    def abort(self, *, is_cancelled: bool) -> None:
        """Report that the client stopped waiting (`is_cancelled`), or that the result is unknown."""
        if self._place is not None and not is_cancelled:
            self.interceptor.drop(self._place)
