"""What the exporter of the OpenAI Agents SDK posts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.traces.messages import failure_of, reply_of, request_of, unwrapped
from harness.traces.spans import ABSENT, Kind, Span, seconds_of

_KINDS: Final[Mapping[str, Kind]] = {
    **{"generation": "model", "response": "model", "function": "tool", "handoff": "route", "agent": "agent"},
    **{"custom": "step", "guardrail": "step"},
}


def recognises(records: Sequence[Any]) -> bool:
    """True for traces and spans of the SDK."""
    return any(str(each.get("object")).startswith("trace") for each in _items(records))


def read(records: Sequence[Any]) -> Iterator[Span]:
    """Yield the spans. A group of traces is a conversation."""
    items = [*_items(records)]
    groups = {str(each["id"]): each for each in items if each.get("object") == "trace"}
    for each in items:
        if each.get("object") == "trace.span" and isinstance(each.get("span_data"), Mapping):
            trace = groups.get(str(each.get("trace_id")), {})
            yield _span(each, each["span_data"], trace)


def _items(records: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    for record in records:
        if isinstance(record, Mapping):
            inside = record["data"] if isinstance(record.get("data"), list) else [record]
            yield from (each for each in inside if isinstance(each, Mapping))


def _span(record: Mapping[str, Any], data: Mapping[str, Any], trace: Mapping[str, Any]) -> Span:
    start = seconds_of(record["started_at"])
    error = record.get("error") or {}
    inner = data.get("data") if isinstance(data.get("data"), Mapping) else {}
    span = Span(
        id=str(record["id"]),
        parent=str(record.get("parent_id") or ""),
        trace=str(record.get("trace_id")),
        name=str(inner.get("name") or data.get("name") or trace.get("workflow_name") or data.get("type")),
        kind=_KINDS.get(str(data.get("type")), "step"),
        start=start,
        end=seconds_of(record.get("ended_at")) or start,
        source="openai_agents",
        thread=str(trace.get("group_id") or ""),
        failure=failure_of("", str(error.get("message") or "")) if error else None,
    )
    given, gave = data.get("input"), data.get("output")
    if span.kind == "model":
        span.name = str(data.get("model") or "")
        span.input = request_of(given)[0] if given else ABSENT
        span.output = reply_of(gave) if gave else ABSENT
        span.call = str(data.get("response_id") or "")
        used = data.get("usage") or {}
        span.usage = {key: int(used[key]) for key in ("input_tokens", "output_tokens") if used.get(key)}
    elif span.kind == "tool":
        span.input = ABSENT if given is None else unwrapped(given)
        span.output = ABSENT if gave is None else unwrapped(gave)
    elif span.kind == "route":
        span.input, span.output = data.get("from_agent"), data.get("to_agent")
    return span
