"""The rules between the sections of a workflow.

spec: "Validation Rules" 2 to 4, 6 and 8, "Edge Specification", "Resilience". Each rule yields located problems,
with a suggestion for a mistyped id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from harness.dialects.kit.rules import Rules, repeated
from harness.dialects.yagra.document import EdgeSpec, Workflow
from harness.errors import Problem
from harness.source.display import did_you_mean, nearest
from harness.source.document import Document

HANDLERS_WITHOUT_LABEL: Final = ("structured_llm", "streaming_llm")
"""Built-in handlers that never return `__next__`."""
_LANGGRAPH_NAMES: Final = ("START", "END")
"""LangGraph's names of the start and the end. spec: "Do not write END explicitly"."""


class WorkflowRules(Rules):
    """The rules, applied to one workflow."""

    def __init__(self, workflow: Workflow, document: Document) -> None:
        super().__init__(document)
        self.workflow = workflow
        self.ids = dict.fromkeys(node.id for node in workflow.nodes)
        self._end_ids = frozenset(workflow.end_at)

    def problems(self) -> Iterator[Problem]:
        """Yield all errors."""
        yield from self._node_ids()
        yield from self._references()
        yield from self._fallbacks()
        yield from self._ends()
        by_source = sorted(enumerate(self.workflow.edges), key=lambda item: item[1].source)
        for source, edges in groupby(by_source, lambda item: item[1].source):
            yield from self._edges_from(source, list(edges))
        yield from self._handlers()

    def _node_ids(self) -> Iterator[Problem]:
        ids = [node.id for node in self.workflow.nodes]
        for index, id_ in enumerate(ids):
            yield from self.not_reserved(id_, "nodes", index, "id")
        for index, first in repeated(ids):
            line = self.document.span(("nodes", first, "id")).line
            text = f"a second node with the id '{ids[index]}' (first in line {line})"
            yield self.error("duplicate-id", text, "nodes", index, "id")

    def _references(self) -> Iterator[Problem]:
        workflow = self.workflow
        yield from self._known("start_at", workflow.start_at, "start_at")
        for key in ("end_at", "interrupt_before", "interrupt_after"):
            for index, id_ in enumerate(getattr(workflow, key)):
                yield from self._known(key, id_, key, index)
        for index, edge in enumerate(workflow.edges):
            yield from self._known("the source of an edge", edge.source, "edges", index, "source")
            yield from self._known("the target of an edge", edge.target, "edges", index, "target")

    def _known(self, what: str, id_: str, *path: str | int) -> Iterator[Problem]:
        if id_ not in self.ids:
            text = f"{what} must be the id of a node, and there is no node '{id_}'"
            hint = did_you_mean(id_, self.ids)
            if id_ in _LANGGRAPH_NAMES and nearest(id_, self.ids) is None:
                hint = (
                    "START and END are not written: start_at and end_at name the first node and the last ones"
                )
            yield self.error("unknown-node", text, *path, hint=hint)

    def _fallbacks(self) -> Iterator[Problem]:
        """Rule 8."""
        for index, node in enumerate(self.workflow.nodes):
            path = ("nodes", index, "fallback")
            if node.fallback == node.id:
                text = f"the fallback of node '{node.id}' is the node itself"
                yield self.error("own-fallback", text, *path)
            elif node.fallback is not None:
                yield from self._known(f"the fallback of node '{node.id}'", node.fallback, *path)

    def _ends(self) -> Iterator[Problem]:
        for index, edge in enumerate(self.workflow.edges):
            if edge.source in self._end_ids:
                text = f"an edge leads away from '{edge.source}', which is in end_at, where the run ends"
                hint = "remove the edge, or the node from end_at"
                yield self.error("end-node", text, "edges", index, "source", hint=hint)

    def _edges_from(self, source: str, edges: Sequence[tuple[int, EdgeSpec]]) -> Iterator[Problem]:
        """Rule 6: the edges from one node are of one kind. They have different conditions, or one is a fan-out."""
        kinds = sorted({_kind(edge) for _, edge in edges})
        seen: set[str | None] = set()
        has_fan_out = False
        for index, edge in edges:
            if others := " and ".join(kind for kind in kinds if kind != _kind(edge)):
                text = f"this edge is {_kind(edge)}, and other edges from '{source}' are {others}"
                text = f"{text}: the edges from one node must be of one kind"
                yield self.error("edge-kind", text, "edges", index)
            if edge.condition is not None and edge.condition in seen:
                text = f"a second edge from '{source}' with the condition '{edge.condition}'"
                yield self.error("duplicate-branch", text, "edges", index, "condition")
            if edge.fan_out is not None and has_fan_out:
                text = f"a second fan_out edge from '{source}': a node has one at most"
                yield self.error("edge-kind", text, "edges", index, "fan_out")
            seen.add(edge.condition)
            has_fan_out = has_fan_out or edge.fan_out is not None

    def _handlers(self) -> Iterator[Problem]:
        for index, node in enumerate(self.workflow.nodes):
            if node.handler in HANDLERS_WITHOUT_LABEL and self.workflow.has_conditional_edges(node.id):
                text = f"conditional edges leave node '{node.id}', and its handler {node.handler} never gives a label"
                hint = "use llm, or a handler of your own that returns __next__"
                yield self.error("no-label", text, "nodes", index, "handler", hint=hint)


def _kind(edge: EdgeSpec) -> str:
    """Return the kind of an edge as rule 6 names it."""
    if edge.fan_out is not None:
        return "fan_out"
    return "unconditional" if edge.condition is None else "conditional"
