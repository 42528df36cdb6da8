"""Yagra's golden runs (`yagra golden save`), and the traces of its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.graph.to_json import as_text
from harness.traces.messages import failure_of, usage_of
from harness.traces.spans import ABSENT, Span, mapping, seconds_of

_MODELS: Final = ("llm", "structured_llm", "streaming_llm")


def recognises(records: Sequence[Any]) -> bool:
    """True for golden runs and traces."""
    return any(
        "workflow_name" in each and ("nodes" in each or "node_snapshots" in each)
        for each in map(mapping, records)
    )


def read(records: Sequence[Any]) -> Iterator[Span]:
    """Yield a span for each run, each visit of a node, and each call of a handler or a model."""
    for run in map(mapping, records):
        saved = mapping(run.get("node_snapshots"))
        visits = run.get("nodes") or [saved[name] for name in run.get("execution_path") or ()]
        trace = str(run.get("source_run_id") or run.get("run_id"))
        began = seconds_of(run.get("created_at") or run.get("started_at"))
        ended = seconds_of(run.get("ended_at")) or began
        root = Span(
            "run",
            "",
            trace,
            str(run.get("case_name") or run.get("workflow_name")),
            "agent",
            began,
            ended,
            "yagra",
        )
        if visits:
            last = {**visits[-1]["input_snapshot"], **visits[-1]["output_snapshot"]}
            root.input = run.get("initial_state", visits[0]["input_snapshot"])
            root.output = run.get("final_state", last)
        yield root
        names = [visit["node_id"] for visit in visits]
        for step, visit in enumerate(visits, start=1):
            # A golden run has each node once, as it was last.
            yield from _visit(
                visit, step, root, is_known=not saved or names[step:].count(names[step - 1]) == 0
            )


def _visit(visit: Mapping[str, Any], step: int, root: Span, is_known: bool) -> Iterator[Span]:
    start = seconds_of(visit.get("started_at")) or root.start
    times = start, seconds_of(visit.get("ended_at")) or start
    name, before, after = str(visit["node_id"]), visit["input_snapshot"], visit["output_snapshot"]
    error, used = mapping(visit.get("error")), mapping(visit.get("llm_call"))
    is_model = visit["handler"] in _MODELS
    called = str(used.get("model") or "") if is_model else str(visit["handler"])
    node = Span(str(step), "run", root.trace, name, "node", *times, "yagra", step, node=name, step=step)
    call = Span(
        f"{step}.call", node.id, root.trace, called, "model" if is_model else "handler", *times, "yagra", step
    )
    node.failure = call.failure = (
        failure_of(str(error["error_type"]), str(error.get("error_message"))) if error else None
    )
    call.usage = usage_of(used)
    if is_known:
        changed = {key: value for key, value in after.items() if key not in before or before[key] != value}
        node.output, call.input, call.output = after, before, changed
    if is_model and call.output:
        said = [value for key, value in call.output.items() if key != "__next__"]
        call.input, call.output = ABSENT, {"text": as_text(said[0])} if len(said) == 1 else ABSENT
    yield from (node, call)
