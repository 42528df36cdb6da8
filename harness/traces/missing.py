"""What an export lacks, in sentences, and how to export more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from harness.graph.trace import Event
from harness.report.formatting import plural
from harness.traces.spans import Span

_OTEL: Final = "content capture was off: set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_HINTS: Final = (
    ("openai_v2", f"{_OTEL}=true, and export the log records into the same file"),
    ("opentelemetry.instrumentation.genai", f"{_OTEL}=span_only"),
    ("opentelemetry.util.genai", f"{_OTEL}=span_only"),
    ("openinference", "unset OPENINFERENCE_HIDE_INPUTS and OPENINFERENCE_HIDE_OUTPUTS"),
    ("opentelemetry.instrumentation", "set TRACELOOP_TRACE_CONTENT=true"),
    ("pydantic-ai", "instrument with include_content=True"),
    ("langsmith", "select INPUTS and OUTPUTS, and unset LANGSMITH_HIDE_INPUTS and LANGSMITH_HIDE_OUTPUTS"),
    ("openai_agents", "the SDK's own exporter has only ids of the Responses API: export with logfire or OpenInference"),
    ("com.anthropic", "the Anthropic SDK writes none: add an instrumentation, such as OpenInference"),
    ("yagra", "golden runs have states of nodes only, each node as it was last"),
    ("harness", "export with --content"),
)
_PLURALS: Final = {"the prompt": "the prompts", "the reply": "the replies", "the result": "the results", "the input": "the inputs"}


def missing(spans: Sequence[Span], events: Sequence[Event]) -> tuple[str, ...]:
    """Return sentences on what is missing in the events of a conversation."""
    sources = Counter(span.source for span in spans if span.kind not in ("step", "other"))
    source = sources.most_common(1)[0][0] if sources else ""
    calls = {event["call"]: event for event in events if event["event"] == "call"}
    found = []
    hint = next((f" ({hint})" for part, hint in _HINTS if part in source), "")
    for (what, kind), count in Counter(_gap(event, calls) for event in events if "gap" in event).items():
        found.append(f"{what} of {plural(count, kind)}{hint}" if kind else what)
    kinds = Counter(event["kind"] for event in calls.values())
    if not kinds["llm"]:
        found.append("the model calls: this export has none" + (" (instrument the client of the provider as well)" if kinds["tool"] else ""))
    return tuple(found)


def _gap(event: Event, calls: dict[int, Event]) -> tuple[str, str]:
    call = event if event["event"] == "call" else calls.get(event.get("call", 0))
    if call is None:
        where = "node" if "node" in event and event["node"] else "turn"
        return event["gap"], where
    return event["gap"], "model call" if call["kind"] == "llm" else f"{call['kind']} call"
