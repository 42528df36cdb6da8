"""Observations of a run, computed from its trace: path, visits, routes, calls, latency, usage, coverage.

Each function takes the events of a run, or of one turn of it. It covers the outermost graph only, except that calls
and tokens of nested graphs are included. Times are virtual seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from harness.errors import Problem, Span
from harness.graph.model import ANY_NODE, END, GOTO, START, Edge, Graph
from harness.graph.trace import Event
from harness.units import MOST_TOKENS, PRECISION

Price = Callable[[str, int, int], float | None]
"""Returns the cost of a call, given the model and the numbers of input and output tokens; None without a price."""

ENDS_OF_VISITS = ("node_end", "node_pause", "node_error")


def _top(events: Iterable[Event], *kinds: str) -> Iterable[Event]:
    return (event for event in events if event["event"] in kinds and event["graph"] == "")


def path(events: Sequence[Event]) -> list[Any]:
    """Return the nodes in the order they started, those of one superstep as a nested list. Resumes do not count."""
    steps: dict[tuple[int, int], list[str]] = {}
    for event in _top(events, "node_start"):
        steps.setdefault((event["invocation"], event["step"]), []).append(event["node"])
    return [nodes[0] if len(nodes) == 1 else nodes for nodes in steps.values()]


def visits(events: Sequence[Event]) -> dict[str, int]:
    """Return the number of starts of each node."""
    counts: dict[str, int] = {}
    for event in _top(events, "node_start"):
        counts[event["node"]] = counts.get(event["node"], 0) + 1
    return counts


def routes(events: Sequence[Event]) -> list[list[str]]:
    """Return the transitions taken, in order, as [from, to], including `__start__` and `__end__`."""
    return [[event["source"], event["target"]] for event in _routes_taken(events)]


def _routes_taken(events: Iterable[Event]) -> list[Event]:
    """Return the route events, without those that an update of the state replaced."""
    taken: list[Event] = []
    for event in _top(events, "route", "reroute"):
        if event["event"] == "route":
            taken.append(event)
        else:
            del taken[-event["instead_of"] :]
    return taken


def calls(events: Sequence[Event], *, requests: bool = False) -> list[dict[str, Any]]:
    """Return all effects in the order they were requested, as {kind, name, node, args, ok, latency}.

    A failed call also has the `reason`; one that was never performed has `refused`. A model call has its `prompt`
    (the last message), and `reply`, `tool_calls` and `usage` if the answer has them; with `requests`, its `request`,
    too: {messages, params, tools, response_format}.
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
                call |= _model_fields(event["request"].get("messages", ()), answer)
                call |= {"request": model_request(event["request"])} if requests else {}
            if not answer["ok"] and (reason := _reason(answer)):
                call["reason"] = reason
            if answer.get("refused"):
                call["refused"] = True
            found.append(call)
    return found


def _model_fields(messages: Sequence[Any], answer: Event) -> dict[str, Any]:
    """Return the fields that only a model call has: its prompt, and the parts of the reply."""
    from harness.graph.messages import message_text

    fields: dict[str, Any] = {"prompt": message_text(messages[-1]) if messages else ""}
    if answer["ok"]:
        value, usage = answer["value"], answer.get("usage")
        fields["reply"] = value["text"]
        fields |= {"tool_calls": value["tool_calls"]} if value.get("tool_calls") else {}
        fields |= {"usage": usage} if usage else {}
    return fields


def model_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model was asked, as JSON. Tools are told by their names."""
    from harness.graph.messages import message_json
    from harness.graph.to_json import to_json

    written = request.get("messages", ())
    messages = [dict(each) if isinstance(each, Mapping) else message_json(each) for each in written]
    rest = {key: to_json(request.get(key)) for key in ("params", "tools", "response_format")}
    return {**rest, "params": rest["params"] or {}, "tools": rest["tools"] or [], "messages": messages}


def _reason(answer: Event) -> str:
    """Return the reason of a failed call: its error message, or the text in which an MCP tool reports the failure."""
    if "error" in answer:
        return str(answer["error"]["message"] or answer["error"]["type"])
    value = answer.get("value")
    content = value.get("content") if isinstance(value, dict) else None
    return "\n".join(str(block["text"]) for block in content or () if block.get("type") == "text")


def latency(events: Sequence[Event], began: float, ended: float, *, inside: bool = False) -> dict[str, Any]:
    """Return {total, nodes, visits}: the time from `began` to `ended`, and the sum over the visits of each node.

    `visits` lists the durations for each node that was visited again; without any, it is left out. Unfinished visits
    count up to `ended`. With `inside`, nodes of nested graphs are included by their own names, unless the outermost
    graph has a node of that name.
    """
    outermost = _visits([event for event in events if event.get("graph") == ""], ended)
    nodes = {name: math.fsum(visits) for name, visits in outermost.items()}
    if inside:
        inner = _visits([event for event in events if event.get("graph")], ended)
        nodes = {**{name: math.fsum(visits) for name, visits in inner.items()}, **nodes}
    again = {
        name: [round(seconds, PRECISION) for seconds in visits]
        for name, visits in outermost.items()
        if len(visits) > 1
    }
    return {
        "total": round(ended - began, PRECISION),
        "nodes": {name: round(seconds, PRECISION) for name, seconds in nodes.items()},
        **({"visits": again} if again else {}),
    }


@dataclass(slots=True, eq=False)
class _Visit:
    """A visit of a node: its duration so far, and the time at which it began or went on."""

    seconds: float
    since: float


def _visits(events: Iterable[Event], ended: float) -> dict[str, list[float]]:
    """Return the durations of the visits of each node, in the order in which they began."""
    found: dict[str, list[_Visit]] = {}
    running: dict[tuple[str, str], list[_Visit]] = {}
    paused: dict[tuple[str, str], list[_Visit]] = {}
    order: dict[str, Any] = {}  # the node whose visit ended first is first
    for event in events:
        kind = event["event"]
        if kind in ENDS_OF_VISITS:
            at, began = (event["graph"], event["node"]), event["at"] - event["latency"]
            visit = min(running[at], key=lambda each: abs(each.since - began))
            running[at].remove(visit)
            visit.seconds += event["latency"]
            order[event["node"]] = None
            if kind == "node_pause":
                paused.setdefault(at, []).append(visit)
        elif kind in ("node_start", "node_resume"):
            at = event["graph"], event["node"]
            if kind == "node_resume" and paused.get(at):
                visit = paused[at].pop(0)
                visit.since = event["at"]
            else:
                visit = _Visit(0.0, event["at"])
                found.setdefault(event["node"], []).append(visit)
            running.setdefault(at, []).append(visit)
    for visit in (visit for visits in running.values() for visit in visits):
        visit.seconds += ended - visit.since
    return {name: [visit.seconds for visit in found[name]] for name in order | found}


def usage(events: Sequence[Event], price: Price) -> dict[str, Any]:
    """Return {llm_calls, input_tokens, output_tokens, cost, by_model, by_node}. Every attempt counts as a call.

    `by_model` and `by_node` have the same four figures for each model, and for each node that called one. There,
    `cost` is None if tokens were reported for a model without a price. They add nothing to the total `cost`.
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
    """The number, tokens and costs of a group of model calls."""

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
    """Count the calls by a key of the event: the model's `name`, or the `node`."""
    found: dict[str, _Counts] = {}
    for call in calls:
        found.setdefault(call[key], _Counts()).llm_calls += 1
    return found


