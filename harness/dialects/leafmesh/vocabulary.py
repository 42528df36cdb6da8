"""The names a scenario can refer to: models, tools, MCP servers, connectors, functions, knowledge."""

from __future__ import annotations

from harness.dialects.leafmesh import connector_document
from harness.dialects.leafmesh import document as doc
from harness.dialects.leafmesh.connector_exchange import mcp_tool
from harness.dialects.leafmesh.models import provider_of
from harness.dialects.leafmesh.parts import MeshParts
from harness.dialects.leafmesh.summarizer import SUMMARIZER, reads_narrations
from harness.dialects.leafmesh.tools import QUERY_KNOWLEDGE
from harness.graph.vocabulary import Vocabulary


def vocabulary(parts: MeshParts) -> Vocabulary:
    """Return the names of a mesh. Registered tools are included even if no agent is offered them."""
    mesh = parts.mesh
    llms = {name: agent for name, agent in mesh.agents.items() if isinstance(agent, doc.LLMAgent)}
    models = [provider_of(agent.model)[1] for agent in llms.values()]
    narrated = reads_narrations(mesh) and any(agent.narration for agent in mesh.agents.values())
    tools = [tool for agent in llms.values() for tool in agent.tools]
    knowledge = [agent.enabled_knowledge for agent in llms.values() if agent.enabled_knowledge is not None]
    asked = [*parts.connectors.items(), *((name, each.connector) for name, each in parts.agency.processors())]
    servers = [
        (name, mcp_tool(connector))
        for name, connector in asked
        if isinstance(connector, connector_document.MCP | connector_document.Zapier)
    ]
    may_ask = [*parts.agency.functions] if parts.agency.asks_more else []
    is_open = {} if parts.agency.is_complete else {"tool": "the files of the agency were not imported"}
    if may_ask:
        is_open["mcp"] = "functions may call integrations"
    return Vocabulary(
        names={
            "llm": [*models, *([provider_of(mesh.manager.model)[1]] if narrated else [])],
            "tool": [*tools, *parts.agency.tools, *([QUERY_KNOWLEDGE.name] if knowledge else [])],
            "server": [*(name for name, _ in servers), *may_ask],
            "mcp": [tool for _, tool in servers],
            "agent": [*(name for name, _ in asked), *may_ask],
            "script": [
                name
                for name, agent in mesh.agents.items()
                if isinstance(agent, doc.ProgrammaticAgent) and name not in parts.connectors
            ],
            "retrieval": [each.serviceName for each in knowledge],
        },
        open=is_open,
        callers=[SUMMARIZER] if narrated else [],
    )
