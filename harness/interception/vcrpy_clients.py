"""Intercepts httplib2 and tornado by vcrpy's patches. Their failures are not recorded."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

from harness.interception.interceptor import Interceptor
from harness.interception.messages import PreparedReply, Request, Response, SendResult
from harness.interception.patches import body_of, grouped, headers_of, kept_response_headers, patched
from harness.interception.real_effects import charge_since, current_effects, not_intercepted
from harness.time.real import real


@contextmanager
def patched_httplib2(interceptor: Interceptor) -> Iterator[None]:
    """Intercept the requests of httplib2."""
    from vcr import patch
    from vcr.stubs.httplib2_stubs import VCRHTTPConnectionWithTimeout, VCRHTTPSConnectionWithTimeout

    # Its classes must keep their names, by which they look each other up.
    schemes = {"http": VCRHTTPConnectionWithTimeout, "https": VCRHTTPSConnectionWithTimeout}
    with ExitStack() as patches:
        patches.enter_context(_quiet())
        cassette = _cassette(interceptor)
        cassette.custom_patches = ((sys.modules["httplib2"], "SCHEME_TO_CONNECTION", schemes),)
        cassette.skip_patchers = patch.PATCHER_NAMES
        # While it sends, vcrpy removes all patches, in all threads. That is not needed for the patches used here.
        patches.enter_context(patched(patch, force_reset=nullcontext))
        for patcher in patch.CassettePatcherBuilder(cassette).build():
            patches.enter_context(patcher)
        yield


def patched_tornado(module: str, name: str) -> Callable[[Interceptor], AbstractContextManager[None]]:
    """Return the patch for the requests of a client of tornado, the class `name` of a module."""

    def patch(interceptor: Interceptor) -> AbstractContextManager[None]:
        client = getattr(sys.modules[module], name)
        really = client.fetch_impl

        def fetch_impl(*args: Any) -> None:
            from vcr.stubs.tornado_stubs import vcr_fetch_impl

            with _quiet():
                vcr_fetch_impl(_cassette(interceptor), really)(*args)

        return patched(client, fetch_impl=fetch_impl)

    return patch


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


def _cassette(interceptor: Interceptor) -> Any:
    """Return a cassette for vcrpy's patches that forwards to the interceptor."""
    from vcr.cassette import Cassette
    from vcr.record_mode import RecordMode

    class Bridge(Cassette):  # type: ignore[misc]
        """Forwards requests to the interceptor. vcrpy asks before it sends a request, maybe twice."""

        def can_play_response_for(self, request: Any) -> bool:
            if not_intercepted.get():
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
            request.harness_found = None
            sent = interceptor.reply_blocking(found)
            if sent.response is None:
                raise ConnectionError(sent.failure)
            return to_vcr_response(sent.response)

        def append(self, request: Any, response: Any) -> None:
            if not not_intercepted.get():
                received = from_vcr_response(response)
                request.harness_permit.answered(received)
                place, seconds = (
                    interceptor.begin(from_vcr_request(request)),
                    charge_since(*request.harness_began),
                )
                interceptor.received(place, SendResult(received), seconds)
                request.harness_permit.spent(received)
                interceptor.end(place, SendResult(received), seconds)

    return Bridge("", record_mode=RecordMode.NEW_EPISODES)


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
