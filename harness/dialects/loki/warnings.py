"""Warnings of fields that have no effect or make their node fail.

They are not errors, because Loki notices them when the node runs, or never. spec: "Supported extensions",
"validation", "Routing requirements per node type", "rag", `documents`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness.dialects.kit.rules import Rules, reachable
from harness.dialects.loki import document as doc
from harness.dialects.loki.knowledge.provision import has_protocol
from harness.dialects.loki.nodes import PREDICATE_FORM, RUNTIMES, is_predicate, satisfies
from harness.dialects.loki.routing import links
from harness.dialects.loki.templates import MISSPELLING_CUTOFF, TEMPLATE, is_path, paths
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem
from harness.graph.to_json import texts_in
from harness.matchers.schema_flaws import KEYWORDS, misspelt_keywords, schema_flaw
from harness.source.display import nearest
from harness.source.document import Document, DocumentPath

_IGNORED_NEXT = {
    doc.ApprovalNode: "it leaves by its routes and on_other",
    doc.EndNode: "the run ends there",
}
_NEEDS_NEXT = (doc.AgentNode, doc.InputNode, doc.LLMNode, doc.RagNode, doc.MapNode)
"""The node types that need a `next`. spec: "Routing requirements per node type"."""


class FieldRules(Rules):
    """The rules for fields, applied to one graph agent."""

    def __init__(self, graph: doc.GraphFile, document: Document, request: LoadRequest) -> None:
        super().__init__(document)
        self.graph, self.request = graph, request

    def warnings(self) -> Iterator[Problem]:
        """Yield the warnings in the order of the nodes."""
        reached = self._nodes_that_may_run()
        for id_, node in self.graph.nodes.items():
            if node.next is not None and type(node) in _IGNORED_NEXT:
                text = f"the next of the {node.type} node '{id_}' is ignored: {_IGNORED_NEXT[type(node)]}"
                yield self.warning("unused-key", text, "nodes", id_, "next", key=True)
            if (
                node.next is None
                and isinstance(node, _NEEDS_NEXT)
                and id_ in reached - self.graph.branches.keys()
            ):
                text = f"node '{id_}' has no `next`: the run cannot go on after it"
                yield self.warning("no-next", text, "nodes", id_, key=True)
            match node:
                case doc.ScriptNode():
                    yield from self._extension(id_, node)
                case doc.InputNode():
                    yield from self._validation(id_, node)
                case doc.RagNode():
                    yield from self._documents(id_, node)

    def _nodes_that_may_run(self) -> set[str]:
        """Return the nodes reachable from the start: all, if there is a script, whose `_next` may name any node."""
        if self.graph.of(doc.ScriptNode):
            return set(self.graph.nodes)
        return reachable(self.graph.start, links(self.graph))

    def _extension(self, id_: str, node: doc.ScriptNode) -> Iterator[Problem]:
        if Path(node.script).suffix not in RUNTIMES:
            text = f"the script of node '{id_}' has no runtime, so the node always fails"
            hint = f"its extension must be one of {', '.join(RUNTIMES)}"
            yield self.warning("no-runtime", text, "nodes", id_, "script", hint=hint)

    def _validation(self, id_: str, node: doc.InputNode) -> Iterator[Problem]:
        if node.validation is None:
            return
        if not is_predicate(node.validation):
            text = f"the validation of node '{id_}' cannot be read, so the node fails when it is answered"
            yield self.warning(
                "bad-validation", text, "nodes", id_, "validation", hint=f"expected {PREDICATE_FORM}"
            )
            return
        # spec: "Make sure any `default` you set would itself satisfy the `validation` predicate."
        default = node.default
        if default is not None and not any(paths(default)) and not satisfies(default, node.validation):
            text = (
                f"the default of node '{id_}' does not fit `{node.validation}`, and is not checked against it"
            )
            yield self.warning("bad-validation", text, "nodes", id_, "default")

    def _documents(self, id_: str, node: doc.RagNode) -> Iterator[Problem]:
        """Yield the reasons why the knowledge base of a rag node, if it is not built yet, cannot be built."""
        folder = self.request.base_path or Path()
        if (folder / f"{id_}.yaml").is_file():
            return
        size, overlap = node.chunk_size, node.chunk_overlap
        if size is not None and overlap is not None and overlap > size:
            text = f"chunk_overlap, {overlap}, is larger than chunk_size, {size}"
            text = f"{text}: the knowledge base of node '{id_}' cannot be built"
            yield self.warning("knowledge-base", text, "nodes", id_, "chunk_overlap")
        for index, written in enumerate(node.documents):
            if has_protocol(written) or os.path.isdir(folder / written):
                continue
            try:
                self.request.resolve(written, self.document.span(("nodes", id_, "documents", index)))
            except ManifestError as error:
                for problem in error.problems:
                    text = f"{problem.message}: the knowledge base of node '{id_}' cannot be built"
                    yield replace(problem, message=text, severity="warning")


_FIELDS: Final = ("instructions", "prompt", "question", "query", "output", "default")
_WHERE: Final = (
    f"templates are filled in only in {', '.join(_FIELDS[:-1])} and {_FIELDS[-1]}, "
    "and in the values of state_updates"
)
_BRACES: Final = re.compile(r"\{\{([^{}\n]*)\}\}")
_ONE_BRACE: Final = re.compile(r"(?<![{$])\{ *(\w+)[^{}\n]*\}(?!\})")
_LIKE_A_PATH: Final = re.compile(r"\s*([^\W\d][\w.\[\]-]*)\s*(?:\|.*)?")
_MAX_COMPARED_KEYS: Final = 20
"""The maximum number of unset keys that are checked for misspellings. If there are more, they come with the input."""

_SCOPES: Final[Mapping[str, str]] = {
    "output": "agent, llm and rag nodes",
    "choice": "approval nodes",
    "input": "input nodes",
}
_RETRIEVAL_KEYS: Final = ("context", "sources")


@dataclass(frozen=True)
class TemplateText:
    """A text of a node that may have templates. `is_update` if it is in `state_updates`."""

    path: DocumentPath
    text: str
    node: doc.NodeSpec
    is_update: bool


class Flaw(NamedTuple):
    """The warning of one template."""

    code: str
    message: str
    hint: str = ""


class TemplateRules:
    """The rules for templates, applied to one graph agent."""

    def __init__(self, graph: doc.GraphFile, document: Document) -> None:
        self.graph, self.document = graph, document
        self.known, self.is_open = _known_keys(graph)
        self.unset: set[str] = set()

    def warnings(self) -> Iterator[Problem]:
        """Yield the warnings in the order of the nodes, then those of texts that are not templates."""
        for id_, node in self.graph.nodes.items():
            for site in template_texts(id_, node):
                yield from self._in_text(site)
        for path, text in _plain_texts(self.graph):
            for found in TEMPLATE.finditer(text):
                what = f"{found[0]} is not filled in here: {_WHERE}"
                yield Problem("no-template", what, self.document.span(path), severity="warning")

    def _in_text(self, site: TemplateText) -> Iterator[Problem]:
        seen = set()
        for found in _BRACES.finditer(site.text):
            if found[0] in seen:
                continue
            seen.add(found[0])
            flaw = self._flaw(found, site)
            if flaw is not None:
                span = self.document.span_in_text(site.path, found.start(), len(found[0]))
                yield Problem(flaw.code, flaw.message, span, flaw.hint, "warning")
        for found in _ONE_BRACE.finditer(site.text):
            if found[1] in self.known or found[1] == (site.node.scoped if site.is_update else None):
                text = f"{found[0]} is text: a template has two braces"
                span = self.document.span_in_text(site.path, found.start(), len(found[0]))
                hint = f"write {{{{{found[0].strip('{ }')}}}}}"
                yield Problem("no-template", text, span, hint, "warning")

    def _flaw(self, found: re.Match[str], site: TemplateText) -> Flaw | None:
        written, inner = found[0], found[1]
        if TEMPLATE.fullmatch(written) is None:
            like = _LIKE_A_PATH.fullmatch(inner)
            if like is None:
                return None
            better = f"{{{{{like[1]}}}}}"
            hint = f"write {better}" if TEMPLATE.fullmatch(better) else ""
            text = f"{written} is text, not a template: between its braces a template has a to z, digits and _ . [ ]"
            return Flaw("no-template", text, hint)
        if not is_path(inner):
            text = f"{written} is not a path, so it is never set: a path is like a.b, arr[0] or users[0].name"
            return Flaw("no-path", text)
        return self._unset_key_flaw(written, inner, site)

    def _unset_key_flaw(self, written: str, path: str, site: TemplateText) -> Flaw | None:
        steps = re.findall(r"\w+", path)
        head, scoped = steps[0], site.node.scoped if site.is_update else None
        if head == scoped:
            return _result_part_flaw(written, steps[1:], site.node)
        if head in self.known or self.is_open:
            return None
        if head in _SCOPES:
            text = f"{written} is never set here: only state_updates of {_SCOPES[head]} have it, and none stores it"
            return Flaw("unset-key", text, f"this node has {{{{{scoped}}}}}" if scoped else "")
        near = self._near_key(head, scoped)
        if near is None:
            return None
        return Flaw("unset-key", f"{written}: nothing in the graph sets '{head}'", f"did you mean '{near}'?")

    def _near_key(self, key: str, scoped: str | None) -> str | None:
        """Return the most similar key that is set, if it is similar enough."""
        self.unset.add(key)
        if len(self.unset) > _MAX_COMPARED_KEYS:
            return None
        return nearest(key, (*self.known, *([scoped] if scoped else ())), cutoff=MISSPELLING_CUTOFF)


def template_texts(id_: str, node: doc.NodeSpec) -> Iterator[TemplateText]:
    """Yield the texts of a node that may have templates."""
    for name in (*_FIELDS, "over"):
        if isinstance(text := getattr(node, name, None), str):
            yield TemplateText(("nodes", id_, name), text, node, False)
    for key, text in node.state_updates.items():
        yield TemplateText(("nodes", id_, "state_updates", key), text, node, True)


def _result_part_flaw(written: str, steps: list[str], node: doc.NodeSpec) -> Flaw | None:
    """Return the flaw of a path into the result of its node, if it has one."""
    if not steps:
        return None
    if isinstance(node, doc.RagNode):
        parts: tuple[str, ...] | None = _RETRIEVAL_KEYS
    else:
        schema = getattr(node, "output_schema", None)
        if schema is None:
            text = f"{written} is never set: the result of this node is text, which has no keys"
            hint = "an output_schema makes parts of it" if node.scoped == "output" else ""
            return Flaw("unset-key", text, hint)
        parts = listed_keys(schema)
    if parts is None or steps[0] in parts:
        return None
    near = nearest(steps[0], parts, cutoff=MISSPELLING_CUTOFF)
    hint = f"did you mean '{near}'?" if near else ""
    if isinstance(node, doc.RagNode):
        text = f"{written} is never set: the result of a rag node has {' and '.join(_RETRIEVAL_KEYS)}"
        return Flaw("unset-key", text, hint)
    return Flaw("unset-key", f"{written}: output_schema has no '{steps[0]}'", hint) if near else None


def _known_keys(graph: doc.GraphFile) -> tuple[list[str], bool]:
    """Return the keys that the graph sets, and True if it may set unknown keys too."""
    known, is_open = [doc.INITIAL_PROMPT, *graph.initial_state], False
    for node in graph.nodes.values():
        known += written_keys(node)
        known += [node.as_] if isinstance(node, doc.MapNode) else []
        schema = getattr(node, "output_schema", None)
        is_open |= isinstance(node, doc.ScriptNode) or (schema is not None and listed_keys(schema) is None)
    return known, is_open


def listed_keys(schema: Any) -> tuple[str, ...] | None:
    """Return the top-level keys under `properties` of a schema; None if it lists none."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return tuple(map(str, properties)) if isinstance(properties, Mapping) and properties else None


