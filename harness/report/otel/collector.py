"""Send spans to a collector, by OTLP over HTTP. Needs the extra `otel`."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import responses
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from harness.errors import FormatError, Problem
from harness.report.formatting import plural
from harness.report.otel.encoding import sdk
from harness.source.display import clip, printable

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

_PATH: Final = "/v1/traces"
_LOCAL: Final = "http://localhost:4318"
_MAX_TEXT: Final = 300


class Collector:
    """A collector at an address, which may end in `/v1/traces`.

    Headers, certificates, compression and the time-out are read from the variables `OTEL_EXPORTER_OTLP_…`.

    Raises:
        FormatError: this is no address (`otlp-address`).
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            message = f"'{printable(url)}' is not the address of a collector, such as {_LOCAL}"
            raise FormatError(Problem("otlp-address", message))
        self._place = printable(parts.netloc.rpartition("@")[2])
        path = parts.path.rstrip("/")
        address = parts._replace(path=path if path.endswith(_PATH) else path + _PATH).geturl()
        self._last = _LastResponse()
        exporter = sdk("exporter.otlp.proto.http.trace_exporter").OTLPSpanExporter
        self._exporter = exporter(endpoint=address, session=_session(self._last))

    def send(self, spans: Sequence[ReadableSpan]) -> None:
        """Send spans. Temporary failures are retried until the time-out.

        Raises:
            FormatError: the spans did not arrive, or the collector rejected some of them (`otlp-failed`).
        """
        with _without_logs("opentelemetry.exporter"):
            arrived = self._exporter.export(spans).name == "SUCCESS"
        if not arrived:
            raise self._failed(f"the spans did not reach the collector at {self._place}: {self._last.why}")
        if rejected := self._last.rejected:
            why = f": {self._last.text}" if self._last.text else ""
            raise self._failed(f"the collector at {self._place} did not take {plural(rejected, 'span')}{why}")

    @staticmethod
    def _failed(message: str) -> FormatError:
        return FormatError(Problem("otlp-failed", message))


class _LastResponse:
    """The result of the last request, for error messages."""

    def __init__(self) -> None:
        self.why = "no answer in time"
        self.rejected = 0
        self.text = ""

    def record_response(self, response: Any) -> None:
        status = response.status_code
        text = clip(printable(response.text.strip()), _MAX_TEXT) if status >= 400 else ""
        self.why = f"it answered {status} {responses.get(status, '')}".rstrip() + (
            f": {text}" if text else ""
        )
        if status < 400 and "protobuf" in response.headers.get("content-type", ""):
            made = sdk("proto.collector.trace.v1.trace_service_pb2").ExportTraceServiceResponse
            partial = made.FromString(response.content).partial_success
            self.rejected, self.text = partial.rejected_spans, printable(partial.error_message)

    def failed(self, error: BaseException) -> None:
        """Record a failed request, by the message of the operating system where libraries wrap it."""
        found: BaseException | None = error
        while found is not None:
            if isinstance(found, OSError) and found.strerror:
                self.why = found.strerror
            reasons = [getattr(found, "reason", None), *found.args]
            found = next((each for each in reasons if isinstance(each, BaseException)), found.__cause__)


def _session(last: _LastResponse) -> Any:
    """Return a session of requests that records the result of each request in `last`."""
    from requests import RequestException, Session

    class _RecordingSession(Session):
        def send(self, request: Any, **kwargs: Any) -> Any:
            try:
                response = super().send(request, **kwargs)
            except RequestException as error:
                last.failed(error)
                raise
            last.record_response(response)
            return response

    return _RecordingSession()


@contextmanager
def _without_logs(name: str) -> Iterator[None]:
    """Suppress the output of a logger."""
    logger = logging.getLogger(name)
    handler, propagates = logging.NullHandler(), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = propagates
        logger.removeHandler(handler)
