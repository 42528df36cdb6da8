"""The CEL expressions of an agent's graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.dialects.sherma import document as doc
from harness.errors import ExpressionError, Span
from harness.source.document import Document, DocumentPath

LEGACY_CONDITION: Final = "has_tool_calls"
"""A branch condition that is not CEL, from manifests older than injected tool nodes."""


def expression_place(
    agent: doc.Agent, document: Document, path: DocumentPath, node: str, error: ExpressionError
) -> Span | None:
    """Return the location of a failed expression of a node; None if it is not one of the manifest's.

    `path` is that of the graph. The expression is found by its text.
    """
    for below, text in cel_expressions(agent):
        section, at = below[0], below[1]
        if text == error.source and section == "nodes" and agent.graph.nodes[int(at)].name == node:
            return document.span_within((*path, *below), error.line, error.column)
    return None


def cel_expressions(agent: doc.Agent) -> Iterator[tuple[DocumentPath, str]]:
    """Yield the CEL expressions of a graph, with their paths in it."""
    for at, node in enumerate(agent.graph.nodes):
        args = ("nodes", at, "args")
        if node.type == "call_llm":
            for number, item in enumerate(node.args.prompt):
                yield (*args, "prompt", number, "content"), item.content
        for section in ("state_updates", "values"):
            for key, text in (getattr(node.args, section, None) or {}).items():
                yield (*args, section, key), text
        for key in ("input", "expression", "value", "skill_ids"):
            if isinstance(text := getattr(node.args, key, None), str):
                yield (*args, key), text
    for at, edge in enumerate(agent.graph.edges):
        for number, branch in enumerate(edge.branches or ()):
            if branch.condition.strip() != LEGACY_CONDITION:
                yield ("edges", at, "branches", number, "condition"), branch.condition
