"""LangSmith's runs: of `list_runs`, of `runs.query`, and as the SDK posts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.traces.messages import failure_of, set_values, tool_names, usage_of
from harness.traces.spans import Kind, Span, seconds_of

_KINDS: Final[Mapping[str, Kind]] = {
    **{"llm": "model", "tool": "tool", "retriever": "retrieval", "embedding": "other"},
}
_THREADS: Final = ("thread_id", "session_id", "conversation_id")


def recognises(records: Sequence[Any]) -> bool:
    """True for runs, and for parts of posted runs."""
    found = [each for each in records if isinstance(each, Mapping)]
    return any("run_type" in each or str(each.get("part")).startswith("post.") for each in found)


def read(records: Sequence[Any]) -> Iterator[Span]:
    """Yield the runs as spans. Those that were posted in parts are joined; later parts count."""
    posted: dict[str, dict[str, Any]] = {}
    for record in (each for each in records if isinstance(each, Mapping)):
        kind, _, rest = str(record.get("part") or "").partition(".")
        number, _, key = rest.partition(".")
        value = record.get("value")
        if kind in ("post", "patch") and value:
            posted.setdefault(number, {}).update({key: value} if key else value)
        elif "run_type" in record:
            yield _span(record)
    yield from (_span(run) for run in posted.values() if "start_time" in run)


def _span(run: Mapping[str, Any]) -> Span:
    extra = run.get("extra") or {}
    meta = {**(extra.get("metadata") or {}), **(run.get("metadata") or {})}
    above = run.get("parent_run_id") or (run.get("parent_run_ids") or [""])[-1]
    start = seconds_of(run["start_time"])
    span = Span(
        id=str(run["id"]),
        parent=str(above or ""),
        trace=str(run.get("trace_id") or run["id"]),
        name=str(run.get("name") or ""),
        kind=_KINDS.get(str(run.get("run_type")).lower(), "step"),
        start=start,
        end=seconds_of(run.get("end_time")) or start,
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
        span.name = str(
            meta.get("ls_model_name") or called.get("model") or (given or {}).get("model") or span.name
        )
        span.tools = tool_names(called.get("tools"))
    elif span.kind != "tool":
        given, gave = _bare(given, "input"), _bare(gave, "output")
    set_values(span, given, gave)
    return span


def _bare(value: Any, key: str) -> Any:
    """Return the value that is no mapping, which LangSmith wraps."""
    return value[key] if isinstance(value, Mapping) and set(value) == {key} else value
