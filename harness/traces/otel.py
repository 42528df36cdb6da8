"""OpenTelemetry's files (OTLP as JSON): the GenAI conventions, OpenInference, Traceloop, logfire and Langfuse's SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from harness.traces.messages import (
    CUT_SHORT,
    REDACTED,
    failure_of,
    messages,
    reply_of,
    request_of,
    result_of,
    state,
    tool_names,
    unwrapped,
)
from harness.traces.spans import ABSENT, Kind, Span, arguments_of

Record = Mapping[str, Any]
_OPERATIONS: Final[Mapping[str, Kind]] = {
    **{"chat": "model", "text_completion": "model", "generate_content": "model", "retrieval": "retrieval"},
    **{"execute_tool": "tool", "invoke_agent": "agent", "invoke_workflow": "agent", "execute_task": "step"},
}
_KINDS: Final[Mapping[str, Kind]] = {
    **{"llm": "model", "generation": "model", "tool": "tool", "agent": "agent", "workflow": "agent"},
    **{"retriever": "retrieval", "chain": "step", "span": "step", "task": "step"},
}
_LOGFIRE: Final[Mapping[str, Kind]] = {
    **{
        "Function: {name}": "tool",
        "Agent run: {name!r}": "agent",
        "Handoff: {from_agent} → {to_agent}": "route",
    },
}
_META: Final = ("traceloop.association.properties.", "langfuse.observation.metadata.")
_LEGACY: Final = ("gen_ai.prompt", "gen_ai.completion")
_LOGS: Final = "gen_ai."


def recognises(records: Sequence[Any]) -> bool:
    """True for batches of spans or of log records."""
    return any(
        isinstance(each, Mapping) and ("resourceSpans" in each or "resourceLogs" in each) for each in records
    )


def read(records: Sequence[Any]) -> Iterator[Span]:
    """Yield the spans; messages that were written as log records belong to theirs."""
    logged: dict[tuple[str, str], list[Record]] = {}
    for record in _inside(records, "resourceLogs", "scopeLogs", "logRecords"):
        name = record.get("eventName") or _attributes(record).get("event.name") or ""
        if str(name).startswith(_LOGS):
            body = _plain(record.get("body") or {})
            key = str(record.get("traceId")), str(record.get("spanId"))
            logged.setdefault(key, []).append({"event": name, **(body if isinstance(body, Mapping) else {})})
    for scope, span in _spans(records):
        found = _span(scope, span, logged.get((str(span["traceId"]), str(span["spanId"])), ()))
        if found is not None:
            yield found


def _spans(records: Sequence[Any]) -> Iterator[tuple[str, Record]]:
    for batch in _inside(records, "resourceSpans", "scopeSpans"):
        for span in batch.get("spans") or ():
            yield str((batch.get("scope") or {}).get("name") or ""), span


def _inside(records: Sequence[Any], *keys: str) -> Iterator[Record]:
    for record in records:
        if isinstance(record, Mapping):
            inner = record.get(keys[0]) or ()
            yield from inner if len(keys) == 1 else _inside(inner, *keys[1:])


def _plain(value: Any) -> Any:
    for kind, found in value.items() if isinstance(value, Mapping) else ():
        if kind == "kvlistValue":
            return _attributes(found, "values")
        if kind == "arrayValue":
            return [_plain(each) for each in found.get("values") or ()]
        return int(found) if kind == "intValue" else found
    return None


def _attributes(record: Record, key: str = "attributes") -> dict[str, Any]:
    found = {str(each["key"]): _plain(each.get("value")) for each in record.get(key) or ()}
    return {name: value for name, value in found.items() if value != REDACTED}


def _span(scope: str, record: Record, logged: Sequence[Record]) -> Span | None:
    a = _attributes(record)
    operation = a.get("gen_ai.operation.name")
    if operation in ("create_agent", "goto", "embeddings"):
        return None  # set-up, or told by others
    meta = _meta(a)
    span = Span(
        id=str(record["spanId"]),
        parent=str(record.get("parentSpanId") or ""),
        trace=str(record["traceId"]),
        name=_name(a, record),
        kind=_kind(a, operation),
        start=int(record["startTimeUnixNano"]) / 1e9,
        end=int(record.get("endTimeUnixNano") or record["startTimeUnixNano"]) / 1e9,
        source=scope,
        order=int(record["startTimeUnixNano"]),
        thread=str(
            _first(a, "gen_ai.conversation.id", "session.id", "langfuse.session.id")
            or meta.get("thread_id", "")
        ),
        place=str(meta.get("langgraph_checkpoint_ns", "")),
        node=str(meta.get("langgraph_node", "")),
        step=meta.get("langgraph_step", a.get("harness.step")),
    )
    span.failure = _failure(a, record)
    if span.kind == "model":
        _model(span, a, logged)
    elif span.kind == "tool" or span.kind == "retrieval":
        _tool(span, a)
    elif span.kind == "route":
        span.input, span.output = (
            _first(a, "from_agent", "input.value"),
            _first(a, "to_agent", "output.value"),
        )
    elif span.kind != "other":
        _data(span, a)
    if span.kind == "step" and "harness.node" in a and "harness.effect.kind" not in a:
        span.node = span.name
    return span


def _first(a: Record, *names: str) -> Any:
    return next((a[name] for name in names if a.get(name) not in (None, "")), None)


def _kind(a: Record, operation: Any) -> Kind:
    if (
        a.get("openinference.span.kind") == "TOOL"
        and "tool.name" not in a
        and "agent" not in a
        and _is_handoff(a)
    ):
        return "route"
    for name in ("langfuse.observation.type", "openinference.span.kind"):
        if kind := _KINDS.get(str(a.get(name, "")).lower()):
            return kind
    if kind := _LOGFIRE.get(str(a.get("logfire.msg_template"))) or _OPERATIONS.get(str(operation)):
        return kind
    if kind := _KINDS.get(str(a.get("traceloop.span.kind", ""))):
        return kind
    if "llm.request.type" in a or "gen_ai.request.model" in a or "request_data" in a:
        return "model"
    return "step" if "harness.node" in a or "logfire.msg_template" in a else "other"


def _is_handoff(a: Record) -> bool:
    return (
        all(isinstance(a.get(name), str) for name in ("input.value", "output.value"))
        and "input.mime_type" not in a
    )


def _name(a: Record, record: Record) -> str:
    if "harness.node" in a and "harness.effect.kind" not in a:
        return str(a["harness.node"]).rpartition("/")[2]
    named = _first(
        a, "gen_ai.tool.name", "tool.name", "traceloop.entity.name", "gen_ai.task.name", "test.case.name"
    )
    named = named or _first(a, "gen_ai.agent.name", "gen_ai.workflow.name", "agent.name")
    if "logfire.msg_template" in a:
        named = named or a.get("name")
    return str(named or record.get("name") or "")


def _meta(a: Record) -> dict[str, Any]:
    """Return what LangGraph tells of a span: `langgraph_node`, `thread_id`, …"""
    found = unwrapped(a.get("metadata"))
    meta = dict(found) if isinstance(found, Mapping) else {}
    for name, value in a.items():
        for prefix in _META:
            if name.startswith(prefix):
                if prefix is _META[1] and isinstance(value, str):
                    with suppress(ValueError):
                        value = json.loads(value)
                meta[name.removeprefix(prefix)] = value
    return meta


def _failure(a: Record, record: Record) -> Any:
    for event in record.get("events") or ():
        if event.get("name") == "exception":
            e = _attributes(event)
            kind = (
                "ModelRetry"
                if a.get("pydantic_ai.tool.retry.cause") == "model_retry"
                else e.get("exception.type")
            )
            return failure_of(str(kind or ""), str(e.get("exception.message") or ""))
    status = record.get("status") or {}
    told = a.get("langfuse.observation.status_message")
    if a.get("harness.paused"):
        return failure_of("GraphInterrupt", "")
    if status.get("code") in (2, "STATUS_CODE_ERROR") or a.get("langfuse.observation.level") == "ERROR":
        return failure_of(str(a.get("error.type") or ""), str(told or status.get("message") or ""))
    found = failure_of("", str(told)) if told else None
    return found if found is not None and found.is_pause else None


def _model(span: Span, a: Record, logged: Sequence[Record]) -> None:
    span.name = str(
        _first(
            a,
            "gen_ai.request.model",
            "llm.model_name",
            "langfuse.observation.model.name",
            "gen_ai.response.model",
        )
        or span.name
    )
    defined = unwrapped(_first(a, "gen_ai.tool.definitions"))
    span.tools = tool_names(defined) or tool_names(
        [
            each.get("tool", {}).get("json_schema")
            for each in _numbered(a, "llm.tools")
            if isinstance(each, Mapping)
        ]
    )
    asked, said = _messages_in(a, logged)
    span.input = messages(asked) if asked else ABSENT
    span.output = reply_of(said) if said else ABSENT
    if span.input == []:
        span.input = ABSENT
    given = _first(a, "langfuse.observation.input", "request_data", "raw_input", "input.value")
    gave = _first(a, "langfuse.observation.output", "response_data", "response", "output.value")
    if span.input is ABSENT and given is not None and not asked:
        span.input, offered = request_of(given)
        span.tools = span.tools or offered
    if span.output is ABSENT and gave is not None and not said:
        answer = unwrapped(gave)
        span.output = reply_of(answer.get("message", answer) if isinstance(answer, Mapping) else answer)
    span.call = str(_first(a, "gen_ai.response.id", "response_id") or "")
    counted = unwrapped(a.get("langfuse.observation.usage_details")) or {}
    for key, names in (
        (
            "input_tokens",
            ("gen_ai.usage.input_tokens", "llm.token_count.prompt", "gen_ai.usage.prompt_tokens"),
        ),
        (
            "output_tokens",
            ("gen_ai.usage.output_tokens", "llm.token_count.completion", "gen_ai.usage.completion_tokens"),
        ),
    ):
        value = _first(a, *names) or _first(
            counted, key.removesuffix("_tokens"), "prompt_tokens" if key[0] == "i" else "completion_tokens"
        )
        if value is not None:
            span.usage[key] = int(value)
    for reason in a.get("gen_ai.response.finish_reasons") or [a.get("llm.finish_reason")]:
        if span.output and reason in CUT_SHORT:
            span.output["finish_reason"] = reason


def _messages_in(a: Record, logged: Sequence[Record]) -> tuple[list[Any], Any]:
    """Return the messages of a request and of its reply, as the conventions of the exporter write them."""
    asked = unwrapped(a.get("gen_ai.input.messages")) or []
    said = unwrapped(a.get("gen_ai.output.messages")) or []
    if system := unwrapped(a.get("gen_ai.system_instructions")):
        asked = [{"role": "system", "parts": system}, *asked] if asked else []
    for event in logged:
        if event["event"] == "gen_ai.choice":
            said = [event.get("message") or {}]
        else:
            asked.append({"role": str(event["event"]).split(".")[1], **event})
    for name, legacy in zip(("llm.input_messages", "llm.output_messages"), _LEGACY, strict=True):
        flat = [
            _flat_message(each.get("message", each)) for each in (*_numbered(a, name), *_numbered(a, legacy))
        ]
        # OpenInference writes a role even where the content is hidden.
        if any(len(each) > 1 for each in flat):
            asked, said = (flat, said) if "input" in name else (asked, flat)
    return asked if isinstance(asked, list) else [], said


def _numbered(a: Record, prefix: str) -> list[Any]:
    """Return the list in flattened attributes, such as `llm.tools.0.tool.json_schema`. Numbers may have holes."""
    tree: dict[str, Any] = {}
    for name, value in a.items():
        if name.startswith(f"{prefix}."):
            at = tree
            *path, last = name[len(prefix) + 1 :].split(".")
            for part in path:
                inner = at.setdefault(part, {})
                at = inner if isinstance(inner, dict) else {}
            at[last] = value
    found = _lists(tree)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _lists(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    if tree and all(key.isdigit() for key in tree):
        return [_lists(tree[key]) for key in sorted(tree, key=int)]
    return {key: _lists(value) for key, value in tree.items()}


def _flat_message(message: Record) -> dict[str, Any]:
    blocks = [
        each.get("message_content", each)
        for each in message.get("contents") or ()
        if isinstance(each, Mapping)
    ]
    texts = [str(block["text"]) for block in blocks if "text" in block]
    calls = [each.get("tool_call", each) for each in message.get("tool_calls") or ()]
    kept = {key: message[key] for key in ("role", "content", "tool_call_id", "name") if key in message}
    return kept | ({"content": "".join(texts)} if texts else {}) | ({"tool_calls": calls} if calls else {})


def _tool(span: Span, a: Record) -> None:
    given = unwrapped(
        _first(
            a,
            "gen_ai.tool.call.arguments",
            "langfuse.observation.input",
            "traceloop.entity.input",
            "input.value",
            "input",
        )
    )
    if isinstance(given, Mapping) and "input_str" in given:  # LangChain's, by Traceloop
        kwargs = given.get("kwargs") if isinstance(given.get("kwargs"), Mapping) else {}
        span.call = str(kwargs.get("tool_call_id") or "")
        given = given.get("inputs") or unwrapped(given["input_str"])
    if given is not None:
        span.input = arguments_of(given)
    gave = _first(
        a,
        "gen_ai.tool.call.result",
        "langfuse.observation.output",
        "traceloop.entity.output",
        "output.value",
        "output",
    )
    if gave is not None:
        span.output, call, failure = result_of(gave)
        span.call, span.failure = span.call or call, span.failure or failure
    span.call = str(a.get("gen_ai.tool.call.id") or span.call)


def _data(span: Span, a: Record) -> None:
    """Set the input and output of an agent, a graph or a node."""
    given = _first(a, "langfuse.observation.input", "traceloop.entity.input", "input.value")
    gave = _first(a, "langfuse.observation.output", "traceloop.entity.output", "output.value", "final_result")
    for name, value in (("input", given), ("output", gave)):
        if value is not None:
            value = unwrapped(value)
            if "traceloop.span.kind" in a and isinstance(value, Mapping) and f"{name}s" in value:
                value = value[f"{name}s"]
            setattr(span, name, value)
    for name, key in (("input", "gen_ai.input.messages"), ("output", "gen_ai.output.messages")):
        said = messages(unwrapped(a.get(key)) or ()) if key in a else ABSENT
        if getattr(span, name) is ABSENT and said is not ABSENT and said:
            text = unwrapped(said[-1]["content"]) if len(said) == 1 else ABSENT
            setattr(span, name, text if isinstance(text, Mapping) else {"messages": said})
    if span.output is ABSENT and (said := unwrapped(a.get("pydantic_ai.all_messages"))):
        span.output = reply_of(said[-1:])
    if span.input is ABSENT and (said := unwrapped(a.get("pydantic_ai.all_messages"))):
        first = [each for each in said if each.get("role") == "user"][:1]
        span.input = {"messages": found} if (found := messages(first)) else ABSENT
