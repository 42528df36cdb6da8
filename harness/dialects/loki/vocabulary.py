"""The names in a graph agent: models, tools, MCP servers, scripts, rag nodes, and the agents it spawns."""

from __future__ import annotations

from harness.dialects.loki import document as doc
from harness.dialects.loki.agent_node import Child
from harness.dialects.loki.models import ModelSettings
from harness.dialects.loki.nodes import Parts
from harness.graph.vocabulary import Vocabulary


def vocabulary(parts: Parts) -> Vocabulary:
    """The names of a graph agent. The extractor of structured output asks the model of the agent."""
    graph = parts.graph
    models = [
        ModelSettings.of(node, graph).name for node in graph.nodes.values() if isinstance(node, doc.LLMNode)
    ]
    spawning = {id_: node.agent for id_, node in graph.nodes.items() if isinstance(node, doc.AgentNode)}
    return Vocabulary(
        names={
            "llm": [*models, ModelSettings.of(graph).name],
            **parts.tools.called(),
            "agent": list(spawning.values()),
            "script": [id_ for id_, node in graph.nodes.items() if isinstance(node, doc.ScriptNode)],
            "retrieval": [id_ for id_, node in graph.nodes.items() if isinstance(node, doc.RagNode)],
        },
        inside={id_: [Child(agent, parts.request, parts.load).inside()] for id_, agent in spawning.items()},
    )
