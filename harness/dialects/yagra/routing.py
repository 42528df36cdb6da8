"""The edges and routers of a workflow's graph.

spec: "Edge Specification", "Start and End Points", "Resilience" (fallback).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.dialects.yagra.document import NEXT, FanOut, Workflow
from harness.engine.context import RunContext
from harness.errors import HarnessError
from harness.graph.messages import MessageLog
from harness.graph.model import END, START, Dispatch, Edge, Router, State
from harness.source.display import did_you_mean
from harness.source.document import Document
from harness.source.models import describe


class NoRoute(HarnessError):
    """A node whose state selects no edge."""

    code = "no-route"


def edges_and_routers(workflow: Workflow, document: Document) -> tuple[list[Edge], Mapping[str, Router]]:
    """Return the edges of a workflow, and a router for each node whose edges depend on the state."""
    edges = [Edge(START, workflow.start_at, span=document.span(("start_at",)))]
    by_source: dict[str, list[Edge]] = {}
    seen: set[tuple[str, str, str | None]] = set()
    fan_outs: dict[str, FanOut] = {}
    for index, written in enumerate(workflow.edges):
        condition = written.condition
        if written.fan_out is not None:
            fan_outs[written.source] = written.fan_out
            condition = f"each of {written.fan_out.items_key}"
        edge = Edge(written.source, written.target, condition, span=document.span(("edges", index)))
        if (edge.source, edge.target, condition) not in seen:
            seen.add((edge.source, edge.target, condition))
            by_source.setdefault(edge.source, []).append(edge)
    for index, id_ in enumerate(workflow.end_at):
        by_source.setdefault(id_, [Edge(id_, END, span=document.span(("end_at", index)))])
    routers: dict[str, Router] = {}
    for source, leaving in by_source.items():
        if source in fan_outs:
            routers[source] = _fan_out_router(leaving[0], fan_outs[source])
        elif workflow.has_conditional_edges(source):
            routers[source] = _conditional_router(source, {str(edge.condition): edge for edge in leaving})
        edges += leaving
    for index, node in enumerate(workflow.nodes):
        if node.fallback is not None:
            span = document.span(("nodes", index, "fallback"))
            edges.append(Edge(node.id, node.fallback, on_error=True, span=span))
    return edges, routers


def _conditional_router(source: str, by_label: Mapping[str, Edge]) -> Router:
    """Return the router of a node with conditional edges. spec: "Conditional Edge"."""
    allowed = ", ".join(sorted(by_label))

    async def follow(state: State, _run: RunContext) -> Sequence[Edge | Dispatch]:
        label = state.get(NEXT)
        if not isinstance(label, str):
            found = describe(label) if NEXT in state else "nothing"
            text = f"'{source}' needs a label in {NEXT} (one of {allowed}): expected text, found {found}"
            raise NoRoute(text)
        if label not in by_label:
            hint = did_you_mean(label, by_label, listing=False)
            text = f"no edge from '{source}' has the label '{label}' (allowed: {allowed})"
            raise NoRoute(f"{text}; {hint}" if hint else text)
        return [by_label[label]]

    return follow


def _fan_out_router(edge: Edge, fan_out: FanOut) -> Router:
    """Return the router of a fan-out edge. spec: "Fan-Out Edge". The target gets its item and no other state."""

    async def follow(state: State, _run: RunContext) -> Sequence[Edge | Dispatch]:
        items = state.get(fan_out.items_key)
        if not isinstance(items, (list, MessageLog)):
            found = describe(items) if fan_out.items_key in state else "nothing"
            where = f"fan_out after '{edge.source}' needs a list in '{fan_out.items_key}'"
            raise NoRoute(f"{where}: found {found}")
        return [Dispatch(edge, {fan_out.item_key: item}) for item in items]

    return follow
