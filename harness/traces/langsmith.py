"""LangSmith's runs: of `list_runs`, of `runs.query`, and as the SDK posts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.traces.messages import failure_of, reply_of, request_of, result_of, tool_names
from harness.traces.spans import ABSENT, Kind, Span, seconds_of

_KINDS: Final[Mapping[str, Kind]] = {
    **{"llm": "model", "tool": "tool", "retriever": "retrieval", "embedding": "other", "chain": "step"},
}
_THREADS: Final = ("thread_id", "session_id", "conversation_id")
_WHOLE: Final = ("post", "patch")


def recognises(records: Sequence[Any]) -> bool:
    """True for runs, and for parts of posted runs."""
    return any(
        isinstance(each, Mapping) and ("run_type" in each or str(each.get("part")).startswith("post."))
        for each in records
    )


def read(records: Sequence[Any]) -> Iterator[Span]:
    """Yield the runs as spans."""
    for run in _joined([each for each in records if isinstance(each, Mapping)]):
        if "start_time" in run and "id" in run:
            yield _span(run)


def _joined(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the runs; those that were posted in parts are joined, and later parts count."""
    runs: dict[str, dict[str, Any]] = {}
    whole = []
    for record in records:
        kind, _, rest = str(record.get("part") or "").partition(".")
        if kind not in _WHOLE:
            whole.append(record)
            continue
        number, _, key = rest.partition(".")
        value = record.get("value")
        if key:
            value = {key: value} if value else {}
        runs.setdefault(number, {}).update(value if isinstance(value, Mapping) else {})
    return [*whole, *runs.values()]


def _span(run: Mapping[str, Any]) -> Span:
    extra = run.get("extra") or {}
    meta = {**(extra.get("metadata") or {}), **(run.get("metadata") or {})}
    start = seconds_of(run["start_time"])
    span = Span(
        id=str(run["id"]),
        parent=str(run.get("parent_run_id") or ([*(run.get("parent_run_ids") or ()), ""][:-1] or [""])[-1]),
        trace=str(run.get("trace_id") or run["id"]),
        name=str(run.get("name") or ""),
        kind=_KINDS.get(str(run.get("run_type")).lower(), "step"),
        start=start,
        end=seconds_of(run.get("end_time")) or start,
        source="langsmith",
        order=str(run.get("dotted_order") or ""),
        thread=str(run.get("thread_id") or next((meta[key] for key in _THREADS if meta.get(key)), "")),
        place=str(meta.get("langgraph_checkpoint_ns") or ""),
        node=str(meta.get("langgraph_node") or ""),
        step=meta.get("langgraph_step"),
        failure=failure_of("", str(run["error"])) if run.get("error") else None,
    )
    given, gave = run.get("inputs"), run.get("outputs")
    if span.kind == "model":
        called = extra.get("invocation_params") or {}
        span.name = str(
            meta.get("ls_model_name") or called.get("model") or (given or {}).get("model") or span.name
        )
        span.input, offered = request_of(given) if given else (ABSENT, [])
        span.tools = tool_names(called.get("tools")) or offered
        span.output = reply_of(gave) if gave else ABSENT
        for key, tokens in (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")):
            if run.get(tokens):
                span.usage[key] = int(run[tokens])
    elif span.kind == "tool":
        span.input = given if given is not None else ABSENT
        if gave:
            span.output, span.call, failure = result_of(gave)
            span.failure = span.failure or failure
    else:
        span.input = _bare(given, "input")
        span.output = _bare(gave, "output") if gave else ABSENT
    return span


def _bare(value: Any, key: str) -> Any:
    """Return the value that is no mapping, which LangSmith wraps."""
    if value is None:
        return ABSENT
    return value[key] if isinstance(value, Mapping) and set(value) == {key} else value
