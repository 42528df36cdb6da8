"""Sentences on what an export lacks, and how to export more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from harness.graph.trace import Event
from harness.report.formatting import plural
from harness.traces.spans import Span

_OTEL: Final = "content capture was off: set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CONTENT: Final = (
    ("openai_v2", f"{_OTEL}=true, and export the log records into the same file"),
    ("opentelemetry.instrumentation.genai", f"{_OTEL}=span_only"),
    ("opentelemetry.util.genai", f"{_OTEL}=span_only"),
    ("openinference", "unset OPENINFERENCE_HIDE_INPUTS and OPENINFERENCE_HIDE_OUTPUTS"),
    ("opentelemetry.instrumentation", "set TRACELOOP_TRACE_CONTENT=true"),
    ("pydantic-ai", "instrument with include_content=True"),
    ("langsmith", "select INPUTS and OUTPUTS, and unset LANGSMITH_HIDE_INPUTS and LANGSMITH_HIDE_OUTPUTS"),
    ("com.anthropic", "the Anthropic SDK writes none: add an instrumentation, such as OpenInference"),
    ("harness", "export with --content"),
)
"""Ways to export content, by a part of the exporter's name. The first that fits counts."""
_LIMITS: Final = (
    (
        "genai.langchain",
        "the nodes and pauses of a graph: opentelemetry-instrumentation-genai-langchain writes none",
    ),
    (
        "openai_v2",
        "calls with structured output (`parse`), if any: opentelemetry-instrumentation-openai-v2 sees none",
    ),
    ("golden", "earlier visits of a node: a golden run has each node as it was last"),
)
"""Sentences on what exporters never write."""
_PROVIDERS: Final = "instrument the client of the provider too"
_RESPONSES: Final = "the Responses API has them outside of the messages, and {} does not export them"


def missing(spans: Sequence[Span], events: Sequence[Event], has_content: bool) -> tuple[str, ...]:
    """Return sentences on what is missing in the events of a conversation."""
    sources = Counter(span.source for span in spans if span.kind not in ("step", "other"))
    source = sources.most_common(1)[0][0] if sources else ""
    calls = {event["call"]: event for event in events if event["event"] == "call"}
    llm = [call for call in calls.values() if call["kind"] == "llm"]
    gaps = Counter(_gap(event, calls) for event in events if "gap" in event)
    found = [f"{_plural(what, count)} of {plural(count, whose)}" for (what, whose), count in gaps.items()]
    hint = next((hint for part, hint in _CONTENT if part in source), "")
    if found and not has_content and hint:
        found = [f"{', '.join(found)} ({hint})"]
    if not llm:
        found.append(f"the model calls: this export has none ({_PROVIDERS})")
    if "openai_agents" in source and llm:
        bare = [
            call
            for call in llm
            if not any(each["type"] == "system" for each in call["request"].get("messages", ()))
        ]
        if with_messages := [call for call in bare if "messages" in call["request"]]:
            found.append(
                f"the system prompts of {plural(len(with_messages), 'model call')} ({_RESPONSES.format(source)})"
            )
        elif bare:
            found.append(
                "all of the Responses API but ids: the SDK's own exporter has none (use logfire or OpenInference)"
            )
    found += [text for part, text in _LIMITS if part in source]
    if not any(span.children for span in spans if span.kind != "agent" or span.name) and len(llm) > 1:
        found.append(
            "which calls belong together: each is a trace of its own, and their order is that of time"
        )
    return tuple(found)


def _plural(what: str, count: int) -> str:
    irregular = {"the reply": "the replies", "the answer to the pause": "the answers to the pauses"}
    return what if count == 1 or what[-1] in "ks" else irregular.get(what, f"{what}s")


def _gap(event: Event, calls: dict[int, Event]) -> tuple[str, str]:
    """Return what an event lacks, and whose it is."""
    call = event if event["event"] == "call" else calls.get(event.get("call", 0))
    if call is None:
        return event["gap"], "node" if event.get("node") else "turn"
    return event["gap"], "model call" if call["kind"] == "llm" else f"{call['kind']} call"
