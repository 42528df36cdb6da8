"""A run in words, from its trace: what ran, whom it called, where it went, how long that took.

`sentence` describes one event in a line; `narration` describes a run so, and `harness.report.conversation` with what
was said. The lines are those that Loki writes (spec: Loki, "Streaming and Observability"), for any dialect. Nodes of
nested graphs have the path that leads to them. Times are virtual.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.graph.model import END, START, Graph
from harness.graph.observe import ENDS_OF_VISITS
from harness.graph.trace import Event

_MARK = "▸"
_ROLES = {"human": "user", "ai": "assistant"}


def sentence(event: Event, kinds: Mapping[str, str]) -> str:
    """What an event is, in a line; "" for one that follows from others. `kinds` are those of the nodes, by name."""
    match event["event"]:
        case "node_start":
            name = event["graph"] + event["node"]
            return f"{name} ({kinds[name]})" if name in kinds else str(name)
        case "call":
            return _call(event)
        case "node_error":
            return f"{event['graph']}{event['node']} failed: {event['message']}"
        case "warning":
            return f"warning: {event['text']}"
        case "route":
            return f"{event['graph']}{event['source']} -> {event['graph']}{event['target']}"
    return ""


def route_text(event: Event) -> str:
    """Where a run went on, the ends of the graph as people read them, and under which condition."""
    condition = f"  [{event['condition']}]" if event.get("condition") is not None else ""
    graph = event.get("graph", "")
    return f"{graph}{end_name(event['source'])} -> {graph}{end_name(event['target'])}{condition}"


def end_name(node: str) -> str:
    """The name of a node; of both ends of a graph those that people read."""
    return {START: "(start)", END: "(end)"}.get(node, node)


def role_of(message: Any) -> str:
    """The role of a message in the words of providers: `user`, `assistant`, `tool`."""
    role = (message.get("type") or message.get("role")) if isinstance(message, Mapping) else None
    return _ROLES.get(str(role), str(role or "message"))


def narration(events: Sequence[Event], graph: Graph) -> Iterator[str]:
    """A line for each step of a run, then its performance summary."""
    kinds = kinds_of(graph)
    starts = ", ".join(edge.target for edge in graph.edges_from(START))
    began = 0.0
    for event in events:
        match event["event"]:
            case "input" if event["graph"] == "":
                began = event["at"]
                yield f"{_MARK} graph: {graph.name} (start: {starts})"
            case "resume" if event["graph"] == "":
                began = event["at"]
                yield f"{_MARK} graph: {graph.name} (resumed)"
            case "end" if event["graph"] == "":
                yield f"{_MARK} graph {status_text(event)} in {event['at'] - began:.2f}s"
            case "route" if event["source"] == START or event["target"] == END:
                pass
            case _ if text := sentence(event, kinds):
                yield f"{_MARK} {text}"
    yield from _performance(events, graph)


def _call(event: Event) -> str:
    if event["kind"] != "llm":
        return f"{event['kind']} call: {event['name']}"
    tools = ", ".join(event["request"].get("tools", ())) or "<none>"
    return f"llm call: model={event['name']} tools={tools}"


def kinds_of(graph: Graph) -> dict[str, str]:
    """The kinds of the nodes, by name."""
    return {node.name: node.kind for node in graph.nodes}


def status_text(event: Event) -> str:
    """How a graph ended, in a word."""
    return "done" if event["status"] == "completed" else str(event["status"])


def _performance(events: Sequence[Event], graph: Graph) -> Iterator[str]:
    """The visits of each node and what they took, the slowest node first."""
    took: dict[str, list[float]] = {}
    visits: dict[str, int] = {}
    for event in events:
        if event["event"] == "node_start":
            name = event["graph"] + event["node"]
            visits[name] = visits.get(name, 0) + 1
        elif event["event"] in ENDS_OF_VISITS:
            took.setdefault(event["graph"] + event["node"], []).append(event["latency"])
    if visits:
        yield f"[graph:{graph.name}] performance summary (slowest first):"
    for name in sorted(visits, key=lambda name: -sum(took.get(name, ()))):
        yield f"[graph:{graph.name}] {name}: {_figures(visits[name], took.get(name, []))}"


def _figures(visits: int, seconds: Sequence[float]) -> str:
    total, slowest = sum(seconds), max(seconds, default=0.0)
    figures: Mapping[str, Any] = {"total": total, "avg": total / visits, "max": slowest}
    return ", ".join(
        [f"{visits} visit(s)", *(f"{key} {value * 1000:.0f}ms" for key, value in figures.items())]
    )
