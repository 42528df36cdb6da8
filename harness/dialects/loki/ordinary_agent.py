"""An ordinary agent, of a `config.yaml`, as a graph of one node: its model, with all its tools. spec: "Agents"."""

from __future__ import annotations

from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from harness.dialects.loki.document import INITIAL_PROMPT, AgentConfig
from harness.dialects.loki.models import ModelSettings
from harness.dialects.loki.tool_loop import tool_loop
from harness.dialects.loki.tool_universe import ToolUniverse
from harness.dialects.request import LoadRequest
from harness.engine.context import NodeContext, RunContext
from harness.graph.model import END, START, Edge, Graph, Lifecycle, Node, State, Update
from harness.graph.vocabulary import Vocabulary
from harness.source.models import validate

MOST_TURNS: Final = 1000
"""The limit of model calls, of which Loki has none."""

_ANSWER: Final = "answer"


def ordinary_graph(name: str, request: LoadRequest) -> Graph:
    """The graph of an ordinary agent.

    Raises:
        ManifestError: its `config.yaml`, or a file of tools, is not as it should be.
    """
    request.record(request.path)
    document = request.read(request.path, yaml="1.2")
    config = validate(AgentConfig, document)
    tools = ToolUniverse.of(config.global_tools, config.mcp_servers, request)
    model = ModelSettings.of(config)

    async def run(state: State, ctx: NodeContext) -> Update:
        front: list[BaseMessage] = [SystemMessage(content=config.instructions)] if config.instructions else []
        messages = [*front, HumanMessage(content=state[INITIAL_PROMPT])]
        text = await tool_loop(model, messages, await tools.all(ctx.run), MOST_TURNS, ctx)
        return Update({**state, _ANSWER: text})

    async def finish(state: State, _run: RunContext) -> Any:
        return state[_ANSWER]

    return Graph(
        name=name,
        dialect="loki",
        nodes=(Node(name, "agent", run, document.span()),),
        edges=(Edge(START, name), Edge(name, END)),
        channels=(),
        lifecycle=Lifecycle(finish=finish),
        may_pause=False,
        open_state=True,
        takes_hooks=False,
        vocabulary=lambda: Vocabulary(names={"llm": [model.name], **tools.called()}),
    )
