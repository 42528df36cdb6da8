"""The agent node: a child agent from a sibling folder, in the same world and clock. spec: "agent".

A child with a `graph.yaml` runs its graph, in a state of its own; one with a `config.yaml` is an ordinary agent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from harness.dialects.kit.attempts import in_time
from harness.dialects.loki.document import INITIAL_PROMPT, AgentConfig, AgentNode
from harness.dialects.loki.human_nodes import as_text
from harness.dialects.loki.models import ModelSettings
from harness.dialects.loki.routing import leaving
from harness.dialects.loki.state import updated
from harness.dialects.loki.structured import merged, structured
from harness.dialects.loki.templates import render
from harness.dialects.loki.tool_loop import tool_loop
from harness.dialects.loki.tool_universe import ToolUniverse
from harness.dialects.request import LoadRequest
from harness.engine.context import NodeContext
from harness.engine.nested import run_inside
from harness.errors import HarnessError
from harness.graph.effects import AgentCall
from harness.graph.model import Graph, State, Update
from harness.source.document import read
from harness.source.models import validate

GRAPH, CONFIG = "graph.yaml", "config.yaml"

MOST_TURNS = 1000
"""The model calls of an ordinary agent, whose loop Loki does not limit."""

Load = Callable[[LoadRequest], Graph]


class NoAgent(HarnessError):
    """A node that spawns an agent that does not exist, which is found at load unless validation is off."""

    code = "unknown-agent"


def sibling(request: LoadRequest, agent: str) -> Path | None:
    """The folder of another agent, beside that of the manifest; None if there is none that may be read."""
    folder = request.path.resolve().parent.parent / agent
    is_name = Path(agent).name == agent and agent != ".."
    return folder if is_name and request.may_read(folder.resolve()) and folder.is_dir() else None


@dataclass
class Child:
    """An agent that a node spawns. What it is made of is read when it is first spawned."""

    name: str
    parent: LoadRequest
    load: Load
    _graph: Graph | None = None

    async def answer(self, prompt: str, ctx: NodeContext) -> str:
        """Its final text.

        Raises:
            Exception: it failed, or its manifest is refused.
        """
        folder = sibling(self.parent, self.name)
        if folder is None:
            raise NoAgent(f"there is no agent '{self.name}'")
        if not (folder / GRAPH).exists():
            return await self._ordinary(folder / CONFIG, prompt, ctx)
        if self._graph is None:
            self._graph = self.load(self.parent.beside(folder / GRAPH, None))
        ending = await run_inside(ctx, self._graph, {INITIAL_PROMPT: prompt})
        return as_text(ending.output)

    async def _ordinary(self, path: Path, prompt: str, ctx: NodeContext) -> str:
        """An ordinary agent: a loop of its model with all its tools."""
        request = self.parent.beside(path, None)
        request.record(path)
        config = validate(AgentConfig, read(path, yaml="1.2"))
        universe = ToolUniverse.of(config.global_tools, config.mcp_servers, request)
        front: list[BaseMessage] = [SystemMessage(content=config.instructions)] if config.instructions else []
        messages = [*front, HumanMessage(content=prompt)]
        tools = await universe.all(ctx.run)
        return await tool_loop(ModelSettings.of(config), messages, tools, MOST_TURNS, ctx)


async def spawn(
    node: AgentNode, child: Child, agents: ModelSettings, state: State, ctx: NodeContext
) -> Update:
    """Spawn the child, wait for its final text, and go on with that.

    `agents` is the model of the agent, which extracts structured output.

    Raises:
        Exception: the child failed or took too long, or its output cannot be extracted.
    """
    prompt = render(node.prompt, state)

    async def real() -> str:
        return await child.answer(prompt, ctx)

    async def body() -> tuple[dict[str, Any], Any]:
        text = as_text(await ctx.perform(AgentCall(name=node.agent, args={"input": prompt}, real=real)))
        if node.output_schema is None:
            return dict(state), text
        value = await structured(text, node.output_schema, agents, ctx)
        return merged(state, value), value

    after, output = await in_time(body, ctx, node.timeout, f"agent '{node.agent}'")
    return leaving(updated(after, node, output))
