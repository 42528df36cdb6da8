"""The rules between the sections of a workflow, and the warnings.

spec: "Validation Rules" 2 to 4, 6, 8 and 9, "Edge Specification", "Resilience". Each rule yields
problems, located, with the id that was probably meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from harness.dialects.yagra.document import EdgeSpec, Workflow
from harness.dialects.yagra.prompts import Params
from harness.errors import Problem
from harness.graph.model import END, START
from harness.source.document import Document
from harness.source.suggest import did_you_mean

LABELLESS: Final = ("structured_llm", "streaming_llm")
"""Built-in handlers that never choose a branch."""


class Rules:
    """The rules for one workflow. `params` are those of its nodes, in their order."""

    def __init__(self, workflow: Workflow, document: Document, params: Sequence[Params]) -> None:
        self.workflow, self.document, self.params = workflow, document, params
        self.ids = [node.id for node in workflow.nodes]

    def problems(self) -> Iterator[Problem]:
        """All errors."""
        yield from self._node_ids()
        yield from self._references()
        yield from self._fallbacks()
        yield from self._ends()
        yield from self._edge_kinds()
        yield from self._labels()
        yield from self._fan_outs()
        yield from self._handlers()

    def _node_ids(self) -> Iterator[Problem]:
        first: dict[str, int] = {}
        for at, id_ in enumerate(self.ids):
            where = self.document.span(("nodes", at, "id"))
            if id_ in (START, END):
                yield Problem("reserved-name", f"'{id_}' is not a name for a node", where)
            if id_ in first:
                line = self.document.span(("nodes", first[id_], "id")).line
                text = f"a second node with the id '{id_}' (first in line {line})"
                yield Problem("duplicate-id", text, where)
            first.setdefault(id_, at)

    def _references(self) -> Iterator[Problem]:
        workflow = self.workflow
        yield from self._known("start_at", workflow.start_at, "start_at")
        for key in ("end_at", "interrupt_before", "interrupt_after"):
            for at, id_ in enumerate(getattr(workflow, key)):
                yield from self._known(key, id_, key, at)
        for at, edge in enumerate(workflow.edges):
            yield from self._known("the source of an edge", edge.source, "edges", at, "source")
            yield from self._known("the target of an edge", edge.target, "edges", at, "target")

    def _known(self, what: str, id_: str, *path: str | int) -> Iterator[Problem]:
        if id_ not in self.ids:
            text = f"{what} must be the id of a node, and there is no node '{id_}'"
            yield self._problem("unknown-node", text, *path, hint=did_you_mean(id_, self.ids))

    def _fallbacks(self) -> Iterator[Problem]:
        """spec: rule 8."""
        for at, node in enumerate(self.workflow.nodes):
            path = ("nodes", at, "fallback")
            if node.fallback == node.id:
                yield self._problem(
                    "own-fallback", f"the fallback of node '{node.id}' is the node itself", *path
                )
            elif node.fallback is not None:
                yield from self._known(f"the fallback of node '{node.id}'", node.fallback, *path)

    def _ends(self) -> Iterator[Problem]:
        for at, edge in enumerate(self.workflow.edges):
            if edge.source in self.workflow.end_at:
                text = f"an edge leads away from '{edge.source}', which is in end_at, where the run ends"
                hint = "remove the edge, or the node from end_at"
                yield self._problem("end-node", text, "edges", at, "source", hint=hint)

    def _edge_kinds(self) -> Iterator[Problem]:
        """spec: rule 6."""
        for source, edges in self._by_source():
            kinds = sorted({_kind(edge) for _, edge in edges})
            if len(kinds) < 2:
                continue
            for at, edge in edges:
                others = " and ".join(kind for kind in kinds if kind != _kind(edge))
                text = (
                    f"this edge is {_kind(edge)}, and other edges from '{source}' are {others}: "
                    f"the edges from one node must be of one kind"
                )
                yield self._problem("edge-kind", text, "edges", at)

    def _labels(self) -> Iterator[Problem]:
        for source, edges in self._by_source():
            seen: set[str] = set()
            for at, edge in edges:
                if edge.condition is not None and edge.condition in seen:
                    text = f"a second edge from '{source}' with the condition '{edge.condition}'"
                    yield self._problem("duplicate-branch", text, "edges", at, "condition")
                elif edge.condition is not None:
                    seen.add(edge.condition)

    def _fan_outs(self) -> Iterator[Problem]:
        for source, edges in self._by_source():
            mapped = [at for at, edge in edges if edge.fan_out is not None]
            for at in mapped[1:]:
                text = f"a second fan_out edge from '{source}': a node has one at most"
                yield self._problem("edge-kind", text, "edges", at, "fan_out")

    def _handlers(self) -> Iterator[Problem]:
        for at, node in enumerate(self.workflow.nodes):
            if node.handler in LABELLESS and self.workflow.is_switch(node.id):
                text = f"conditional edges leave node '{node.id}', and its handler {node.handler} never gives a label"
                hint = "use llm, or a handler of your own that returns __next__"
                yield self._problem("no-label", text, "nodes", at, "handler", hint=hint)

    def _by_source(self) -> list[tuple[str, list[tuple[int, EdgeSpec]]]]:
        """The edges with their numbers, by the node they leave."""
        by_source = sorted(enumerate(self.workflow.edges), key=lambda item: item[1].source)
        return [(source, list(found)) for source, found in groupby(by_source, lambda item: item[1].source)]

    def _problem(self, code: str, text: str, *path: str | int, hint: str = "") -> Problem:
        return Problem(code, text, self.document.span(path), hint)

    # -------------------------------------------------------------- warnings

    def warnings(self) -> Iterator[Problem]:
        """spec: rule 9; and versions of prompts that differ from the pinned ones."""
        yield from self._placeholders()
        yield from self._output_keys()
        yield from self._versions()

    def _placeholders(self) -> Iterator[Problem]:
        known = {*self.workflow.state_schema, *(params.output_key for params in self.params)}
        for node, params in zip(self.workflow.nodes, self.params, strict=True):
            for name, where in params.prompt.placeholders() if params.prompt else ():
                if name not in known:
                    text = (
                        f"node '{node.id}': nothing is known to set '{{{name}}}' of its prompt: "
                        f"it is neither in state_schema nor the output_key of a node"
                    )
                    hint = did_you_mean(name, sorted(known), listing=False)
                    yield Problem("unknown-placeholder", text, where, hint, "warning")

    def _output_keys(self) -> Iterator[Problem]:
        fields = self.workflow.state_schema
        for at, (node, params) in enumerate(zip(self.workflow.nodes, self.params, strict=True)):
            has_prompt = params.prompt is not None and isinstance(params.prompt.value, dict)
            if fields and has_prompt and params.output_key not in fields:
                text = (
                    f"node '{node.id}': its output_key '{params.output_key}' is not in state_schema, "
                    f"so that what it writes is lost"
                )
                where = self.document.span(("nodes", at, "params", "output_key"))
                hint = did_you_mean(params.output_key, fields)
                yield Problem("undeclared-output", text, where, hint, "warning")

    def _versions(self) -> Iterator[Problem]:
        """Prompts whose file has another version than the reference pins."""
        for params in self.params:
            prompt = params.prompt
            if prompt is None or prompt.reference.version in (None, prompt.version):
                continue
            found = f"is of version '{prompt.version}'" if prompt.version else "has no _meta.version"
            text = f"prompt version '{prompt.reference.version}' is asked for, and {prompt.document.file} {found}"
            yield Problem("prompt-version", text, prompt.span, severity="warning")


def _kind(edge: EdgeSpec) -> str:
    """The kind of an edge in rule 6."""
    if edge.fan_out is not None:
        return "fan_out"
    return "unconditional" if edge.condition is None else "conditional"
