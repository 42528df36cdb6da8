"""Warnings of templates that nothing can fill, and of braces that are no templates.

A key that nothing in the graph sets may come with the input of the run, so it is a warning only if it is nearly one
that is set. Scripts, and schemas that do not list their keys, may set any key. spec: "State and Template Syntax",
"state_updates".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from harness.dialects.loki import document as doc
from harness.dialects.loki.templates import NEAR, TEMPLATE, is_path
from harness.errors import Problem
from harness.source.document import Document, DocumentPath
from harness.source.suggest import nearest

_FIELDS: Final = ("instructions", "prompt", "question", "query", "output", "default")
_WHERE: Final = (
    f"templates stand in {', '.join(_FIELDS[:-1])} and {_FIELDS[-1]}, and in the values of state_updates"
)
_BRACES: Final = re.compile(r"\{\{([^{}\n]*)\}\}")
_LIKE_A_PATH: Final = re.compile(r"\s*([^\W\d][\w.\[\]-]*)\s*(?:\|.*)?")
_MOST_MISSPELT: Final = 20
"""The limit of keys that are compared with those that are set: with more unset ones, they come with the input."""

_SCOPES: Final[Mapping[str, str]] = {
    "output": "agent, llm and rag nodes",
    "choice": "approval nodes",
    "input": "input nodes",
}
_RETRIEVAL_KEYS: Final = ("context", "sources")


@dataclass(frozen=True)
class _Site:
    """A text with templates: where it stands, and in which node; `is_update` in its state_updates."""

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
    """The rules for the templates of one graph agent."""

    def __init__(self, graph: doc.GraphFile, document: Document) -> None:
        self.graph, self.document = graph, document
        self.known, self.is_open = _keys_that_are_set(graph)
        self.unset: set[str] = set()

    def warnings(self) -> Iterator[Problem]:
        """The warnings in the order of the nodes, then those of texts in which nothing is filled in."""
        for id_, node in self.graph.nodes.items():
            for site in _sites(id_, node):
                yield from self._in_text(site)
        for path, text in _plain_texts(self.graph):
            for found in TEMPLATE.finditer(text):
                what = f"{found[0]} is not filled in here: {_WHERE}"
                yield Problem("no-template", what, self.document.span(path), severity="warning")

    def _in_text(self, site: _Site) -> Iterator[Problem]:
        seen = set()
        for found in _BRACES.finditer(site.text):
            if found[0] in seen:
                continue
            seen.add(found[0])
            flaw = self._flaw(found, site)
            if flaw is not None:
                span = self.document.span_in_text(site.path, found.start(), len(found[0]))
                yield Problem(flaw.code, flaw.message, span, flaw.hint, "warning")

    def _flaw(self, found: re.Match[str], site: _Site) -> Flaw | None:
        written, inner = found[0], found[1]
        if TEMPLATE.fullmatch(written) is None:
            like = _LIKE_A_PATH.fullmatch(inner)
            if like is None:
                return None
            better = f"{{{{{like[1]}}}}}"
            hint = f"write {better}" if TEMPLATE.fullmatch(better) else ""
            text = f"{written} is text, and no template: between its braces a template has a to z, digits and _ . [ ]"
            return Flaw("no-template", text, hint)
        if not is_path(inner):
            text = f"{written} is no path, and never there: a path is like a.b, arr[0] or users[0].name"
            return Flaw("no-path", text)
        return self._unset(written, inner, site)

    def _unset(self, written: str, path: str, site: _Site) -> Flaw | None:
        steps = re.findall(r"\w+", path)
        head, scoped = steps[0], site.node.scoped if site.is_update else None
        if head == scoped:
            return _part_of_result(written, steps[1:], site.node)
        if head in self.known or self.is_open:
            return None
        if head in _SCOPES:
            text = f"{written} is never set here: only state_updates of {_SCOPES[head]} have it, and none stores it"
            return Flaw("unset-key", text, f"this node has {{{{{scoped}}}}}" if scoped else "")
        near = self._near(head, scoped)
        if near is None:
            return None
        return Flaw("unset-key", f"{written}: nothing in the graph sets '{head}'", f"did you mean '{near}'?")

    def _near(self, key: str, scoped: str | None) -> str | None:
        """The key that is set and is nearly this one."""
        self.unset.add(key)
        if len(self.unset) > _MOST_MISSPELT:
            return None
        return nearest(key, (*self.known, *([scoped] if scoped else ())), cutoff=NEAR)


def _sites(id_: str, node: doc.NodeSpec) -> Iterator[_Site]:
    for name in _FIELDS:
        if isinstance(text := getattr(node, name, None), str):
            yield _Site(("nodes", id_, name), text, node, False)
    for key, text in node.state_updates.items():
        yield _Site(("nodes", id_, "state_updates", key), text, node, True)


def _part_of_result(written: str, steps: list[str], node: doc.NodeSpec) -> Flaw | None:
    """The flaw of a path into the result of its node."""
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
        parts = _listed_keys(schema)
    if parts is None or steps[0] in parts:
        return None
    near = nearest(steps[0], parts, cutoff=NEAR)
    hint = f"did you mean '{near}'?" if near else ""
    if isinstance(node, doc.RagNode):
        text = f"{written} is never set: the result of a rag node has {' and '.join(_RETRIEVAL_KEYS)}"
        return Flaw("unset-key", text, hint)
    return Flaw("unset-key", f"{written}: output_schema has no '{steps[0]}'", hint) if near else None


def _keys_that_are_set(graph: doc.GraphFile) -> tuple[list[str], bool]:
    """The keys that the graph itself sets, and whether it may set others too."""
    known, is_open = [doc.INITIAL_PROMPT, *graph.initial_state], False
    for node in graph.nodes.values():
        known += node.state_updates
        schema = getattr(node, "output_schema", None)
        listed = _listed_keys(schema)
        known += listed or ()
        is_open |= isinstance(node, doc.ScriptNode) or (schema is not None and listed is None)
    return known, is_open


def _listed_keys(schema: Any) -> tuple[str, ...] | None:
    """The top-level keys that a schema lists; None if it lists none."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return tuple(map(str, properties)) if isinstance(properties, Mapping) and properties else None


def _plain_texts(graph: doc.GraphFile) -> Iterator[tuple[DocumentPath, str]]:
    """The texts in which nothing is filled in, though it may look so: seeds and options."""
    yield from _texts(graph.initial_state, ("initial_state",))
    for id_, node in graph.nodes.items():
        if isinstance(node, doc.ApprovalNode):
            yield from _texts(node.options, ("nodes", id_, "options"))


def _texts(value: Any, path: DocumentPath) -> Iterator[tuple[DocumentPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(part, (*path, key))
