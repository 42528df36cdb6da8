"""Edges and routers: static edges, branches, the entry, injected tool nodes, fallbacks.

spec: "Edges", "Branches".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from harness.dialects.sherma import document as doc
from harness.dialects.sherma.agent import Agent, AgentSession
from harness.dialects.sherma.expressions import LEGACY_CONDITION
from harness.engine.context import RunContext
from harness.errors import ExpressionError, Span
from harness.graph.model import END, START, Dispatch, Edge, Router, State
from harness.source.document import Document, DocumentPath
from harness.source.models import describe

Condition = Callable[[State, Agent], bool]

HAS_TOOL_CALLS = "has tool calls"
DEFAULT = "default"


class NotABoolean(ExpressionError):
    """The value of a branch condition is not a boolean."""

    code = "not-a-boolean"


@dataclass(frozen=True)
class Choice:
    """The branches of an edge: the first whose condition holds is followed, else the default."""

    branches: tuple[tuple[Condition, Edge], ...]
    default: Edge

    def select(self, state: State, agent: Agent) -> Edge:
        """Return the edge to follow. Conditions after the first that holds are not evaluated."""
        return next((edge for holds, edge in self.branches if holds(state, agent)), self.default)

    @property
    def edges(self) -> list[Edge]:
        """All edges: those of the branches, and the default."""
        return [*(edge for _, edge in self.branches), self.default]


def edges_and_routers(agent: Agent, document: Document) -> tuple[list[Edge], Mapping[str, Router]]:
    """Return the edges of an agent's graph, and routers for the nodes that have conditional edges."""
    graph = agent.definition.graph
    edges: list[Edge] = []
    routers: dict[str, Router] = {}
    if graph.entry_point is not None:
        where = document.span(("agents", agent.name, "graph", "entry_point"))
        edges.append(Edge(START, graph.entry_point, span=where))
    for source in (START, *(node.name for node in graph.nodes)):
        choices = _choices_after(agent, document, source)
        edges += [edge for choice in choices for edge in choice.edges]
        if any(choice.branches for choice in choices):
            routers[source] = _router(choices)
    for node in graph.nodes:
        if node.name in graph.injected:
            tools = graph.injected[node.name]
            back = Choice((), Edge(tools, node.name))
            choices = [back, *_choices_after(agent, document, tools)]
            edges += [edge for choice in choices for edge in choice.edges]
            if any(choice.branches for choice in choices):
                routers[tools] = _router(choices)
        if node.on_error is not None and node.on_error.fallback is not None:
            edges.append(Edge(node.name, node.on_error.fallback, on_error=True))
    return edges, routers


def _choices_after(agent: Agent, document: Document, source: str) -> list[Choice]:
    """Return the choices after a node: one per edge, all of which are followed."""
    graph = agent.definition.graph
    places: DocumentPath = ("agents", agent.name, "graph", "edges")
    found = [(edge, (*places, at)) for at, edge in enumerate(graph.edges) if edge.source == source]
    choices = [_choice(document, edge, path) for edge, path in found]
    if source not in graph.injected:
        return choices
    # spec: "Auto-injected tool_node": to the tools on tool calls, otherwise along the first edge.
    after = choices[0].default.target if choices else END
    tools = Edge(source, graph.injected[source], HAS_TOOL_CALLS)
    return [Choice(((_has_tool_calls, tools),), Edge(source, after, DEFAULT)), *choices[1:]]


def _has_tool_calls(state: State, _agent: Agent) -> bool:
    messages = state.get("messages")
    return bool(getattr(messages[-1], "tool_calls", None)) if messages else False


def _choice(document: Document, edge: doc.Edge, path: DocumentPath) -> Choice:
    if not edge.branches:
        return Choice((), Edge(edge.source, edge.target or END, span=document.span(path)))
    branches = []
    for number, branch in enumerate(edge.branches):
        span = document.span((*path, "branches", number))
        chosen = Edge(edge.source, branch.target, branch.condition.strip(), span=span)
        place = partial(document.span_within, (*path, "branches", number, "condition"))
        branches.append((_condition(edge.source, branch.condition, place), chosen))
    return Choice(tuple(branches), Edge(edge.source, edge.default or END, DEFAULT, span=document.span(path)))


def _condition(source: str, text: str, place: Callable[[int, int], Span]) -> Condition:
    """Return the function of a branch condition. spec: branches.

    A value that is not a boolean, or a CEL error, fails the run.
    """
    if text.strip() == LEGACY_CONDITION:
        return _has_tool_calls

    def holds(state: State, agent: Agent) -> bool:
        where = f"condition {text.strip()!r} after {source!r}"
        try:
            value = agent.evaluate(text, state)
        except ExpressionError as error:
            failed = ExpressionError(f"{where}: {error}", source=text)
            failed.span = place(error.line, error.column)
            raise failed from None
        if not isinstance(value, bool):
            failed = NotABoolean(f"{where} gave {describe(value)}, not a boolean", source=text)
            failed.span = place(1, 1)
            raise failed
        return value

    return holds


def _router(choices: Sequence[Choice]) -> Router:
    async def follow(state: State, run: RunContext) -> Sequence[Edge | Dispatch]:
        agent = AgentSession.of(run).agent
        return [choice.select(state, agent) for choice in choices]

    return follow
