"""The vocabulary of a graph agent: models, tools, MCP servers, scripts, rag nodes, and the agents it spawns."""

from __future__ import annotations

from harness.dialects.loki import document as doc
from harness.dialects.loki.models import ModelSettings
from harness.dialects.loki.nodes import AgentContext
from harness.graph.vocabulary import Vocabulary


def vocabulary(context: AgentContext) -> Vocabulary:
    """Return the vocabulary of a graph agent, with the agent's own model, which extracts structured output."""
    graph = context.graph
    models = [
        ModelSettings.of(node, graph).name for node in graph.nodes.values() if isinstance(node, doc.LLMNode)
    ]
    spawning = {id_: node.agent for id_, node in graph.nodes.items() if isinstance(node, doc.AgentNode)}
    return Vocabulary(
        names={
            "llm": [*models, ModelSettings.of(graph).name],
            **context.tools.names_by_kind(),
            "agent": list(spawning.values()),
            "script": [id_ for id_, node in graph.nodes.items() if isinstance(node, doc.ScriptNode)],
            "retrieval": [id_ for id_, node in graph.nodes.items() if isinstance(node, doc.RagNode)],
        },
        inside={id_: [context.child(agent).nested_graph()] for id_, agent in spawning.items()},
    )
