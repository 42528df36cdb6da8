"""The headers that a cassette keeps: those of one transport, or of one message on its way, mean nothing to a replay.

A replayed response must not carry what its recording did not keep, and neither must the one seen while recording:
both go through `kept_response_headers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

_TRANSPORT: Final = frozenset(
    [
        "connection", "content-length", "date", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
    ]
)  # fmt: skip
_REQUEST: Final = _TRANSPORT | {
    "accept-encoding", "baggage", "expect", "host", "idempotency-key", "traceparent", "tracestate", "user-agent",
    "x-request-id",
}  # fmt: skip
_RESPONSE: Final = _TRANSPORT | {
    "age", "alt-svc", "cf-ray", "content-encoding", "nel", "openai-processing-ms", "report-to", "server-timing",
    "strict-transport-security", "via", "x-envoy-upstream-service-time",
}  # fmt: skip
_REQUEST_FAMILIES: Final = ("x-stainless-",)  # what the providers' clients tell of themselves and of a try


def kept_request_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a request that are recorded, by name in lower case, in the order of names."""
    lower = {name.lower(): value for name, value in headers.items()}
    return {
        name: lower[name]
        for name in sorted(lower)
        if name not in _REQUEST and not name.startswith(_REQUEST_FAMILIES)
    }


def kept_response_headers(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The headers of a response that are recorded, names in lower case and in order; equal names keep theirs."""
    lower = ((name.lower(), value) for name, value in headers)
    return tuple(sorted((pair for pair in lower if pair[0] not in _RESPONSE), key=lambda pair: pair[0]))
