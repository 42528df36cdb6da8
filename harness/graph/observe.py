"""Observations of a run, computed from its trace: path, visits, routes, calls, latency, usage, coverage.

Each function takes the events of a run, or of one turn of it, and looks at the top graph only; the calls
and tokens of nested graphs count too. Times are virtual seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from harness.errors import Problem, Span
from harness.graph.model import ANY_NODE, END, GOTO, START, Edge, Graph
from harness.graph.trace import Event
from harness.units import MOST_TOKENS, PRECISION

Price = Callable[[str, int, int], float | None]
"""What a call of a model with so many tokens sent and received costs; None where it has no price."""

ENDS_OF_VISITS = ("node_end", "node_pause", "node_error")


def _top(events: Iterable[Event], *kinds: str) -> Iterable[Event]:
    return (event for event in events if event["event"] in kinds and event["graph"] == "")


def path(events: Sequence[Event]) -> list[Any]:
    """The nodes in the order they started; those of one superstep as a nested list. A resume is no new start."""
    steps: dict[tuple[int, int], list[str]] = {}
    for event in _top(events, "node_start"):
        steps.setdefault((event["invocation"], event["step"]), []).append(event["node"])
    return [nodes[0] if len(nodes) == 1 else nodes for nodes in steps.values()]


def visits(events: Sequence[Event]) -> dict[str, int]:
    """How often each node started."""
    counts: dict[str, int] = {}
    for event in _top(events, "node_start"):
        counts[event["node"]] = counts.get(event["node"], 0) + 1
    return counts


def routes(events: Sequence[Event]) -> list[list[str]]:
    """The transitions taken, in order, as [from, to]; `__start__` and `__end__` included."""
    return [[event["source"], event["target"]] for event in _taken(events)]


def _taken(events: Iterable[Event]) -> list[Event]:
    """The routes, without those that an update of the state replaced."""
    taken: list[Event] = []
    for event in _top(events, "route", "reroute"):
        if event["event"] == "route":
            taken.append(event)
        else:
            del taken[-event["instead_of"] :]
    return taken


def calls(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Every effect, in the order they were asked for: {kind, name, node, args, ok, latency}.

    One that failed also has the `reason`, and one that was never made is `refused`. One
    of a model has its `prompt` (the last message), and what of `reply`, `tool_calls` and `usage` there is.
    """
    answers = {event["call"]: event for event in events if event["event"] == "answer"}
    found = []
    for event in events:
        if event["event"] == "call":
            answer = answers.get(event["call"], {"ok": False, "latency": 0.0})
            call = {
                "kind": event["kind"],
                "name": event["name"],
                "node": event["node"],
                "args": event["request"].get("args", {}),
                "ok": answer["ok"],
                "latency": answer["latency"],
            }
            if event["kind"] == "llm":
                call |= _said(event["request"].get("messages", ()), answer)
            if not answer["ok"] and (reason := _reason(answer)):
                call["reason"] = reason
            if answer.get("refused"):
                call["refused"] = True
            found.append(call)
    return found


def _said(messages: Sequence[Any], answer: Event) -> dict[str, Any]:
    """What a model was asked, and what it answered."""
    from harness.graph.messages import message_text

    said: dict[str, Any] = {"prompt": message_text(messages[-1]) if messages else ""}
    if answer["ok"]:
        value, usage = answer["value"], answer.get("usage")
        said["reply"] = value["text"]
        said |= {"tool_calls": value["tool_calls"]} if value.get("tool_calls") else {}
        said |= {"usage": usage} if usage else {}
    return said


def _reason(answer: Event) -> str:
    """Why a call failed: the text of its error, or the texts in which an MCP tool reports its failure."""
    if "error" in answer:
        return str(answer["error"]["message"] or answer["error"]["type"])
    value = answer.get("value")
    content = value.get("content") if isinstance(value, dict) else None
    return "\n".join(str(block["text"]) for block in content or () if block.get("type") == "text")


def latency(events: Sequence[Event], began: float, ended: float, *, inside: bool = False) -> dict[str, Any]:
    """{total, nodes}: from `began` to `ended`, and by node summed over its visits, unfinished ones too.

    With `inside`, the nodes of nested graphs are included by their own names, where the top graph has no such node.
    """
    nodes = _seconds([event for event in events if event.get("graph") == ""], ended)
    if inside:
        nodes = {**_seconds([event for event in events if event.get("graph")], ended), **nodes}
    return {
        "total": round(ended - began, PRECISION),
        "nodes": {name: round(seconds, PRECISION) for name, seconds in nodes.items()},
    }


def _seconds(events: Iterable[Event], ended: float) -> dict[str, float]:
    """The seconds that the visits of each node took."""
    nodes: dict[str, float] = {}
    running: dict[tuple[str, str], list[float]] = {}
    for event in events:
        if event["event"] in ENDS_OF_VISITS:
            starts, began = running[event["graph"], event["node"]], event["at"] - event["latency"]
            starts.remove(min(starts, key=lambda start: abs(start - began)))
            nodes[event["node"]] = nodes.get(event["node"], 0.0) + event["latency"]
        elif event["event"] in ("node_start", "node_resume"):
            running.setdefault((event["graph"], event["node"]), []).append(event["at"])
    for (_, name), starts in running.items():
        for start in starts:
            nodes[name] = nodes.get(name, 0.0) + ended - start
    return nodes


