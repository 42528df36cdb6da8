"""Warnings about keys without effect: of MCP servers, edges and nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.dialects.sherma.agent import Agent
from harness.dialects.sherma.graph_document import Graph
from harness.errors import Problem
from harness.source.document import Document, DocumentPath

_HTTP_KEYS: Final = ("headers",)
_STDIO_KEYS: Final = ("args", "env")


def no_effect_warnings(agent: Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Yield the warnings of an agent. `path` is that of the graph."""
    yield from _check_servers(agent, document)
    if not agent.manifest.skills:
        yield from _check_skills(agent, document, path)
    yield from _check_graph(agent.definition.graph, document, path)


def _check_servers(agent: Agent, document: Document) -> Iterator[Problem]:
    """Check the keys of MCP servers: `headers` are for HTTP and SSE, `args` and `env` for stdio."""
    for at, server in enumerate(agent.manifest.mcp_servers):
        for key in _HTTP_KEYS if server.transport == "stdio" else _STDIO_KEYS:
            if getattr(server, key):
                text = (
                    f"'{key}' of MCP server '{server.id}' has no effect with transport '{server.transport}'"
                )
                where = document.key_span(("mcp_servers", at, key))
                yield Problem("no-effect", text, where, severity="warning")


def _check_skills(agent: Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Report nodes that use skills although none are declared. spec: `load_skills`, "Tool binding modes"."""
    for at, node in enumerate(agent.definition.graph.nodes):
        args = (*path, "nodes", at, "args")
        if node.type == "call_llm" and node.args.use_tools_from_loaded_skills:
            text = f"node '{node.name}' binds the tools of skills, and the manifest declares no skills"
            where = document.key_span((*args, "use_tools_from_loaded_skills"))
        elif node.type == "load_skills":
            text = f"node '{node.name}' loads skills, and the manifest declares none"
            where = document.key_span((*args, "skill_ids"))
        else:
            continue
        yield Problem("no-effect", text, where, severity="warning")


def _check_graph(graph: Graph, document: Document, path: DocumentPath) -> Iterator[Problem]:
    for at, edge in enumerate(graph.edges):
        key = "target" if edge.branches else "default"
        if getattr(edge, key) is not None:
            why = "together with 'branches'" if edge.branches else "without 'branches'"
            hint = "'default' is the target when no branch holds" if edge.branches else ""
            where = document.key_span((*path, "edges", at, key))
            text = f"'{key}' of the edge from '{edge.source}' changes nothing {why}"
            yield Problem("no-effect", text, where, hint, "warning")
    for at, node in enumerate(graph.nodes):
        if node.on_error is not None and node.on_error.retry is None and node.on_error.fallback is None:
            text = f"'on_error' of node '{node.name}' changes nothing: it has neither 'retry' nor 'fallback'"
            where = document.key_span((*path, "nodes", at, "on_error"))
            yield Problem("no-effect", text, where, severity="warning")
