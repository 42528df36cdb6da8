"""Langfuse's exports: traces with their observations, and lists of observations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.traces.messages import failure_of, reply_of, request_of, result_of, unwrapped
from harness.traces.spans import ABSENT, Kind, Span, arguments_of, seconds_of

_KINDS: Final[Mapping[str, Kind]] = {
    **{"GENERATION": "model", "TOOL": "tool", "RETRIEVER": "retrieval", "AGENT": "agent"},
    **{"EMBEDDING": "other", "EVENT": "other", "GUARDRAIL": "other", "EVALUATOR": "other"},
}


def recognises(records: Sequence[Any]) -> bool:
    """True for traces with observations, and for observations."""
    return any(_is_observation(each) for each in _observations(records))


def read(records: Sequence[Any]) -> Iterator[Span]:
    """Yield the observations as spans."""
    for each in _observations(records):
        if _is_observation(each):
            yield _span(each)


def _observations(records: Sequence[Any]) -> Iterator[Any]:
    for record in records:
        if not isinstance(record, Mapping):
            continue
        inside = record.get("observations", record.get("data"))
        if not isinstance(inside, list):
            yield record
            continue
        session = record.get("sessionId")
        metadata = record.get("metadata") if "observations" in record else None
        thread = session or (metadata.get("thread_id") if isinstance(metadata, Mapping) else None)
        yield from ({"thread": thread, **each} for each in inside if isinstance(each, Mapping))


def _is_observation(value: Any) -> bool:
    return isinstance(value, Mapping) and "startTime" in value and "traceId" in value and "type" in value


def _span(record: Mapping[str, Any]) -> Span:
    meta = unwrapped(record.get("metadata"))
    meta = meta if isinstance(meta, Mapping) else {}
    attributes = meta.get("attributes") if isinstance(meta.get("attributes"), Mapping) else {}
    scope = meta.get("scope") if isinstance(meta.get("scope"), Mapping) else {}
    start = seconds_of(record["startTime"])
    told = record.get("statusMessage")
    failure = failure_of("", str(told)) if told else None
    if failure is not None and not failure.is_pause and record.get("level") != "ERROR":
        failure = None
    step = meta.get("langgraph_step")
    span = Span(
        id=str(record["id"]),
        parent=str(record.get("parentObservationId") or ""),
        trace=str(record["traceId"]),
        name=str(record.get("name") or ""),
        kind=_KINDS.get(str(record["type"]), "step"),
        start=start,
        end=seconds_of(record.get("endTime")) or start,
        source=str(scope.get("name") or "langfuse"),
        thread=str(record.get("sessionId") or meta.get("thread_id") or record.get("thread") or ""),
        place=str(meta.get("langgraph_checkpoint_ns") or ""),
        node=str(meta.get("langgraph_node") or ""),
        step=float(step) if isinstance(step, str) and step.isdigit() else step,
        failure=failure,
    )
    given, gave = unwrapped(record.get("input")), unwrapped(record.get("output"))
    if span.kind == "model":
        span.name = str(record.get("model") or span.name)
        span.input, span.tools = request_of(given) if given is not None else (ABSENT, [])
        span.output = reply_of(gave) if gave is not None else ABSENT
        span.call = str(attributes.get("gen_ai.response.id") or "")
        used = record.get("usageDetails") or record.get("usage") or {}
        for key, names in (
            ("input_tokens", ("input", "prompt_tokens")),
            ("output_tokens", ("output", "completion_tokens")),
        ):
            if tokens := next((used[name] for name in names if used.get(name)), 0):
                span.usage[key] = int(tokens)
    elif span.kind == "tool":
        span.input = arguments_of(given) if given is not None else ABSENT
        if gave is not None:
            span.output, span.call, refused = result_of(gave)
            span.failure = span.failure or refused
    else:
        span.input = ABSENT if given is None else given
        span.output = ABSENT if gave is None else gave
    return span
