"""Exports of other tools, made by hand in the shapes that they have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.graph.trace import Event
from harness.report.traces import RunTrace
from harness.traces.reading import read_traces

GENAI = "opentelemetry.instrumentation.genai.langchain"
OPENINFERENCE = "openinference.instrumentation.langchain"
TRACELOOP = "opentelemetry.instrumentation.langchain"


def attribute(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return {"arrayValue": {"values": [attribute(each) for each in value]}}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}


def span(
    id_: str,
    parent: str = "",
    at: int = 0,
    /,
    *,
    name: str = "",
    scope: str = GENAI,
    trace: str = "t",
    took: int = 1,
    attributes: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """An OTLP span with its scope. Times are seconds; mappings and lists of them become JSON text."""
    given = [{"key": key, "value": attribute(value)} for key, value in (attributes or {}).items()]
    times = {"startTimeUnixNano": f"{at}000000000", "endTimeUnixNano": f"{at + took}000000000"}
    made = {
        "traceId": trace,
        "spanId": id_,
        "parentSpanId": parent,
        "name": name or id_,
        "status": {},
        **more,
    }
    return {"scope": {"name": scope}, "spans": [{**made, **times, "attributes": given}]}


def chat(
    id_: str, parent: str, at: int, asked: Any = None, said: Any = None, /, **fields: Any
) -> dict[str, Any]:
    """A call of a model by the GenAI conventions, with messages as (role, text) or whole."""
    attributes: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}
    attributes |= fields.pop("attributes", {})
    if asked is not None:
        attributes["gen_ai.input.messages"] = [message(each) for each in asked]
    if said is not None:
        attributes["gen_ai.output.messages"] = [message(("assistant", said))]
    return span(id_, parent, at, attributes=attributes, **fields)


def message(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    role, content = value
    return {
        "role": role,
        "parts": [{"type": "text", "content": content}] if isinstance(content, str) else content,
    }


def asks(name: str, id_: str, **arguments: Any) -> list[dict[str, Any]]:
    """The parts of a reply that asks for a tool."""
    return [{"type": "tool_call", "id": id_, "name": name, "arguments": arguments}]


def gave(id_: str, response: Any, role: str = "tool") -> dict[str, Any]:
    """The message that tells a model what a tool gave back."""
    return {"role": role, "parts": [{"type": "tool_call_response", "id": id_, "response": response}]}


def otlp(*scoped: dict[str, Any]) -> str:
    """The text of an OTLP file, a span a line: those that end first come first."""
    lines = [json.dumps({"resourceSpans": [{"scopeSpans": [each]}]}) for each in reversed(scoped)]
    return "\n".join(lines) + "\n"


def lc(kind: str, content: str, **fields: Any) -> dict[str, Any]:
    """A message as LangChain's constructor."""
    names = {"human": "HumanMessage", "ai": "AIMessage", "system": "SystemMessage", "tool": "ToolMessage"}
    id_ = ["langchain", "schema", "messages", names[kind]]
    return {"lc": 1, "type": "constructor", "id": id_, "kwargs": {"content": content, "type": kind, **fields}}


def traces(folder: Path, content: Any) -> list[RunTrace]:
    """Read the text of a file, or data as a JSON file."""
    path = folder / "export.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_traces(path)


def one(folder: Path, content: Any) -> RunTrace:
    """Read a file with one conversation."""
    (found,) = traces(folder, content)
    return found


def told(trace: RunTrace, *events: str) -> list[Event]:
    """The events of some kinds."""
    return [event for event in trace.events if event["event"] in events]


def path(trace: RunTrace) -> list[str]:
    """The nodes, with a star for those that were resumed."""
    starts = told(trace, "node_start", "node_resume")
    return [event["graph"] + event["node"] + "*" * (event["event"] == "node_resume") for event in starts]


def calls(trace: RunTrace) -> list[tuple[str, str, Any]]:
    """The calls by kind and name, each with what was answered: a value, an error, or a gap."""
    answers = {event["call"]: event for event in told(trace, "answer")}
    found = []
    for call in told(trace, "call"):
        answer = answers[call["call"]]
        value: Any = answer.get("value", answer.get("error", f"gap: {answer.get('gap')}"))
        is_reply = call["kind"] == "llm" and isinstance(value, dict) and "text" in value
        found.append((call["kind"], call["name"], value["text"] if is_reply else value))
    return found
