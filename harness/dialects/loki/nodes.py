"""The functions of nodes, by node type. spec: "Node Types"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from harness.dialects.loki import document as doc
from harness.dialects.loki.agent_node import ChildAgent, Load, spawn
from harness.dialects.loki.human_nodes import ask_approval, ask_input
from harness.dialects.loki.knowledge.provision import KnowledgeProvider
from harness.dialects.loki.llm_node import call_llm
from harness.dialects.loki.models import ModelSettings
from harness.dialects.loki.rag_node import retrieve
from harness.dialects.loki.script_node import run_script
from harness.dialects.loki.state import apply_state_updates
from harness.dialects.loki.templates import render
from harness.dialects.loki.tool_universe import ToolUniverse
from harness.dialects.request import LoadRequest
from harness.engine.context import NodeContext
from harness.graph.model import NodeFunction, State, Update
from harness.source.document import Document

OUTPUT: Final = "output"
"""The resource of a run with the output of the end node that it reached."""


@dataclass(frozen=True)
class AgentContext:
    """The parts of a graph agent that its nodes share.

    graph     its validated document
    document  the same with locations
    request   the request that loads it
    tools     its tools
    scripts   the files of its script nodes that exist, by node id
    env       the environment variables of its scripts
    load      compiles the graph of a child agent
    """

    graph: doc.GraphFile
    document: Document
    request: LoadRequest
    tools: ToolUniverse
    scripts: dict[str, Path]
    env: Mapping[str, str]
    load: Load

    @property
    def folder(self) -> Path:
        """The folder of the agent."""
        return self.request.path.resolve().parent

    def child(self, agent: str) -> ChildAgent:
        """Return an agent that a node spawns."""
        return ChildAgent(agent, self.request, self.graph.model, self.load)


def node_function(id_: str, node: doc.NodeSpec, context: AgentContext) -> NodeFunction:
    """Return the function of a node."""
    agent_model = ModelSettings.of(context.graph)
    match node:
        case doc.AgentNode():
            return partial(spawn, node, context.child(node.agent), agent_model)
        case doc.ScriptNode():
            return partial(run_script, node, context.scripts.get(id_), context.folder, context.env)
        case doc.ApprovalNode():
            return partial(ask_approval, node)
        case doc.InputNode():
            return partial(ask_input, node)
        case doc.LLMNode():
            return partial(call_llm, node, ModelSettings.of(node, context.graph), agent_model, context.tools)
        case doc.RagNode():
            file = context.folder / f"{id_}.yaml"  # spec: "Directory Structure"
            return partial(
                retrieve,
                node,
                KnowledgeProvider(node, file, context.request, context.document, ("nodes", id_)),
            )
        case doc.EndNode():
            return partial(end, node)
    raise TypeError(f"no function for {node!r}")


async def end(node: doc.EndNode, state: State, ctx: NodeContext) -> Update:
    """Render the output of the run. spec: "end"."""
    after = apply_state_updates(state, node)
    ctx.run.resources[OUTPUT] = render(node.output, after)
    return Update(after)
