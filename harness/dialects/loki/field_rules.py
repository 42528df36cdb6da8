"""Warnings of fields that have no effect or make their node fail.

They are not errors, because Loki notices them when the node runs, or never. spec: "Supported extensions",
"validation", "Routing requirements per node type", "rag", `documents`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from harness.dialects.kit.manifest import reachable
from harness.dialects.loki import document as doc
from harness.dialects.loki.human_nodes import PREDICATE_FORM, is_predicate, satisfies
from harness.dialects.loki.knowledge.documents import has_protocol
from harness.dialects.loki.routing import declared_edges
from harness.dialects.loki.script_node import RUNTIMES
from harness.dialects.loki.templates import paths
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem
from harness.source.document import Document

_IGNORED_NEXT = {
    doc.ApprovalNode: "it leaves by its routes and on_other",
    doc.EndNode: "the run ends there",
}
_NEEDS_NEXT = (doc.AgentNode, doc.InputNode, doc.LLMNode, doc.RagNode)
"""The node types that need a `next`. spec: "Routing requirements per node type"."""


class FieldRules:
    """The rules for fields, applied to one graph agent."""

    def __init__(self, graph: doc.GraphFile, document: Document, request: LoadRequest) -> None:
        self.graph, self.document, self.request = graph, document, request

    def warnings(self) -> Iterator[Problem]:
        """Yield the warnings in the order of the nodes."""
        reached = self._nodes_that_may_run()
        for id_, node in self.graph.nodes.items():
            if node.next is not None and type(node) in _IGNORED_NEXT:
                text = f"the next of the {node.type} node '{id_}' is ignored: {_IGNORED_NEXT[type(node)]}"
                yield self._warning("unused-key", text, id_, "next", on_key=True)
            if node.next is None and isinstance(node, _NEEDS_NEXT) and id_ in reached:
                text = f"node '{id_}' has no `next`: the run cannot go on after it"
                yield Problem("no-next", text, self.document.key_span(("nodes", id_)), severity="warning")
            match node:
                case doc.ScriptNode():
                    yield from self._extension(id_, node)
                case doc.InputNode():
                    yield from self._validation(id_, node)
                case doc.RagNode():
                    yield from self._documents(id_, node)

    def _nodes_that_may_run(self) -> set[str]:
        """Return the nodes reachable from the start: all, if there is a script, whose `_next` may name any node."""
        if any(isinstance(node, doc.ScriptNode) for node in self.graph.nodes.values()):
            return set(self.graph.nodes)
        return reachable(
            self.graph.start, ((edge.source, edge.target) for edge in declared_edges(self.graph))
        )

    def _extension(self, id_: str, node: doc.ScriptNode) -> Iterator[Problem]:
        if Path(node.script).suffix not in RUNTIMES:
            text = f"the script of node '{id_}' has no runtime, so the node always fails"
            hint = f"its extension must be one of {', '.join(RUNTIMES)}"
            yield self._warning("no-runtime", text, id_, "script", hint=hint)

    def _validation(self, id_: str, node: doc.InputNode) -> Iterator[Problem]:
        if node.validation is None:
            return
        if not is_predicate(node.validation):
            text = f"the validation of node '{id_}' cannot be read, so the node fails when it is answered"
            yield self._warning("bad-validation", text, id_, "validation", hint=f"expected {PREDICATE_FORM}")
            return
        # spec: "Make sure any `default` you set would itself satisfy the `validation` predicate."
        default = node.default
        if default is not None and not any(paths(default)) and not satisfies(default, node.validation):
            text = (
                f"the default of node '{id_}' does not fit `{node.validation}`, and is not checked against it"
            )
            yield self._warning("bad-validation", text, id_, "default")

    def _documents(self, id_: str, node: doc.RagNode) -> Iterator[Problem]:
        """Yield the reasons why the knowledge base of a rag node, if it is not built yet, cannot be built."""
        folder = self.request.base_path or Path()
        if (folder / f"{id_}.yaml").is_file():
            return
        size, overlap = node.chunk_size, node.chunk_overlap
        if size is not None and overlap is not None and overlap > size:
            text = f"chunk_overlap, {overlap}, is larger than chunk_size, {size}"
            text = f"{text}: the knowledge base of node '{id_}' cannot be built"
            yield self._warning("knowledge-base", text, id_, "chunk_overlap")
        for index, written in enumerate(node.documents):
            if has_protocol(written) or os.path.isdir(folder / written):
                continue
            try:
                self.request.resolve(written, self.document.span(("nodes", id_, "documents", index)))
            except ManifestError as error:
                for problem in error.problems:
                    text = f"{problem.message}: the knowledge base of node '{id_}' cannot be built"
                    yield replace(problem, message=text, severity="warning")

    def _warning(
        self, code: str, text: str, id_: str, field: str, *, on_key: bool = False, hint: str = ""
    ) -> Problem:
        path = ("nodes", id_, field)
        span = self.document.key_span(path) if on_key else self.document.span(path)
        return Problem(code, text, span, hint, "warning")
