"""Fields that cannot do what they say: warnings, for Loki finds it out when the node runs, or never.

spec: "Supported extensions", "validation", "Routing requirements per node type", "rag", `documents`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from harness.dialects.loki import document as doc
from harness.dialects.loki.human_nodes import PREDICATE_FORM, is_predicate
from harness.dialects.loki.knowledge.documents import has_protocol
from harness.dialects.loki.script_node import RUNTIMES
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem
from harness.source.document import Document

_IGNORED_NEXT = {
    doc.ApprovalNode: "it leaves by its routes and on_other",
    doc.EndNode: "the run ends there",
}


class FieldRules:
    """The rules for the fields of one graph agent."""

    def __init__(self, graph: doc.GraphFile, document: Document, request: LoadRequest) -> None:
        self.graph, self.document, self.request = graph, document, request

    def warnings(self) -> Iterator[Problem]:
        """The warnings in the order of the nodes."""
        for id_, node in self.graph.nodes.items():
            if node.next is not None and type(node) in _IGNORED_NEXT:
                text = f"the next of the {node.type} node '{id_}' is ignored: {_IGNORED_NEXT[type(node)]}"
                yield self._warning("unused-key", text, id_, "next", on_key=True)
            match node:
                case doc.ScriptNode():
                    yield from self._extension(id_, node)
                case doc.InputNode():
                    yield from self._validation(id_, node)
                case doc.RagNode():
                    yield from self._documents(id_, node)

    def _extension(self, id_: str, node: doc.ScriptNode) -> Iterator[Problem]:
        if Path(node.script).suffix not in RUNTIMES:
            text = f"the script of node '{id_}' has no runtime, so the node always fails"
            hint = f"its extension must be one of {', '.join(RUNTIMES)}"
            yield self._warning("no-runtime", text, id_, "script", hint=hint)

    def _validation(self, id_: str, node: doc.InputNode) -> Iterator[Problem]:
        if node.validation is not None and not is_predicate(node.validation):
            text = f"the validation of node '{id_}' cannot be read, so the node fails when it is answered"
            yield self._warning("bad-validation", text, id_, "validation", hint=f"expected {PREDICATE_FORM}")

    def _documents(self, id_: str, node: doc.RagNode) -> Iterator[Problem]:
        """The files and folders that a base which is not built yet is to be built from, and cannot."""
        folder = self.request.base_path or Path()
        if (folder / f"{id_}.yaml").is_file():
            return
        for at, written in enumerate(node.documents):
            if has_protocol(written) or (folder / written).is_dir():
                continue
            try:
                self.request.resolve(written, self.document.span(("nodes", id_, "documents", at)))
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
