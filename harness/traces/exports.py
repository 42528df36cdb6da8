"""Exports of tools that write traces in a form of their own: LangSmith, Langfuse, the OpenAI Agents SDK and Yagra.

Of each there is a function that recognises its records, and one that yields them as spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.graph.to_json import as_text
from harness.traces.messages import failure_of, set_values, tool_names, unwrapped, usage_of
from harness.traces.spans import ABSENT, Kind, Span, mapping, seconds_of

Record = Mapping[str, Any]


def _span(record: Record, parent: Any, trace: Any, times: tuple[str, str], **told: Any) -> Span:
    """Return the span of a record that has its id, and its beginning and end at these keys."""
    start = seconds_of(record[times[0]])
    end = seconds_of(record.get(times[1])) or start
    return Span(str(record["id"]), str(parent or ""), str(trace), start=start, end=end, **told)


# ---------------------------------------------------------------- LangSmith: runs, also as its SDK posts them

_OF_LANGSMITH: Final[Mapping[str, Kind]] = {
    **{"llm": "model", "tool": "tool", "retriever": "retrieval", "embedding": "other"},
}
_THREADS: Final = ("thread_id", "session_id", "conversation_id")


def is_langsmith(records: Sequence[Any]) -> bool:
    """True for runs, and for parts of posted runs."""
    found = map(mapping, records)
    return any("run_type" in each or str(each.get("part")).startswith("post.") for each in found)


def of_langsmith(records: Sequence[Any]) -> Iterator[Span]:
    """Yield the runs as spans. Those that were posted in parts are joined; later parts count."""
    posted: dict[str, dict[str, Any]] = {}
    for record in map(mapping, records):
        kind, _, rest = str(record.get("part") or "").partition(".")
        number, _, key = rest.partition(".")
        value = record.get("value")
        if kind in ("post", "patch") and value:
            posted.setdefault(number, {}).update({key: value} if key else value)
        elif "run_type" in record:
            yield _run(record)
    yield from (_run(run) for run in posted.values() if "start_time" in run)


def _run(run: Record) -> Span:
    extra = run.get("extra") or {}
    meta = {**(extra.get("metadata") or {}), **(run.get("metadata") or {})}
    span = _span(
        run,
        run.get("parent_run_id") or (run.get("parent_run_ids") or [""])[-1],
        run.get("trace_id") or run["id"],
        ("start_time", "end_time"),
        name=str(run.get("name") or ""),
        kind=_OF_LANGSMITH.get(str(run.get("run_type")).lower(), "step"),
        source="langsmith",
        order=str(run.get("dotted_order") or ""),
        thread=str(run.get("thread_id") or next((meta[key] for key in _THREADS if meta.get(key)), "")),
        failure=failure_of("", str(run["error"])) if run.get("error") else None,
        usage=usage_of(run),
    )
    span.in_graph(meta)
    given, gave = run.get("inputs"), run.get("outputs") or None
    if span.kind == "model":
        called = extra.get("invocation_params") or {}
        names = meta.get("ls_model_name"), called.get("model"), (given or {}).get("model"), span.name
        span.name = str(next(filter(None, names), ""))
        span.tools = tool_names(called.get("tools"))
    elif span.kind != "tool":
        given, gave = _bare(given, "input"), _bare(gave, "output")
    set_values(span, given, gave)
    return span


def _bare(value: Any, key: str) -> Any:
    """Return the value that is no mapping, which LangSmith wraps."""
    return value[key] if isinstance(value, Mapping) and set(value) == {key} else value


# ---------------------------------------------------------------- Langfuse: traces and observations

_OF_LANGFUSE: Final[Mapping[str, Kind]] = {
    **{"GENERATION": "model", "TOOL": "tool", "RETRIEVER": "retrieval", "AGENT": "agent"},
    **{"EMBEDDING": "other", "EVENT": "other", "GUARDRAIL": "other", "EVALUATOR": "other"},
}


def is_langfuse(records: Sequence[Any]) -> bool:
    """True for traces with observations, and for observations."""
    return any(_observations(records))


def of_langfuse(records: Sequence[Any]) -> Iterator[Span]:
    """Yield the observations as spans."""
    return map(_observed, _observations(records))


def _observations(records: Sequence[Any]) -> Iterator[Record]:
    for record in map(mapping, records):
        inside = record.get("observations", record.get("data"))
        session = record.get("sessionId") or mapping(record.get("metadata")).get("thread_id")
        for each in map(mapping, inside if isinstance(inside, list) else [record]):
            if "startTime" in each and "traceId" in each and "type" in each:
                yield {"session": session, **each}


def _observed(record: Record) -> Span:
    meta = mapping(unwrapped(record.get("metadata")))
    failure = failure_of("", str(told)) if (told := record.get("statusMessage")) else None
    span = _span(
        record,
        record.get("parentObservationId"),
        record["traceId"],
        ("startTime", "endTime"),
        name=str(record.get("name") or ""),
        kind=_OF_LANGFUSE.get(str(record["type"]), "step"),
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


# ---------------------------------------------------------------- the OpenAI Agents SDK: posts of its exporter

_OF_OPENAI: Final[Mapping[str, Kind]] = {
    **{"generation": "model", "response": "model", "function": "tool", "handoff": "route", "agent": "agent"},
}


def is_openai_agents(records: Sequence[Any]) -> bool:
    """True for traces and spans of the SDK."""
    return any(str(each.get("object")).startswith("trace") for each in _items(records))


def of_openai_agents(records: Sequence[Any]) -> Iterator[Span]:
    """Yield the spans. A group of traces is a conversation."""
    traces = {str(each["id"]): each for each in _items(records) if each.get("object") == "trace"}
    for each in _items(records):
        if each.get("object") == "trace.span":
            yield _posted(each, mapping(each.get("span_data")), traces.get(str(each.get("trace_id")), {}))


def _items(records: Sequence[Any]) -> Iterator[Record]:
    for record in map(mapping, records):
        inside = record.get("data")
        yield from map(mapping, inside if isinstance(inside, list) else [record])


def _posted(record: Record, data: Record, trace: Record) -> Span:
    named = mapping(data.get("data")).get("name") or data.get("model") or data.get("name")
    span = _span(
        record,
        record.get("parent_id"),
        record.get("trace_id"),
        ("started_at", "ended_at"),
        name=str(named or ("" if data.get("type") == "response" else trace.get("workflow_name") or "")),
        kind=_OF_OPENAI.get(str(data.get("type")), "step"),
        source="openai_agents",
        thread=str(trace.get("group_id") or ""),
        failure=failure_of("", str(mapping(record["error"]).get("message"))) if record.get("error") else None,
        usage=usage_of(data.get("usage")),
        call=str(data.get("response_id") or ""),
    )
    set_values(span, data.get("input", data.get("from_agent")), data.get("output", data.get("to_agent")))
    return span


# ---------------------------------------------------------------- Yagra: golden runs, and traces of its runs

_MODELS: Final = ("llm", "structured_llm", "streaming_llm")


def is_yagra(records: Sequence[Any]) -> bool:
    """True for golden runs and traces."""
    found = map(mapping, records)
    return any("workflow_name" in each and ("nodes" in each or "node_snapshots" in each) for each in found)


def of_yagra(records: Sequence[Any]) -> Iterator[Span]:
    """Yield a span for each run, each visit of a node, and each call of a handler or a model."""
    for run in map(mapping, records):
        saved = mapping(run.get("node_snapshots"))  # each node once, as it was last
        visits = run.get("nodes") or [saved[name] for name in run.get("execution_path") or ()]
        trace = str(run.get("source_run_id") or run.get("run_id"))
        name = str(run.get("case_name") or run.get("workflow_name"))
        began = seconds_of(run.get("created_at") or run.get("started_at"))
        source = "yagra golden" if saved else "yagra"
        root = Span("run", "", trace, name, "agent", began, seconds_of(run.get("ended_at")) or began, source)
        if visits:
            last = {**visits[-1]["input_snapshot"], **visits[-1]["output_snapshot"]}
            root.input = run.get("initial_state", visits[0]["input_snapshot"])
            root.output = run.get("final_state", last)
        yield root
        names = [visit["node_id"] for visit in visits]
        for step, visit in enumerate(visits, start=1):
            yield from _visit(visit, step, root, is_known=not saved or names[step - 1] not in names[step:])


def _visit(visit: Mapping[str, Any], step: int, root: Span, is_known: bool) -> Iterator[Span]:
    start = seconds_of(visit.get("started_at")) or root.start
    end = seconds_of(visit.get("ended_at")) or start
    before, after = visit["input_snapshot"], visit["output_snapshot"]
    error, used = mapping(visit.get("error")), mapping(visit.get("llm_call"))
    node = Span(
        str(step), "run", root.trace, str(visit["node_id"]), "node", start, end, root.source, step, step=step
    )
    call = Span(
        f"{step}.call", node.id, root.trace, str(visit["handler"]), "handler", start, end, root.source, step
    )
    node.node = node.name
    if error:
        node.failure = call.failure = failure_of(
            str(error.get("error_type")), str(error.get("error_message"))
        )
    changed = {key: value for key, value in after.items() if key not in before or before[key] != value}
    if is_known:
        node.output, call.input, call.output = after, before, changed
    if visit["handler"] in _MODELS:
        said = [value for key, value in changed.items() if key != "__next__"]
        call.kind, call.name = "model", str(used.get("model") or "")
        call.usage, call.input = usage_of(used), ABSENT
        call.output = {"text": as_text(said[0])} if is_known and len(said) == 1 else ABSENT
    yield from (node, call)
