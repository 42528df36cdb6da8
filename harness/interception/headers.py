"""Selects the headers that a cassette keeps: those that only concern one transport or one transmission are left out.

Responses have the same headers while recording and on replay: both are filtered by `kept_response_headers`.
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
# The providers' clients describe themselves and the attempt in these.
_REQUEST_FAMILIES: Final = ("x-stainless-",)


def kept_request_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request that are recorded, by name in lower case, sorted by name."""
    lower = {name.lower(): value for name, value in headers.items()}
    return {
        name: lower[name]
        for name in sorted(lower)
        if name not in _REQUEST and not name.startswith(_REQUEST_FAMILIES)
    }


def kept_response_headers(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the headers of a response that are recorded, stably sorted by name in lower case."""
    lower = ((name.lower(), value) for name, value in headers)
    return tuple(sorted((pair for pair in lower if pair[0] not in _RESPONSE), key=lambda pair: pair[0]))
