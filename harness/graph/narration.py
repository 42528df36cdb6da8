"""Description of a run as text, made from its trace: nodes, calls, routes and durations.

`sentence` describes one event in a line, `narration` a whole run, and `causes` why it went the way it did where
something went wrong; `harness.report.conversation` adds the
messages. The lines have the format that Loki writes (spec: Loki, "Streaming and Observability"), for every
dialect. Nodes of nested graphs are shown with their path. Times are virtual.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from harness.graph.effects import EFFECTS, Effect
from harness.graph.model import END, ON_ERROR, START, Graph
from harness.graph.observe import ENDS_OF_VISITS
from harness.graph.to_json import told_error
from harness.graph.trace import Event

_MARK = "▸"
_ROLES = {"human": "user", "ai": "assistant"}


def sentence(event: Event, kinds: Mapping[str, str]) -> str:
    """Describe an event in a line; "" for an event that is not shown. `kinds` has the kinds of nodes, by name."""
    match event["event"]:
        case "node_start":
            name = event["graph"] + event["node"]
            return f"{name} ({kinds[name]})" if name in kinds else str(name)
        case "call":
            return EFFECTS.get(event["kind"], Effect).told(event)
        case "node_error":
            return f"{event['graph']}{event['node']} failed: {event['message']}"
        case "warning":
            return f"warning: {event['text']}"
        case "route":
            return f"{event['graph']}{event['source']} -> {event['graph']}{event['target']}"
    return ""


def route_text(event: Event) -> str:
    """Describe a route: source, target, and the condition if there is one."""
    condition = f"  [{event['condition']}]" if event.get("condition") is not None else ""
    graph = event.get("graph", "")
    return f"{graph}{end_name(event['source'])} -> {graph}{end_name(event['target'])}{condition}"


def end_name(node: str) -> str:
    """Return the name of a node for display: `(start)` and `(end)` for the two ends of a graph."""
    return {START: "(start)", END: "(end)"}.get(node, node)


def role_of(message: Any) -> str:
    """Return the role of a message by the names that providers use: `user`, `assistant`, `tool`, …"""
    role = (message.get("type") or message.get("role")) if isinstance(message, Mapping) else None
    return _ROLES.get(str(role), str(role or "message"))


def narration(events: Sequence[Event], graph: Graph) -> Iterator[str]:
    """Yield a line for each step of a run, then its performance summary."""
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


def kinds_of(graph: Graph) -> dict[str, str]:
    """Return the kinds of the nodes, by name."""
    return {node.name: node.kind for node in graph.nodes}


def status_text(event: Event) -> str:
    """Return the status in an `end` event, with "done" for "completed"."""
    return "done" if event["status"] == "completed" else str(event["status"])


def _performance(events: Sequence[Event], graph: Graph) -> Iterator[str]:
    """Yield a line with the visits and durations of each node, the slowest node first."""
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


_DID: Final = {
    "retry": "ran again because it failed:",
    "default": "used a default because",
    "skip": "went on without an update because",
}
_LEFT: Final = {"fallback": "because {node} failed:", "branch": "because"}


def causes(events: Sequence[Event]) -> list[str]:
    """Return why nodes ran again, left by their fallback or for a default, in order. `× 2` stands for two in a row.

    Nodes of nested graphs have their path.
    """
    told = [(text, len(list(alike))) for text, alike in groupby(_causes(events))]
    return [f"{text}  × {times}" if times > 1 else text for text, times in told]


def _causes(events: Sequence[Event]) -> Iterator[str]:
    if {"node_error", "because"}.isdisjoint({event["event"] for event in events}):
        return
    left: dict[str, tuple[str, str]] = {}
    passed_over: dict[str, str] = {}  # the failures of nodes of the outermost graph that nothing has told yet
    for event in events:
        kind, graph = event["event"], event.get("graph", "")
        node = f"{graph}{event.get('node') or event.get('source')}"
        if kind == "node_start":
            left.pop(node, None)
            passed_over.pop(node, None)
        elif kind == "node_error":
            left[node] = "fallback", told_error(event["type"], event["message"])
            if not graph:
                passed_over[node] = left[node][1]
        elif kind == "because" and event["then"] in _LEFT:
            left[node] = event["then"], event["message"]
        elif kind == "because":
            yield f"{node} {_DID[event['then']]} {event['message']}"
        elif kind == "route" and node in left:
            then, message = left[node]
            if then == "branch" or event["condition"] == ON_ERROR:
                passed_over.pop(node, None)
                target = graph + end_name(event["target"])
                yield f"{node} → {target} {_LEFT[then].format(node=node)} {message}"
        elif kind == "warning":
            passed_over = {node: why for node, why in passed_over.items() if why not in event["text"]}
        elif kind == "end" and not graph and event["status"] == "completed":
            yield from (f"the run went on after {node} failed: {why}" for node, why in passed_over.items())
            passed_over = {}
