"""Warnings: what is legal in a manifest, but probably a mistake. One function for each kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.dialects.kit.reachable import reachable
from harness.dialects.sherma import document as doc
from harness.dialects.sherma.agent import Agent
from harness.dialects.sherma.expressions import VARIABLES, cel_texts
from harness.dialects.sherma.graph_document import Graph
from harness.dialects.sherma.state_fields import undeclared_fields
from harness.errors import ExpressionError, ManifestError, Problem
from harness.expressions.cel import compile as compile_cel
from harness.graph.model import START
from harness.source.document import Document, DocumentPath
from harness.source.models import validate
from harness.source.suggest import did_you_mean


def unknown_keys(document: Document) -> Iterator[Problem]:
    """Keys that are not in sherma's documentation, which sherma ignores."""
    try:
        validate(doc.Manifest, document, extra="forbid")
    except ManifestError as refusal:
        for problem in refusal.problems:
            if problem.code == "unknown-key":
                yield replace(problem, message=f"{problem.message} is ignored", severity="warning")


def agent_warnings(agent: Agent, document: Document) -> Iterator[Problem]:
    """All warnings of an agent."""
    definition = agent.definition
    graph: DocumentPath = ("agents", agent.name, "graph")
    yield from _field_types(definition, document, ("agents", agent.name, "state", "fields"))
    yield from _expressions(definition, document, graph)
    yield from undeclared_fields(definition, document, graph)
    yield from _unreachable_nodes(definition, document, graph)
    if not agent.hooks:
        yield from _custom_nodes(definition, document, graph)


def _field_types(agent: doc.Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    for at, field in enumerate(agent.state.fields_):
        if field.type not in doc.FIELD_TYPES:
            text = f"'{field.type}' is not a type of state fields ({', '.join(doc.FIELD_TYPES)})"
            hint = did_you_mean(field.type, doc.FIELD_TYPES, listing=False)
            yield Problem("field-type", text, document.span((*path, at, "type")), hint, "warning")


def _expressions(agent: doc.Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """CEL is parsed when it is evaluated: a mistake in it fails its node, not the load."""
    for below, text in cel_texts(agent):
        try:
            expression = compile_cel(text, null_as_false=True)
        except ExpressionError as error:
            message = f"this expression will fail when it is evaluated: {error}"
            yield Problem("cel-syntax", message, document.span((*path, *below)), severity="warning")
            continue
        try:
            expression.check_names(VARIABLES)
        except ExpressionError as error:
            where = document.span_within((*path, *below), error.line, error.column)
            message = f"this expression asks for what does not exist: {error}"
            yield Problem("cel-name", message, where, severity="warning")


def _custom_nodes(agent: doc.Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    for at, node in enumerate(agent.graph.nodes):
        if node.type == "custom":
            text = f"custom node '{node.name}' does nothing: there are no hooks that could execute it"
            where = document.span((*path, "nodes", at, "name"))
            yield Problem("no-hooks", text, where, severity="warning")


def _unreachable_nodes(agent: doc.Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    graph = agent.graph
    reached = reachable(START, _transitions(graph))
    for at, node in enumerate(graph.nodes):
        if node.name not in reached:
            text = f"node '{node.name}' can never run: nothing leads to it"
            where = document.span((*path, "nodes", at, "name"))
            yield Problem("unreachable-node", text, where, severity="warning")


def _transitions(graph: Graph) -> Iterator[tuple[str, str]]:
    """The entry, all edges with their branches, and the fallbacks."""
    if graph.entry_point is not None:
        yield START, graph.entry_point
    for edge in graph.edges:
        for target in (edge.target, edge.default, *(branch.target for branch in edge.branches or ())):
            if target is not None:
                yield edge.source, target
    for node in graph.nodes:
        if node.on_error is not None and node.on_error.fallback is not None:
            yield node.name, node.on_error.fallback
