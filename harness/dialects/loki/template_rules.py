"""Warnings of templates that can never be filled, and of braces that are not templates.

A key that nothing in the graph sets may come with the input of the run. It is a warning only if it looks like a
misspelling of a key that is set, and only if there are no scripts, and no schemas without `properties`, which may set
any key. spec: "State and Template Syntax", "state_updates".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from harness.dialects.loki import document as doc
from harness.dialects.loki.templates import MISSPELLING_CUTOFF, TEMPLATE, is_path
from harness.errors import Problem
from harness.source.document import Document, DocumentPath
from harness.source.suggest import nearest

_FIELDS: Final = ("instructions", "prompt", "question", "query", "output", "default")
_WHERE: Final = (
    f"templates are filled in only in {', '.join(_FIELDS[:-1])} and {_FIELDS[-1]}, "
    "and in the values of state_updates"
)
_BRACES: Final = re.compile(r"\{\{([^{}\n]*)\}\}")
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
class _TemplateText:
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
            for site in _template_texts(id_, node):
                yield from self._in_text(site)
        for path, text in _plain_texts(self.graph):
            for found in TEMPLATE.finditer(text):
                what = f"{found[0]} is not filled in here: {_WHERE}"
                yield Problem("no-template", what, self.document.span(path), severity="warning")

    def _in_text(self, site: _TemplateText) -> Iterator[Problem]:
        seen = set()
        for found in _BRACES.finditer(site.text):
            if found[0] in seen:
                continue
            seen.add(found[0])
            flaw = self._flaw(found, site)
            if flaw is not None:
                span = self.document.span_in_text(site.path, found.start(), len(found[0]))
                yield Problem(flaw.code, flaw.message, span, flaw.hint, "warning")

    def _flaw(self, found: re.Match[str], site: _TemplateText) -> Flaw | None:
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

    def _unset_key_flaw(self, written: str, path: str, site: _TemplateText) -> Flaw | None:
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


def _template_texts(id_: str, node: doc.NodeSpec) -> Iterator[_TemplateText]:
    for name in _FIELDS:
        if isinstance(text := getattr(node, name, None), str):
            yield _TemplateText(("nodes", id_, name), text, node, False)
    for key, text in node.state_updates.items():
        yield _TemplateText(("nodes", id_, "state_updates", key), text, node, True)


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
        parts = _listed_keys(schema)
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
        known += node.state_updates
        schema = getattr(node, "output_schema", None)
        listed = _listed_keys(schema)
        known += listed or ()
        is_open |= isinstance(node, doc.ScriptNode) or (schema is not None and listed is None)
    return known, is_open


def _listed_keys(schema: Any) -> tuple[str, ...] | None:
    """Return the top-level keys under `properties` of a schema; None if it lists none."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return tuple(map(str, properties)) if isinstance(properties, Mapping) and properties else None


def _plain_texts(graph: doc.GraphFile) -> Iterator[tuple[DocumentPath, str]]:
    """Yield the texts that are no templates and might be taken for some: initial state and options."""
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
