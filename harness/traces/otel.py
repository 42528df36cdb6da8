"""OpenTelemetry's files (OTLP as JSON): the GenAI conventions, OpenInference, Traceloop, logfire, Langfuse's SDK."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.graph.to_json import from_json
from harness.traces.messages import (
    CUT_SHORT,
    REDACTED,
    failure_of,
    messages,
    reply_of,
    set_values,
    tool_names,
    unwrapped,
    usage_of,
)
from harness.traces.spans import ABSENT, Failure, Kind, Span, mapping

Record = Mapping[str, Any]
_KINDS: Final[Mapping[str, Mapping[str, Kind]]] = {
    "langfuse.observation.type": {
        **{"generation": "model", "tool": "tool", "agent": "agent", "retriever": "retrieval"},
        **{"chain": "step", "span": "step"},
    },
    "openinference.span.kind": {
        **{"LLM": "model", "TOOL": "tool", "AGENT": "agent", "RETRIEVER": "retrieval", "CHAIN": "step"},
    },
    "logfire.msg_template": {
        **{"Function: {name}": "tool", "Agent run: {name!r}": "agent"},
        **{"Handoff: {from_agent} → {to_agent}": "route"},
    },
    "gen_ai.operation.name": {
        **{"chat": "model", "text_completion": "model", "generate_content": "model"},
        **{"execute_tool": "tool", "retrieval": "retrieval", "execute_task": "step"},
        **{"invoke_agent": "agent", "invoke_workflow": "agent"},
    },
    "traceloop.span.kind": {"tool": "tool", "workflow": "agent", "agent": "agent", "task": "step"},
}
"""The kinds by attributes. The first attribute that is there counts."""
_SET_UP: Final = ("create_agent", "goto", "embeddings")
_META: Final = ("traceloop.association.properties.", "langfuse.observation.metadata.")
_USAGE: Final = ("gen_ai.usage.", "llm.token_count.")
_NAMES: Final = (
    *("gen_ai.tool.name", "tool.name", "traceloop.entity.name", "gen_ai.task.name", "test.case.name"),
    *("gen_ai.agent.name", "gen_ai.workflow.name", "agent.name"),
)
_MODELS: Final = (
    *("gen_ai.request.model", "llm.model_name", "langfuse.observation.model.name", "gen_ai.response.model"),
)
_INPUTS: Final = (
    *("gen_ai.tool.call.arguments", "langfuse.observation.input", "traceloop.entity.input", "request_data"),
    *("raw_input", "from_agent", "input.value", "input"),
)
_OUTPUTS: Final = (
    *("gen_ai.tool.call.result", "langfuse.observation.output", "traceloop.entity.output", "response_data"),
    *("response", "to_agent", "output.value", "output", "final_result"),
)


def recognises(records: Sequence[Any]) -> bool:
    """True for batches of spans or of log records."""
    return any("resourceSpans" in each or "resourceLogs" in each for each in map(mapping, records))


def read(records: Sequence[Any]) -> Iterator[Span]:
    """Yield the spans; messages that were written as log records belong to theirs."""
    logged: dict[tuple[str, str], list[Record]] = {}
    for record in _inside(_inside(_inside(records, "resourceLogs"), "scopeLogs"), "logRecords"):
        a = _attributes(record)
        event = str(record.get("eventName") or a.get("event.name") or "")
        if event.startswith("gen_ai."):
            said = {"role": event.split(".")[1], **mapping(_plain(record.get("body")))}
            logged.setdefault((str(record.get("traceId")), str(record.get("spanId"))), []).append(said)
    for scope in _inside(_inside(records, "resourceSpans"), "scopeSpans"):
        source = str(mapping(scope.get("scope")).get("name") or "")
        for record in _inside([scope], "spans"):
            a = _attributes(record)
            if a.get("gen_ai.operation.name") not in _SET_UP:
                yield _span(
                    source, record, a, logged.get((str(record["traceId"]), str(record["spanId"])), ())
                )


def _inside(records: Any, key: str) -> Iterator[Record]:
    for record in map(mapping, records):
        yield from record.get(key) or ()


def _plain(value: Any) -> Any:
    for kind, found in mapping(value).items():
        if kind == "kvlistValue":
            return _attributes(found, "values")
        if kind == "arrayValue":
            return [_plain(each) for each in found.get("values") or ()]
        return int(found) if kind == "intValue" else found
    return None


def _attributes(record: Record, key: str = "attributes") -> dict[str, Any]:
    found = {str(each["key"]): _plain(each.get("value")) for each in record.get(key) or ()}
    return {name: value for name, value in found.items() if value not in (REDACTED, None, "")}


def _first(a: Record, names: Sequence[str]) -> Any:
    return next((a[name] for name in names if name in a), None)


def _span(source: str, record: Record, a: Record, logged: Sequence[Record]) -> Span:
    meta = _meta(a)
    start = int(record["startTimeUnixNano"])
    named = _first(a, _NAMES) or (a.get("name") if "logfire.msg_template" in a else None)
    span = Span(
        id=str(record["spanId"]),
        parent=str(record.get("parentSpanId") or ""),
        trace=str(record["traceId"]),
        name=str(named or record.get("name") or ""),
        kind=_kind(a),
        start=start / 1e9,
        end=int(record.get("endTimeUnixNano") or start) / 1e9,
        source=source,
        order=start,
        thread=str(_first(a, ("gen_ai.conversation.id", "session.id")) or meta.get("thread_id") or ""),
        step=a.get("harness.step"),
        failure=_failure(a, record),
        call=str(_first(a, ("gen_ai.tool.call.id", "gen_ai.response.id", "response_id")) or ""),
        usage=usage_of(
            {name[len(prefix) :]: a[name] for prefix in _USAGE for name in a if name.startswith(prefix)}
        ),
    )
    span.in_graph(meta)
    if "harness.node" in a and span.kind == "step":
        span.node = span.name = str(a["harness.node"]).rpartition("/")[2]
    given, gave = unwrapped(_first(a, _INPUTS)), unwrapped(_first(a, _OUTPUTS))
    if span.kind == "tool" and "input_str" in mapping(given):  # LangChain's, by Traceloop
        span.call = span.call or str(mapping(given.get("kwargs")).get("tool_call_id") or "")
        given = given.get("inputs") or unwrapped(given["input_str"])
    elif "traceloop.span.kind" in a and span.kind != "tool":
        given, gave = mapping(given).get("inputs", given), mapping(gave).get("outputs", gave)
    set_values(span, given, gave)
    if span.kind == "model":
        _model(span, a, logged)
    elif span.kind in ("agent", "step"):
        _conversation(span, a)
    return span


def _kind(a: Record) -> Kind:
    kind = next((kinds[str(a[name])] for name, kinds in _KINDS.items() if str(a.get(name)) in kinds), None)
    if kind == "tool" and "openinference.span.kind" in a and "tool.name" not in a:
        return "route"  # a hand-off of the OpenAI Agents SDK
    if kind is None and ("llm.request.type" in a or "gen_ai.request.model" in a or "request_data" in a):
        return "model"
    return kind or (
        "step"
        if ("harness.node" in a and "harness.effect.kind" not in a) or "logfire.msg_template" in a
        else "other"
    )


def _meta(a: Record) -> dict[str, Any]:
    """Return what LangGraph tells of a span: `langgraph_node`, `thread_id`, …"""
    meta = dict(mapping(unwrapped(a.get("metadata"))))
    for name, value in a.items():
        if prefix := next((prefix for prefix in _META if name.startswith(prefix)), None):
            read = from_json(value) if prefix == _META[1] and isinstance(value, str) else None
            meta[name.removeprefix(prefix)] = value if read is None else read
    return meta


def _failure(a: Record, record: Record) -> Failure | None:
    """Return how a span failed. Exceptions that it survived are none, pauses are, whatever the status."""
    if a.get("harness.paused"):
        return failure_of("GraphInterrupt", "")
    status = mapping(record.get("status"))
    kind = str(a.get("error.type") or "")
    text = str(a.get("langfuse.observation.status_message") or status.get("message") or "")
    for event in record.get("events") or ():
        if event.get("name") == "exception":
            e = _attributes(event)
            kind, text = str(e.get("exception.type") or kind), str(e.get("exception.message") or text)
    if a.get("pydantic_ai.tool.retry.cause") == "model_retry":
        kind = "ModelRetry"
    found = failure_of(kind, text) if kind or text else None
    has_failed = (
        status.get("code") in (2, "STATUS_CODE_ERROR") or a.get("langfuse.observation.level") == "ERROR"
    )
    return found if has_failed or (found and found.is_pause) else None


def _model(span: Span, a: Record, logged: Sequence[Record]) -> None:
    """Set the messages of a model call, as the conventions of its exporter write them."""
    span.name = str(_first(a, _MODELS) or span.name)
    schemas = [mapping(each.get("tool")).get("json_schema") for each in _numbered(a, "llm.tools")]
    span.tools = tool_names(unwrapped(a.get("gen_ai.tool.definitions"))) or tool_names(schemas) or span.tools
    span.usage = span.usage or usage_of(unwrapped(a.get("langfuse.observation.usage_details")))
    asked, said = (unwrapped(a.get(f"gen_ai.{side}.messages")) for side in ("input", "output"))
    if asked and (system := unwrapped(a.get("gen_ai.system_instructions"))):
        asked = [{"role": "system", "parts": system}, *asked]
    if logged:
        asked = [each for each in logged if each["role"] != "choice"]
        said = [
            {"role": "assistant", **mapping(each.get("message"))}
            for each in logged
            if each["role"] == "choice"
        ]
    for flat in ("llm.input_messages", "gen_ai.prompt"):
        asked = asked or _flat_messages(a, flat)
    for flat in ("llm.output_messages", "gen_ai.completion"):
        said = said or _flat_messages(a, flat)
    if asked:
        span.input = messages(asked) or ABSENT
    if said:
        span.output = reply_of(said)
    reasons = a.get("gen_ai.response.finish_reasons") or [a.get("llm.finish_reason")]
    if span.output and reasons[0] in CUT_SHORT:
        span.output["finish_reason"] = reasons[0]


def _flat_messages(a: Record, prefix: str) -> list[dict[str, Any]]:
    """Return messages in flattened attributes. OpenInference writes a role even where it hides the content."""
    found = []
    for each in _numbered(a, prefix):
        flat = mapping(each.get("message", each))
        blocks = [
            mapping(block.get("message_content")) for block in flat.get("contents") or () if mapping(block)
        ]
        texts = [str(block["text"]) for block in blocks if "text" in block]
        message = {key: flat[key] for key in ("role", "content", "tool_call_id", "name") if key in flat}
        message |= {"content": "".join(texts)} if texts else {}
        calls = [mapping(call).get("tool_call", call) for call in flat.get("tool_calls") or ()]
        found.append(message | ({"tool_calls": calls} if calls else {}))
    return found if any(len(each) > 1 for each in found) else []


def _numbered(a: Record, prefix: str) -> list[Record]:
    """Return the list in flattened attributes, such as `llm.tools.0.tool.json_schema`. Numbers may have holes."""
    tree: dict[str, Any] = {}
    for name, value in a.items():
        if name.startswith(f"{prefix}."):
            *path, last = name[len(prefix) + 1 :].split(".")
            at = tree
            for part in path:
                at = at.setdefault(part, {}) if isinstance(at.get(part, {}), dict) else {}
            at[last] = value
    found = _lists(tree)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _lists(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    if tree and all(key.isdecimal() for key in tree):
        return [_lists(tree[key]) for key in sorted(tree, key=int)]
    return {key: _lists(value) for key, value in tree.items()}


def _conversation(span: Span, a: Record) -> None:
    """Set the input and output of an agent from its messages, unless it has them as data."""
    history = unwrapped(a.get("pydantic_ai.all_messages")) or []
    asked = (
        unwrapped(a.get("gen_ai.input.messages"))
        or [each for each in history if each.get("role") == "user"][:1]
    )
    if span.input is ABSENT and (said := messages(asked)):
        data = unwrapped(said[0]["content"]) if len(said) == 1 else None
        span.input = data if isinstance(data, Mapping) else {"messages": said}
    if span.output is ABSENT and (
        reply := reply_of(unwrapped(a.get("gen_ai.output.messages")) or history[-1:])
    ):
        data = unwrapped(reply["text"])
        span.output = data if isinstance(data, Mapping) else reply["text"]
