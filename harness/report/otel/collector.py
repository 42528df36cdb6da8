"""Encode spans as those of OpenTelemetry, and send them to a collector, by OTLP over HTTP. Needs the extra `otel`."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from http.client import responses
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from harness import __version__
from harness.errors import FormatError, Problem
from harness.report.encoding import encode
from harness.report.formatting import plural
from harness.report.otel.spans import RunSpans, Span
from harness.source.display import clip, printable
from harness.source.imports import import_extra

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan


_PURPOSE: Final = "to write runs as OpenTelemetry spans"
_SCOPE: Final = "harness"
_NANO: Final = 1_000_000_000
_MAX_SPANS: Final = 500
_IDS: Final = ("traceId", "spanId", "parentSpanId")


def require_extra() -> None:
    """Check that the extra is installed.

    Raises:
        ExtraMissing: it is not.
    """
    for name in ("sdk.trace", "exporter.otlp.proto.http.trace_exporter"):
        sdk(name)


def sdk(name: str) -> Any:
    """Import a module of OpenTelemetry's SDK or exporter.

    Raises:
        ExtraMissing: the extra is not installed.
    """
    return import_extra(f"opentelemetry.{name}", "otel", _PURPOSE)


def batches(runs: Iterable[RunSpans], start: int | None, *, content: bool) -> Iterator[list[ReadableSpan]]:
    """Yield OpenTelemetry spans in batches of a suitable size for one request. A run is never split.

    `start` is the beginning of virtual time, in nanoseconds since 1970; None for that of each run. Error messages are
    omitted without `content`.
    """
    resource = _resource()
    batch: list[ReadableSpan] = []
    for run in runs:
        began = int(run.began.timestamp()) * _NANO + run.began.microsecond * 1000 if start is None else start
        made = [_readable(run, span, began, resource, content) for span in run.spans]
        if batch and len(batch) + len(made) > _MAX_SPANS:
            yield batch
            batch = []
        batch += made
    if batch:
        yield batch


def _resource() -> Resource:
    """Return the resource: this harness, overridden by `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`."""
    resources = sdk("sdk.resources")
    own = {"service.name": "harness", "service.version": __version__, "harness.time": "virtual"}
    given = resources.OTELResourceDetector().detect()
    resource: Resource = resources.Resource(own).merge(given)
    return resource


def _readable(run: RunSpans, span: Span, start: int, resource: Resource, content: bool) -> ReadableSpan:
    api, trace = sdk("trace"), sdk("sdk.trace")

    def context(number: int) -> Any:
        flags = api.TraceFlags(api.TraceFlags.SAMPLED)
        return api.SpanContext(run.trace_id, run.span_id(number), is_remote=False, trace_flags=flags)

    def moment(at: float) -> int:
        return start + round(at * _NANO)

    attributes = span.attributes | ({"error.type": span.error} if span.error else {})
    description = span.message if content and span.message else None
    status = api.Status(api.StatusCode.ERROR, description) if span.error else api.Status()
    made: ReadableSpan = trace.ReadableSpan(
        span.name,
        context=context(span.number),
        parent=None if span.parent is None else context(span.parent),
        resource=resource,
        attributes=attributes,
        events=[trace.Event(each.name, each.attributes, moment(each.at)) for each in span.events],
        kind=api.SpanKind.CLIENT if span.is_remote else api.SpanKind.INTERNAL,
        status=status,
        start_time=moment(span.start),
        end_time=moment(span.start if span.end is None else span.end),
        instrumentation_scope=sdk("sdk.util.instrumentation").InstrumentationScope(_SCOPE, __version__),
    )
    return made


def json_line(spans: Sequence[ReadableSpan]) -> str:
    """Return an OTLP request as one line of JSON, with ids in hexadecimal and enumerations as numbers."""
    message = sdk("exporter.otlp.proto.common.trace_encoder").encode_spans(spans)
    to_dict = import_extra("google.protobuf.json_format", "otel", _PURPOSE).MessageToDict
    request = to_dict(message, use_integers_for_enums=True)
    for of_resource in request["resourceSpans"]:
        for of_scope in of_resource["scopeSpans"]:
            for span in of_scope["spans"]:
                span |= {name: base64.b64decode(span[name]).hex() for name in _IDS if name in span}
    return encode(request)


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
