"""Langfuse's exports: traces with their observations, and lists of observations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.traces.messages import failure_of, set_values, unwrapped, usage_of
from harness.traces.spans import Kind, Span, mapping, seconds_of

_KINDS: Final[Mapping[str, Kind]] = {
    **{"GENERATION": "model", "TOOL": "tool", "RETRIEVER": "retrieval", "AGENT": "agent"},
    **{"EMBEDDING": "other", "EVENT": "other", "GUARDRAIL": "other", "EVALUATOR": "other"},
}


def recognises(records: Sequence[Any]) -> bool:
    """True for traces with observations, and for observations."""
    return any(_observations(records))


def read(records: Sequence[Any]) -> Iterator[Span]:
    """Yield the observations as spans."""
    return map(_span, _observations(records))


def _observations(records: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    for record in map(mapping, records):
        inside = record.get("observations", record.get("data"))
        session = record.get("sessionId") or mapping(record.get("metadata")).get("thread_id")
        for each in map(mapping, inside if isinstance(inside, list) else [record]):
            if "startTime" in each and "traceId" in each and "type" in each:
                yield {"session": session, **each}


def _span(record: Mapping[str, Any]) -> Span:
    meta = mapping(unwrapped(record.get("metadata")))
    start = seconds_of(record["startTime"])
    failure = failure_of("", str(told)) if (told := record.get("statusMessage")) else None
    span = Span(
        id=str(record["id"]),
        parent=str(record.get("parentObservationId") or ""),
        trace=str(record["traceId"]),
        name=str(record.get("name") or ""),
        kind=_KINDS.get(str(record["type"]), "step"),
        start=start,
        end=seconds_of(record.get("endTime")) or start,
        source=str(mapping(meta.get("scope")).get("name") or "langfuse"),
        thread=str(record.get("sessionId") or meta.get("thread_id") or record.get("session") or ""),
        failure=failure if failure and (failure.is_pause or record.get("level") == "ERROR") else None,
        usage=usage_of(record.get("usageDetails")) or usage_of(record.get("usage")),
    )
    span.in_graph(meta)
    if span.kind == "model":
        span.name = str(record.get("model") or span.name)
        span.call = str(mapping(meta.get("attributes")).get("gen_ai.response.id") or "")
    set_values(span, record.get("input"), record.get("output"))
    return span
