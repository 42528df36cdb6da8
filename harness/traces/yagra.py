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
        call.kind, call.name, call.usage, call.input = (
            "model",
            str(used.get("model") or ""),
            usage_of(used),
            ABSENT,
        )
        call.output = {"text": as_text(said[0])} if is_known and len(said) == 1 else ABSENT
    yield from (node, call)