def _tokens(reported: Any) -> int:
    """Return a reported number of tokens, or 0 if the value is not a plausible number."""
    if not isinstance(reported, int | float) or not 0 <= reported < MOST_TOKENS:
        return 0
    return int(reported)


def interrupts(events: Sequence[Event]) -> list[Any]:
    """Return the values that the run paused with, in order. A pause without a value has the node's name."""
    found: list[Any] = []
    for event in _top(events, "node_pause", "pause"):
        if event["event"] == "pause":
            found += event["nodes"]
        else:
            found += [event["node"] if value is None else value for value in event["values"]]
    return found


def warnings(events: Sequence[Event], spans: Mapping[int, Span] | None = None) -> list[str]:
    """Return the texts of the warnings of a run, each with its location if `Trace.spans` has one."""
    found = [event for event in events if event["event"] == "warning"]
    known = spans or {}
    return [Problem("", event["text"], known.get(id(event))).one_line for event in found]


def coverage(events: Sequence[Event], *, nested: bool = False) -> dict[str, Any]:
    """Return the {nodes, edges, branches} that were taken, sorted, without duplicates.

    With `nested`, those of nested graphs are included, as `outer/inner`. Such a graph begins at its outer node and
    returns to it.
    """
    taken = {(event["source"], event["target"], event["condition"]) for event in _routes_taken(events)}
    nodes = set(visits(events))
    if nested:
        nodes |= _started_inside(events)
        taken.update(_routes_inside(events, nodes))
    return {
        "nodes": sorted(nodes),
        "edges": sorted([list(edge) for edge in {(source, target) for source, target, _ in taken}]),
        "branches": sorted({branch(*route) for route in taken if route[2] is not None}),
    }


def _started_inside(events: Sequence[Event]) -> set[str]:
    """Return the nodes of nested graphs that started."""
    starts = (event for event in events if event["event"] == "node_start" and event["graph"])
    return {event["graph"] + event["node"] for event in starts}


def _routes_inside(events: Sequence[Event], nodes: Collection[str]) -> Iterator[tuple[str, str, str | None]]:
    """Yield the routes of nested graphs, as (source, target, condition)."""
    for event in events:
        if event["event"] == "route" and (prefix := event["graph"]):
            outer = prefix.rstrip("/")
            while outer and outer not in nodes:  # a name of the graph stands in between
                outer = outer.rpartition("/")[0]
            target = END if event["target"].startswith("../") else event["target"]
            ends = [inside(end, prefix, outer) for end in (event["source"], target)]
            if ends != [outer, outer]:
                yield ends[0], ends[1], event["condition"]


def inside(name: str, prefix: str, outer: str) -> str:
    """Return the name of a node of a nested graph, which begins with `prefix`: its ends are the node around it."""
    return (outer or name) if name in (START, END) else prefix + name


@lru_cache(maxsize=256)
def possible_coverage(graph: Graph) -> dict[str, Any]:
    """Return all {nodes, edges, branches} that `coverage` may contain. Cached: the result must not be changed.

    A node that may go to any node has one branch for that, `a -> * [goto any]`, and only its declared edges.
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
    """Return an edge to END for each node without an edge of its own, fallbacks aside, unless runs fail there."""
    if graph.explicit_ends:
        return []
    sources = {edge.source for edge in graph.edges if not edge.on_error} - {START}
    return [Edge(node.name, END) for node in graph.nodes if node.name not in sources]


def branch(source: str, target: str, condition: str | None) -> str:
    """Return the name of a branch in coverage. All branches of a node that may go anywhere have one name."""
    target = ANY_NODE if condition == GOTO else target
    return f"{source} -> {target} [{condition}]"
