"""A small dialect for the event scheduler: a mapping is compiled to an `EventGraph`.

    start: a                                 # the nodes that the input activates: a name, or a list
    limit: 2                                 # the most concurrent visits
    nodes:
      a: {takes: 1, to: [b, {c: big}]}       # seconds; `big` is a key of the state that must be true
      b: {writes: {big: true}, limit: 1}     # the most concurrent visits of this node
      c: {wait_for: "a AND (b OR x?)", timeout: 5}
      d: {error: broken, tries: 3, fallback: e}
      e: {asks: "what now?"}
      f: {effect: lookup}                    # a call of this tool
      g: {body: a function of state and context}

A node's input is the state, the `callers` in order of arrival and, after a restart, the text of the error it `failed`
with. Nodes write their names (and the answers they got) to `log`, and the input they saw to `seen`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.engine.context import NodeContext, RunContext
from harness.engine.conversation import Conversation, Ending
from harness.engine.standstill import Simulation
from harness.graph import observe
from harness.graph.effects import ToolCall
from harness.graph.events import (
    AllOf,
    AnyOf,
    Arrival,
    ConcurrencyLimit,
    EventGraph,
    FailureHandler,
    Join,
    Member,
    NodeFailure,
    Requirement,
    Restart,
)
from harness.graph.model import START, Channel, Dispatch, Edge, Node, NodeFunction, Router, State, Update
from harness.graph.trace import Event
from harness.world.spec import WorldSpec
from tests.engine.graphs import simulate

Agent = Mapping[str, Any]


def compiled(agent: Agent, **fields: Any) -> EventGraph:
    """Compile an agent to a graph. `fields` override fields of the graph."""
    nodes: Mapping[str, Agent] = agent["nodes"]
    ways = {name: [_way(name, to) for to in _listed(node.get("to", []))] for name, node in nodes.items()}
    fallbacks = [
        Edge(name, node["fallback"], on_error=True) for name, node in nodes.items() if "fallback" in node
    ]
    limits = [ConcurrencyLimit(agent["limit"])] if "limit" in agent else []
    written = dict.fromkeys(key for node in nodes.values() for key in node.get("writes", {}))
    own: dict[str, Any] = {
        "name": "g",
        "dialect": "events",
        "nodes": tuple(Node(name, "step", node.get("body") or _body(node)) for name, node in nodes.items()),
        "edges": (
            *(Edge(START, target) for target in _listed(agent["start"])),
            *(edge for edges in ways.values() for edge in edges),
            *fallbacks,
        ),
        "channels": (
            *map(Channel, ["text", *written]),
            Channel("log", lambda old, new: [*old, *new], list),
            Channel("seen", lambda old, new: {**old, **new}, dict),
        ),
        "routers": {name: _router(edges) for name, edges in ways.items()},
        "joins": {
            name: Join(requirement(node["wait_for"]), node.get("timeout"))
            for name, node in nodes.items()
            if "wait_for" in node
        },
        "limits": tuple(
            limits
            + [
                ConcurrencyLimit(node["limit"], frozenset({n}))
                for n, node in nodes.items()
                if "limit" in node
            ]
        ),
        "input_of": _input_of,
        "on_failure": _tried_again(nodes),
    }
    return EventGraph(**{**own, **fields})


def requirement(text: str) -> Requirement:
    """Parse a requirement such as `a AND (b OR c?)`. AND binds tighter."""
    tokens = re.findall(r"[()]|[\w?]+", text)

    def items(separator: str, item: Any) -> list[Requirement]:
        found = [item()]
        while tokens[:1] == [separator]:
            tokens.pop(0)
            found.append(item())
        return found

    def any_of() -> Requirement:
        found = items("OR", all_of)
        return AnyOf(tuple(found)) if len(found) > 1 else found[0]

    def all_of() -> Requirement:
        found = items("AND", member)
        return AllOf(tuple(found)) if len(found) > 1 else found[0]

    def member() -> Requirement:
        token = tokens.pop(0)
        if token != "(":
            return Member(token.removesuffix("?"), token.endswith("?"))
        found = any_of()
        tokens.pop(0)
        return found

    return any_of()


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _way(source: str, to: str | Mapping[str, str]) -> Edge:
    if isinstance(to, str):
        return Edge(source, to)
    ((target, condition),) = to.items()
    return Edge(source, target, condition)


def _router(ways: Sequence[Edge]) -> Router:
    async def follow(state: State, run: RunContext) -> Sequence[Edge | Dispatch]:
        return [way for way in ways if way.condition is None or state.get(way.condition)]

    return follow


def _input_of(arrivals: Sequence[Arrival], state: State) -> State:
    return {**state, "callers": [arrival.source for arrival in arrivals]}


def _tried_again(nodes: Mapping[str, Agent]) -> FailureHandler:
    async def on_failure(failure: NodeFailure, run: RunContext) -> Sequence[Edge | Dispatch] | Restart:
        node = nodes[failure.node]
        if 0 < failure.attempt < node.get("tries", 1):
            return Restart({"failed": str(failure.error)})
        return [Edge(failure.node, node["fallback"], on_error=True)] if "fallback" in node else ()

    return on_failure


def _body(node: Agent) -> NodeFunction:
    async def run(state: State, ctx: NodeContext) -> Update:
        await ctx.sleep(node.get("takes", 0))
        log = [ctx.name]
        if "effect" in node:
            log.append(await ctx.perform(ToolCall(name=node["effect"], args={"by": ctx.name})))
        if "asks" in node:
            log.append(await ctx.pause(node["asks"]))
        if "error" in node:
            raise ValueError(node["error"])
        seen = {key: state[key] for key in ("callers", "failed") if key in state}
        return Update({**node.get("writes", {}), "log": log, "seen": {ctx.name: seen}})

    return run


@dataclass
class Run:
    """The ending and the trace of a run."""

    ending: Ending
    events: list[Event]
    digest: str

    @property
    def status(self) -> str:
        return self.ending.status

    @property
    def path(self) -> list[Any]:
        return observe.path(self.events)

    @property
    def log(self) -> list[Any]:
        return list(self.ending.state["log"])

    @property
    def total(self) -> float:
        """Virtual seconds from start to end."""
        return float(self.events[-1]["at"])

    @property
    def starts(self) -> list[tuple[str, float]]:
        """The starts of nodes of the outermost graph: (name, time)."""
        started = [event for event in self.events if event["event"] == "node_start" and event["graph"] == ""]
        return [(event["node"], event["at"]) for event in started]

    def seen(self, node: str) -> Mapping[str, Any]:
        """Return the input that the last visit of a node saw."""
        found: Mapping[str, Any] = self.ending.state["seen"][node]
        return found


def run(agent: Agent | EventGraph, world: WorldSpec | None = None, *answers: Any) -> Run:
    """Run a graph with one input and, with `answers`, resume it."""
    graph = agent if isinstance(agent, EventGraph) else compiled(agent)

    async def main(simulation: Simulation) -> Run:
        conversation = Conversation(graph, simulation)
        ending = await conversation.send({})
        if answers:
            ending = await conversation.resume(*answers)
        return Run(ending, simulation.trace.events, simulation.trace.digest())

    found: Run = simulate(main, world)
    return found