def written_keys(node: doc.NodeSpec) -> list[str]:
    """Return the state keys that a node is known to write, each once."""
    listed = listed_keys(getattr(node, "output_schema", None)) or ()
    collected = [node.collect_into] if isinstance(node, doc.MapNode) else []
    return list(dict.fromkeys([*node.state_updates, *listed, *collected]))


def _plain_texts(graph: doc.GraphFile) -> Iterator[tuple[DocumentPath, str]]:
    """Yield the texts that are no templates and might be taken for some: initial state and options."""
    yield from texts_in(graph.initial_state, ("initial_state",))
    for id_, node in graph.of(doc.ApprovalNode).items():
        yield from texts_in(node.options, ("nodes", id_, "options"))


def schema_warnings(graph: doc.GraphFile, document: Document) -> Iterator[Problem]:
    """Yield the warnings in the order of the nodes."""
    for id_, node in graph.nodes.items():
        schema = getattr(node, "output_schema", None)
        if not isinstance(schema, Mapping):
            continue
        path = ("nodes", id_, "output_schema")
        if schema and KEYWORDS.isdisjoint(schema):
            text = f"the output_schema of node '{id_}' has no keyword of JSON Schema"
            hint = "write `type: object`, with these under `properties`, each as a mapping with a `type`"
            yield Problem("bad-schema", text, document.span(path), hint, "warning")
            continue
        for found in misspelt_keywords(schema):
            text = f"node '{id_}': '{found.keyword}' is not a keyword of JSON Schema"
            span, hint = document.key_span((*path, *found.path)), f"did you mean '{found.meant}'?"
            yield Problem("unknown-key", text, span, hint, "warning")
        if (flaw := schema_flaw(schema, patterns=False)) is not None:
            text = f"the output_schema of node '{id_}' is not a JSON Schema: {flaw.message}"
            yield Problem("bad-schema", text, document.span((*path, *flaw.path)), flaw.hint, "warning")
