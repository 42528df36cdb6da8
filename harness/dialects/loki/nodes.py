"""Nodes of a graph agent as functions of the state. spec: "Node Types"."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from harness.dialects.loki import document as doc
from harness.dialects.loki.agent_node import Child, Load, spawn
from harness.dialects.loki.human_nodes import approval, ask_input
from harness.dialects.loki.knowledge.provision import Knowledge
from harness.dialects.loki.llm_node import call_llm
from harness.dialects.loki.models import ModelSettings
from harness.dialects.loki.rag_node import retrieve
from harness.dialects.loki.script_node import run_script
from harness.dialects.loki.state import updated
from harness.dialects.loki.templates import render
from harness.dialects.loki.tool_universe import ToolUniverse
from harness.dialects.request import LoadRequest
from harness.engine.context import NodeContext
from harness.graph.model import NodeFunction, State, Update
from harness.source.document import Document

OUTPUT: Final = "output"
"""The resource of a run that has the text of the end node it reached."""


@dataclass(frozen=True)
class Parts:
    """What the nodes of one agent share: its document, its folder, its tools, and how children are loaded."""

    graph: doc.GraphFile
    document: Document
    request: LoadRequest
    tools: ToolUniverse
    scripts: dict[str, Path]
    load: Load

    @property
    def folder(self) -> Path:
        """The folder of the agent."""
        return self.request.path.resolve().parent


def node_function(id_: str, node: doc.NodeSpec, parts: Parts) -> NodeFunction:
    """The function of a node."""
    agents = ModelSettings.of(parts.graph)
    match node:
        case doc.AgentNode():
            return partial(spawn, node, Child(node.agent, parts.request, parts.load), agents)
        case doc.ScriptNode():
            return partial(run_script, node, parts.scripts.get(id_), parts.folder)
        case doc.ApprovalNode():
            return partial(approval, node)
        case doc.InputNode():
            return partial(ask_input, node)
        case doc.LLMNode():
            return partial(call_llm, node, ModelSettings.of(node, parts.graph), agents, parts.tools)
        case doc.RagNode():
            file = parts.folder / f"{id_}.yaml"  # spec: "Directory Structure"
            return partial(
                retrieve, node, Knowledge(node, file, parts.request, parts.document, ("nodes", id_))
            )
        case doc.EndNode():
            return partial(end, node)
    raise TypeError(f"no function for {node!r}")


async def end(node: doc.EndNode, state: State, ctx: NodeContext) -> Update:
    """Make the output of the run. spec: "end"."""
    after = updated(state, node)
    ctx.run.resources[OUTPUT] = render(node.output, after)
    return Update(after)
