"""Warnings about valid but probably mistaken manifests. One function per kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from harness.dialects.kit.reachable import reachable
from harness.dialects.sherma import document as doc
from harness.dialects.sherma.agent import Agent
from harness.dialects.sherma.expression_warnings import expression_warnings
from harness.dialects.sherma.graph_document import Graph
from harness.dialects.sherma.no_effect import no_effect_warnings
from harness.dialects.sherma.references import reference_warnings
from harness.dialects.sherma.state_fields import undeclared_fields
from harness.errors import ManifestError, Problem
from harness.graph.model import START
from harness.source.document import Document, DocumentPath
from harness.source.models import validate
from harness.source.suggest import did_you_mean


def unknown_keys(document: Document) -> Iterator[Problem]:
    """Yield undocumented keys, which sherma ignores."""
    try:
        validate(doc.Manifest, document, extra="forbid")
    except ManifestError as refusal:
        for problem in refusal.problems:
            if problem.code == "unknown-key":
                yield replace(problem, message=f"{problem.message} is ignored", severity="warning")


_BY_ID: Final = ("sub_agents", "mcp_servers")
_BY_VERSION: Final = ("prompts", "llms", "tools", "skills")


def duplicate_declarations(manifest: doc.Manifest, document: Document) -> Iterator[Problem]:
    """Yield duplicate declarations of an id or a version: sherma's registries keep only one.

    Versions of a sub-agent are told apart by call_agent nodes alone.
    """
    nodes = (node for agent in manifest.agents.values() for node in agent.graph.nodes)
    called = {node.args.agent.id for node in nodes if node.type == "call_agent"}
    for section in (*_BY_VERSION, *_BY_ID):
        seen: set[tuple[str, str]] = set()
        for at, declared in enumerate(getattr(manifest, section)):
            by_version = section in _BY_VERSION or (section == "sub_agents" and declared.id in called)
            name = (declared.id, declared.version if by_version else "")
            if name in seen:
                version = f" with version '{declared.version}'" if by_version else ""
                text = f"'{declared.id}' is defined twice in '{section}'{version}: only one of them is used"
                where = document.span((section, at, "id"))
                yield Problem("duplicate-name", text, where, severity="warning")
            seen.add(name)


def agent_warnings(agent: Agent, document: Document) -> Iterator[Problem]:
    """Yield all warnings of an agent."""
    definition = agent.definition
    graph: DocumentPath = ("agents", agent.name, "graph")
    yield from _check_field_types(definition, document, ("agents", agent.name, "state", "fields"))
    yield from expression_warnings(agent, document, graph)
    yield from undeclared_fields(definition, document, graph)
    yield from reference_warnings(agent, document, graph)
    yield from no_effect_warnings(agent, document, graph)
    yield from _check_reachable(definition, document, graph)
    yield from _refused_by_sherma(definition, document, graph)
    yield from _check_custom_nodes(agent, document, graph)


def _check_field_types(agent: doc.Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    for at, field in enumerate(agent.state.fields_):
        if field.type not in doc.FIELD_TYPES:
            text = f"'{field.type}' is not a type of state fields ({', '.join(doc.FIELD_TYPES)})"
            hint = did_you_mean(field.type, list(doc.FIELD_TYPES), listing=False)
            yield Problem("field-type", text, document.span((*path, at, "type")), hint, "warning")
            continue
        wanted = "list" if field.name == "messages" else field.type
        found = type(field.default)
        if field.default is not None and found not in doc.FIELD_TYPES[wanted]:
            text = f"the default of state field '{field.name}' is of type {found.__name__}, not {wanted}"
            hint = "a value from ${…} is text" if found is str and wanted != "list" else ""
            yield Problem("field-type", text, document.span((*path, at, "default")), hint, "warning")


def _check_custom_nodes(agent: Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Report custom nodes without a hook that executes them: `node_execute` or `node_exit`. spec: `custom`."""
    if any(not hook.overridden.isdisjoint(("node_execute", "node_exit")) for hook in agent.hooks):
        return
    why = (
        "none of the hooks has 'node_execute'" if agent.hooks else "there are no hooks that could execute it"
    )
    for at, node in enumerate(agent.definition.graph.nodes):
        if node.type == "custom":
            text = f"custom node '{node.name}' does nothing: {why}"
            where = document.span((*path, "nodes", at, "name"))
            yield Problem("no-hooks", text, where, severity="warning")


def _check_reachable(agent: doc.Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    graph = agent.graph
    reached = reachable(START, _transitions(graph))
    for at, node in enumerate(graph.nodes):
        if node.name not in reached:
            text = f"node '{node.name}' can never run: nothing leads to it"
            where = document.span((*path, "nodes", at, "name"))
            yield Problem("unreachable-node", text, where, severity="warning")


def _refused_by_sherma(agent: doc.Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Report graphs that sherma's LangGraph refuses although the document allows them. They run here."""
    for at, node in enumerate(agent.graph.nodes):
        if taken := sorted({":", "|"}.intersection(node.name)):
            text = f"sherma refuses '{taken[0]}' in the name of a node: '{node.name}'"
            where = document.span((*path, "nodes", at, "name"))
            yield Problem("reserved-name", text, where, severity="warning")
    branching: set[str] = set()
    for at, edge in enumerate(agent.graph.edges):
        if edge.branches and edge.source in branching:
            text = f"sherma refuses a second edge with branches from '{edge.source}'"
            hint = "one edge may have any number of branches"
            yield Problem("second-edge", text, document.span((*path, "edges", at)), hint, "warning")
        if edge.branches:
            branching.add(edge.source)


def _transitions(graph: Graph) -> Iterator[tuple[str, str]]:
    """Yield the transitions of a graph: entry, edges, branches, injected tool nodes, fallbacks."""
    if graph.entry_point is not None:
        yield START, graph.entry_point
    for edge in graph.edges:
        branching = [*(branch.target for branch in edge.branches or ()), edge.default]
        for target in branching if edge.branches else [edge.target]:
            if target is not None:
                yield edge.source, target
    yield from graph.injected.items()
    for node in graph.nodes:
        if node.on_error is not None and node.on_error.fallback is not None:
            yield node.name, node.on_error.fallback
