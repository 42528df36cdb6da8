"""Convert spans to OpenTelemetry's own, and these to JSON lines in the format of the collector's file exporter.

Needs the extra `otel`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from harness import __version__
from harness.report.encoding import encode
from harness.report.otel.spans import RunSpans, Span
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