def usage(events: Sequence[Event], price: Price) -> dict[str, Any]:
    """{llm_calls, input_tokens, output_tokens, cost, by_model, by_node}. Every attempt is a call.

    `by_model` and `by_node` have the same of each model, and of each node that asked one. Their `cost` is None where
    tokens were reported of a model without a price, which count as 0.
    """
    asked = {event["call"]: event for event in events if event["event"] == "call" and event["kind"] == "llm"}
    by_model, by_node = _by(asked.values(), "name"), _by(asked.values(), "node")
    for event in events:
        if event["event"] == "answer" and (call := asked.get(event["call"])) is not None:
            reported = event.get("usage", {})
            sent, received = (_tokens(reported.get(key)) for key in ("input_tokens", "output_tokens"))
            cost = price(call["name"], sent, received)
            for counts in (by_model[call["name"]], by_node[call["node"]]):
                counts.input_tokens += sent
                counts.output_tokens += received
                counts.costs.append(cost)
    return {
        "llm_calls": len(asked),
        "input_tokens": sum(counts.input_tokens for counts in by_model.values()),
        "output_tokens": sum(counts.output_tokens for counts in by_model.values()),
        "cost": math.fsum(cost or 0.0 for counts in by_model.values() for cost in counts.costs),
        "by_model": {model: counts.as_json() for model, counts in by_model.items()},
        "by_node": {node: counts.as_json() for node, counts in by_node.items()},
    }


@dataclass(slots=True)
class _Counts:
    """What some calls of models came to."""

    llm_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    costs: list[float | None] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "llm_calls": self.llm_calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost": None if None in self.costs else math.fsum(cost or 0.0 for cost in self.costs),
        }


def _by(calls: Iterable[Event], key: str) -> dict[str, _Counts]:
    """The number of calls of each model, or node."""
    found: dict[str, _Counts] = {}
    for call in calls:
        found.setdefault(call[key], _Counts()).llm_calls += 1
    return found


def _tokens(reported: Any) -> int:
    """A number of tokens; 0 for what is none, such as a negative or an infinite one."""
    if not isinstance(reported, int | float) or not 0 <= reported < MOST_TOKENS:
        return 0
    return int(reported)


def interrupts(events: Sequence[Event]) -> list[Any]:
    """The values the run paused with, in order; the node's name where a pause has no value."""
    found: list[Any] = []
    for event in _top(events, "node_pause", "pause"):
        if event["event"] == "pause":
            found += event["nodes"]
        else:
            found += [event["node"] if value is None else value for value in event["values"]]
    return found


def warnings(events: Sequence[Event], places: Mapping[int, Span] | None = None) -> list[str]:
    """The texts of the warnings raised while running, behind their place, if `places` (of the trace) has one."""
    found = [event for event in events if event["event"] == "warning"]
    spans = [(places or {}).get(id(event)) for event in found]
    return [Problem("", event["text"], span).one_line for event, span in zip(found, spans, strict=True)]


def coverage(events: Sequence[Event]) -> dict[str, Any]:
    """{nodes, edges, branches} taken, each once, sorted."""
    taken = {(event["source"], event["target"], event["condition"]) for event in _taken(events)}
    return {
        "nodes": sorted(visits(events)),
        "edges": sorted([list(edge) for edge in {(source, target) for source, target, _ in taken}]),
        "branches": sorted({branch(*route) for route in taken if route[2] is not None}),
    }


@lru_cache(maxsize=256)
def shape(graph: Graph) -> dict[str, Any]:
    """{nodes, edges, branches}: all that `coverage` could name. Not to be changed.

    A node that may go on to any node has one branch for that, `a -> * [goto any]`, and no edges beside its own.
    """
    edges = [*graph.edges, *implied_ends(graph)]
    return {
        "nodes": sorted(node.name for node in graph.nodes),
        "edges": sorted([list(edge) for edge in {(edge.source, edge.target) for edge in edges}]),
        "branches": sorted(
            {branch(e.source, e.target, e.label) for e in edges if e.label is not None}
            | {branch(source, ANY_NODE, GOTO) for source in graph.goto_anywhere}
        ),
    }


def implied_ends(graph: Graph) -> list[Edge]:
    """A node without a way out leads to the end."""
    sources = {edge.source for edge in graph.edges if not edge.on_error} - {START}
    return [Edge(node.name, END) for node in graph.nodes if node.name not in sources]


def branch(source: str, target: str, condition: str | None) -> str:
    """How coverage names a branch. Those to any node are one, whichever was taken."""
    target = ANY_NODE if condition == GOTO else target
    return f"{source} -> {target} [{condition}]"
