"""An ordinary agent (`config.yaml`) as a graph of one node, which calls the model with all tools of the agent.

spec: "Agents".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from harness.dialects.loki.document import INITIAL_PROMPT, AgentConfig
from harness.dialects.loki.models import ModelSettings
from harness.dialects.loki.tool_loop import tool_loop
from harness.dialects.loki.tool_universe import ToolUniverse
from harness.dialects.request import LoadRequest
from harness.engine.context import NodeContext, RunContext
from harness.errors import Problem
from harness.graph.model import END, START, Edge, Graph, Lifecycle, Node, State, Update
from harness.graph.vocabulary import Vocabulary
from harness.source.document import Document
from harness.source.models import keys_of, validate
from harness.source.suggest import nearest

MAX_MODEL_CALLS: Final = 1000
"""The maximum number of model calls in one run. Loki has no limit."""

_ANSWER: Final = "answer"

_UNSUPPORTED: Final = ("can_spawn_agents", "documents", "variables")
"""Keys of a `config.yaml` that have an effect in Loki and none here."""

_MISSPELLING_CUTOFF: Final = 0.85
"""The similarity from which a key counts as a misspelling. It is high, since Loki has keys that are unknown here."""


def ordinary_graph(name: str, request: LoadRequest, inherited: str | None) -> Graph:
    """Compile an ordinary agent. `inherited` is the model that it uses if it names none.

    Raises:
        ManifestError: its `config.yaml` or a tool file is malformed.
    """
    request.record(request.path)
    document = request.read(request.path, yaml="1.2")
    config = validate(AgentConfig, document).with_model(inherited)
    tools = ToolUniverse.of(config.global_tools, config.mcp_servers, request, request.env)
    model = ModelSettings.of(config)

    async def run(state: State, ctx: NodeContext) -> Update:
        front: list[BaseMessage] = [SystemMessage(content=config.instructions)] if config.instructions else []
        messages = [*front, HumanMessage(content=state[INITIAL_PROMPT])]
        text = await tool_loop(model, messages, await tools.all(ctx.run), MAX_MODEL_CALLS, ctx)
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
        warnings=(*_ignored_keys(document), *tools.warnings(document)),
        open_state=True,
        takes_hooks=False,
        vocabulary=lambda: Vocabulary(names={"llm": [model.name], **tools.names_by_kind()}),
    )


def _ignored_keys(document: Document) -> Iterator[Problem]:
    """Yield warnings of keys that are not supported, and of keys that are probably misspelt."""
    known = keys_of(AgentConfig)
    for key, value in document.value.items():
        near = None if key in known else nearest(str(key), known, cutoff=_MISSPELLING_CUTOFF)
        if key in _UNSUPPORTED and value:
            text = f"'{key}' of an ordinary agent is not supported: it is ignored"
            yield Problem("unsupported", text, document.key_span((key,)), severity="warning")
        elif near is not None:
            text = f"unknown key '{key}' in an agent: it is ignored"
            yield Problem(
                "unknown-key", text, document.key_span((key,)), f"did you mean '{near}'?", "warning"
            )
