"""Edges, and the choice among them. spec: "Routing & Tolerant-Fail".

A node that has a choice says in `Update.routing_values` which exit it takes; the state does not keep that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.dialects.loki.document import ApprovalNode, EndNode, GraphFile, NodeSpec, ScriptNode
from harness.engine.context import RunContext
from harness.errors import HarnessError
from harness.graph.model import END, GOTO, START, Edge, Router, Routes, State, Update
from harness.source.document import Document, DocumentPath
from harness.source.suggest import did_you_mean

NEXT: Final = "next"
FALLBACK: Final = "fallback"
ON_OTHER: Final = "on_other"
_EXIT: Final = "__exit__"
"""Under this key the router finds the exit: `next`, `fallback`, `on_other`, an `Answered` or a `Named`."""


class NoRoute(HarnessError):
    """A node after which the run cannot go on."""

    code = "no-route"


@dataclass(frozen=True)
class Answered:
    """The exit for an answer that has a route."""

    answer: str


@dataclass(frozen=True)
class Named:
    """The exit to the node that a script names in `_next`."""

    target: str


Exit = str | Answered | Named


def leaving(state: Mapping[str, Any], exit_: Exit = NEXT) -> Update:
    """What a node returns: the whole new state, and its exit."""
    return Update(state, routing_values={_EXIT: exit_})


@dataclass(frozen=True)
class Declared:
    """An edge as it is declared: the field at `path` of the node `source` names `target`."""

    source: str
    target: str
    exit: Exit
    path: DocumentPath

    @property
    def label(self) -> str | None:
        """The condition of the edge in pictures, coverage and the trace."""
        if isinstance(self.exit, Answered):
            return self.exit.answer
        return "other" if self.exit == ON_OTHER else None


def declared_edges(graph: GraphFile) -> Iterator[Declared]:
    """Every static edge that the validator follows: `next`, `routes`, `on_other`, `fallback`. spec: "Validation"."""
    for id_, node in graph.nodes.items():
        yield from (
            Declared(id_, getattr(node, field), field, ("nodes", id_, field))
            for field in node.targets
            if getattr(node, field) is not None
        )
        if isinstance(node, ApprovalNode):
            for answer, target in node.routes.items():
                yield Declared(id_, target, Answered(answer), ("nodes", id_, "routes", answer))


def edges_and_routers(graph: GraphFile, document: Document) -> tuple[list[Edge], dict[str, Router]]:
    """The edges that can be taken, and a router for each node that has a choice, or nowhere to go.

    `next` of approval and end nodes is ignored, and so is, with validation off, an edge to no node.
    """
    edges = [Edge(START, graph.start, span=document.span(("start",)))]
    routers: dict[str, Router] = {}
    exits: dict[str, dict[Exit, Edge]] = {id_: {} for id_ in graph.nodes}
    unknown: dict[str, dict[Exit, str]] = {id_: {} for id_ in graph.nodes}
    for way in declared_edges(graph):
        node = graph.nodes[way.source]
        if isinstance(node, EndNode) or (isinstance(node, ApprovalNode) and way.exit == NEXT):
            continue
        if way.target not in graph.nodes:
            unknown[way.source][way.exit] = way.target
            continue
        on_error = way.exit == FALLBACK
        edge = Edge(way.source, way.target, way.label, on_error, document.span(way.path))
        exits[way.source][way.exit] = edge
        edges.append(edge)
    for id_, node in graph.nodes.items():
        if isinstance(node, EndNode):
            edges.append(Edge(id_, END, span=document.span(("nodes", id_))))
        elif isinstance(node, ScriptNode) or exits[id_].keys() != {NEXT}:
            routers[id_] = _router(id_, exits[id_], unknown[id_], graph)
    return edges, routers


def _router(source: str, exits: Mapping[Exit, Edge], unknown: Mapping[Exit, str], graph: GraphFile) -> Router:
    async def follow(state: State, _run: RunContext) -> Routes:
        exit_: Exit = state[_EXIT]
        if exit_ in exits:
            return [exits[exit_]]
        if isinstance(exit_, Named) and exit_.target in graph.nodes:
            return [Edge(source, exit_.target, GOTO)]
        target = exit_.target if isinstance(exit_, Named) else unknown.get(exit_)
        if target is None:
            raise NoRoute(f"node '{source}' has no `{exit_}`: the run cannot go on after it")
        field = "_next" if isinstance(exit_, Named) else str(exit_)
        hint = did_you_mean(target, graph.nodes)
        raise NoRoute(f"`{field}` of node '{source}' names no node: there is no '{target}' ({hint})")

    return follow


def exit_after_failure(node: NodeSpec) -> Exit:
    """The exit of a script or llm node that failed. spec: "Tolerant-fail contract"."""
    return FALLBACK if getattr(node, FALLBACK) is not None else NEXT
