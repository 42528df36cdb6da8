"""The CEL expressions of an agent's graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.dialects.sherma import document as doc
from harness.source.document import DocumentPath

BUILT_IN: Final = "has_tool_calls"
"""The condition of a branch that is no CEL, as in manifests from before tool nodes were injected."""


def cel_texts(agent: doc.Agent) -> Iterator[tuple[DocumentPath, str]]:
    """The CEL expressions of a graph, with their paths in it."""
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
            if branch.condition.strip() != BUILT_IN:
                yield ("edges", at, "branches", number, "condition"), branch.condition
