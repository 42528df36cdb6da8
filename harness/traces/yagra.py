"""Yagra's golden runs (`yagra golden save`), and the traces of its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.graph.to_json import as_text
from harness.traces.messages import failure_of
from harness.traces.spans import ABSENT, Span, seconds_of

_MODELS = ("llm", "structured_llm", "streaming_llm")


def recognises(records: Sequence[Any]) -> bool:
    """True for golden runs and traces."""
    return any(
        isinstance(each, Mapping) and "workflow_name" in each and _visits(each) is not None
        for each in records
    )


def _visits(run: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the visits of nodes; None if it is no run. A golden run has each node once, as it was last."""
    if isinstance(nodes := run.get("nodes"), list):
        return nodes
    saved, path = run.get("node_snapshots"), run.get("execution_path")
    return [saved[name] for name in path] if isinstance(saved, Mapping) and isinstance(path, list) else None


def read(records: Sequence[Any]) -> Iterator[Span]:
    """Yield a span for each run, each node, and each call of a handler or a model."""
    for run in records:
        visits = _visits(run) if isinstance(run, Mapping) else None
        if visits is None:
            continue
        trace = str(run.get("source_run_id") or run.get("run_id"))
        began = seconds_of(run.get("created_at") or run.get("started_at"))
        first = visits[0]["input_snapshot"] if visits else {}
        last = {**visits[-1]["input_snapshot"], **visits[-1]["output_snapshot"]} if visits else {}
        root = Span(
            "run",
            "",
            trace,
            str(run.get("case_name") or run["workflow_name"]),
            "agent",
            began,
            began,
            "yagra",
        )
        root.input, root.output = run.get("initial_state", first), run.get("final_state", last)
        inside = []
        for step, visit in enumerate(visits, start=1):
            inside += _visit(visit, step, trace, root)
        for span in inside:  # of a node that ran more than once, only the last visit was kept
            again = any(each.node == span.node and each.order > span.order for each in inside)
            if "node_snapshots" in run and again:
                span.input = span.output = ABSENT
        yield from (root, *inside)


def _visit(visit: Mapping[str, Any], step: int, trace: str, root: Span) -> list[Span]:
    start = seconds_of(visit.get("started_at")) or root.start
    end = seconds_of(visit.get("ended_at")) or start
    root.end = max(root.end, end)
    name, before, after = str(visit["node_id"]), visit["input_snapshot"], visit["output_snapshot"]
    error = visit.get("error") or {}
    failure = failure_of(str(error.get("error_type")), str(error.get("error_message"))) if error else None
    node = Span(
        str(step),
        "run",
        trace,
        name,
        "node",
        start,
        end,
        "yagra",
        step,
        node=name,
        step=step,
        failure=failure,
    )
    node.output = after
    changed = {key: value for key, value in after.items() if key not in before or before[key] != value}
    call = Span(
        f"{step}.call",
        str(step),
        trace,
        str(visit["handler"]),
        "handler",
        start,
        end,
        "yagra",
        step,
        node=name,
    )
    call.failure, call.input, call.output = failure, before, changed
    if visit["handler"] in _MODELS:
        used = visit.get("llm_call") or {}
        call.kind, call.name, call.input = "model", str(used.get("model") or ""), ABSENT
        said = [value for key, value in changed.items() if key != "__next__"]
        call.output = {"text": as_text(said[0])} if len(said) == 1 else ABSENT
        call.usage = {
            f"{kind}_tokens": int(used[key])
            for kind, key in (("input", "prompt_tokens"), ("output", "completion_tokens"))
            if used.get(key)
        }
    return [node, call]
