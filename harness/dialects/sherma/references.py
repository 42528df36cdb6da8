"""Warnings about references of nodes that do not resolve: to tools, and to versions of models and bound agents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from harness.dialects.sherma.agent import Agent
from harness.dialects.sherma.section import Ref
from harness.dialects.sherma.versions import same_version
from harness.errors import Problem
from harness.source.document import Document, DocumentPath
from harness.source.suggest import did_you_mean

_NUMBERS = re.compile(r"\d+(\.\d+)*")


def reference_warnings(agent: Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Yield the warnings of an agent. `path` is that of the graph."""
    yield from _check_tools(agent, document, path)
    yield from _check_versions(agent, document, path)


def _check_tools(agent: Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Check references to tools; skipped if MCP servers or remote cards may add tools during a run.

    spec: `call_llm`, `tool_node`, tools.
    """
    cards = [skill.card for skill in agent.skills.skills]
    if agent.mcp_servers or agent.remote_skills or any(card.mcps for card in cards):
        return
    versions: dict[str, list[str]] = {}
    for tool in agent.tools.all():
        versions.setdefault(tool.id, []).append(tool.version)
    for place, reference in _tool_references(agent):
        if reference.id not in versions:
            text = f"tool '{reference.id}' is not registered: the node will fail"
            where = document.span((*path, *place, "id"))
            yield Problem("unknown-tool", text, where, did_you_mean(reference.id, versions), "warning")
        elif not any(same_version(known, reference.version) for known in versions[reference.id]):
            text = f"tool '{reference.id}' has no version '{reference.version}': the node will fail"
            hint = f"it has {', '.join(versions[reference.id])}"
            where = document.span((*path, *place, "version"))
            yield Problem("unknown-tool", text, where, hint, "warning")


def _tool_references(agent: Agent) -> Iterator[tuple[DocumentPath, Ref]]:
    for at, node in enumerate(agent.definition.graph.nodes):
        for number, reference in enumerate(getattr(node.args, "tools", None) or ()):
            yield ("nodes", at, "args", "tools", number), reference


def _check_versions(agent: Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Check the versions of models and of agents that are bound as tools, which are looked up by id alone."""
    manifest = agent.manifest
    sub_agents = manifest.sub_agents[::-1]  # of several with the same id, the last is used
    default = manifest.default_llm
    if default is not None:
        yield from _check_version("llm", default, manifest.llms, document, ("default_llm",))
    for at, node in enumerate(agent.definition.graph.nodes):
        args = (*path, "nodes", at, "args")
        if node.type == "call_llm" and node.args.llm is not None:
            yield from _check_version("llm", node.args.llm, manifest.llms, document, (*args, "llm"))
        if node.type == "call_llm" and isinstance(node.args.use_sub_agents_as_tools, list):
            for number, reference in enumerate(node.args.use_sub_agents_as_tools):
                place = (*args, "use_sub_agents_as_tools", number)
                yield from _check_version("agent", reference, sub_agents, document, place)


def _check_version(
    what: str, reference: Ref, declared: Sequence[Any], document: Document, path: DocumentPath
) -> Iterator[Problem]:
    """Check one version. `declared`: of several with the same id, the first is used."""
    used = next((item.version for item in declared if item.id == reference.id), "*")
    is_plain = _NUMBERS.fullmatch(reference.version) is not None
    if is_plain and not same_version(used, reference.version):
        text = f"version '{used}' of {what} '{reference.id}' is used, not '{reference.version}'"
        where = document.span((*path, "version"))
        yield Problem(f"unknown-{what}", text, where, "it is found by its id alone", "warning")
