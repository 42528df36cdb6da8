"""Posts of the exporter of the OpenAI Agents SDK."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.traces.messages import failure_of, set_values, usage_of
from harness.traces.spans import Kind, Span, mapping, seconds_of

_KINDS: Final[Mapping[str, Kind]] = {
    **{"generation": "model", "response": "model", "function": "tool", "handoff": "route", "agent": "agent"},
}


def recognises(records: Sequence[Any]) -> bool:
    """True for traces and spans of the SDK."""
    return any(str(each.get("object")).startswith("trace") for each in _items(records))


def read(records: Sequence[Any]) -> Iterator[Span]:
    """Yield the spans. A group of traces is a conversation."""
    traces = {str(each["id"]): each for each in _items(records) if each.get("object") == "trace"}
    for each in _items(records):
        if each.get("object") == "trace.span":
            yield _span(each, mapping(each.get("span_data")), traces.get(str(each.get("trace_id")), {}))


def _items(records: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    for record in map(mapping, records):
        inside = record.get("data")
        yield from map(mapping, inside if isinstance(inside, list) else [record])


def _span(record: Mapping[str, Any], data: Mapping[str, Any], trace: Mapping[str, Any]) -> Span:
    start = seconds_of(record["started_at"])
    named = mapping(data.get("data")).get("name") or data.get("model") or data.get("name")
    span = Span(
        id=str(record["id"]),
        parent=str(record.get("parent_id") or ""),
        trace=str(record.get("trace_id")),
        name=str(named or ("" if data.get("type") == "response" else trace.get("workflow_name") or "")),
        kind=_KINDS.get(str(data.get("type")), "step"),
        start=start,
        end=seconds_of(record.get("ended_at")) or start,
        source="openai_agents",
        thread=str(trace.get("group_id") or ""),
        failure=failure_of("", str(mapping(record["error"]).get("message"))) if record.get("error") else None,
        usage=usage_of(data.get("usage")),
        call=str(data.get("response_id") or ""),
    )
    set_values(span, data.get("input", data.get("from_agent")), data.get("output", data.get("to_agent")))
    return span
