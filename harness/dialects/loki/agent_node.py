"""The agent node, which spawns a child agent from a sibling folder. spec: "agent".

A child with a `graph.yaml` runs its graph with a state of its own, in the same world and time. A child with a
`config.yaml` is an ordinary agent. A child without a `model` uses that of its parent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from harness.dialects.kit.attempts import with_timeout
from harness.dialects.loki.document import INITIAL_PROMPT, AgentConfig, AgentNode
from harness.dialects.loki.llm_node import ModelSettings, merge_output, parse_structured_output, tool_loop
from harness.dialects.loki.routing import exit_update
from harness.dialects.loki.templates import apply_state_updates, render, text_of
from harness.dialects.loki.tool_universe import ToolUniverse, warn_once
from harness.dialects.request import LoadRequest
from harness.engine.context import NodeContext, RunContext
from harness.engine.conversation import run_inside
from harness.errors import ManifestError, Problem
from harness.graph.effects import AgentCall
from harness.graph.model import (
    END,
    START,
    Edge,
    Graph,
    Lifecycle,
    NestedGraph,
    Node,
    State,
    Update,
    Vocabulary,
)
from harness.source.display import nearest
from harness.source.document import Document
from harness.source.models import keys_of, validate

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


GRAPH: Final = "graph.yaml"
CONFIG: Final = "config.yaml"

_MAX_NAME_BYTES: Final = 255  # the limit for file names of the usual file systems

Load = Callable[[LoadRequest, str | None], Graph]
"""Compiles a graph agent. The second argument is the model that it uses if it names none."""


def sibling_folder(request: LoadRequest, agent: str) -> Path | None:
    """Return the folder of another agent, beside that of the manifest; None if it cannot be read."""
    folder = request.path.resolve().parent.parent / agent
    if not is_file_name(agent):
        return None
    with suppress(OSError):  # a name that is too long
        return folder if request.may_read(folder.resolve()) and folder.is_dir() else None
    return None


def is_file_name(name: str) -> bool:
    """True if a file can have this name, which must have no path separator."""
    is_short = len(name.encode("utf-8", "surrogatepass")) <= _MAX_NAME_BYTES
    return is_short and Path(name).name == name and name != ".." and "\0" not in name


@dataclass
class ChildAgent:
    """An agent that a node spawns. Its manifest is loaded when it is first needed. `model` is that of its parent."""

    name: str
    parent: LoadRequest
    model: str | None
    load: Load
    _graph: Graph | None = None

    @property
    def is_ordinary(self) -> bool:
        """True if it is an ordinary agent, whose effects are attributed to the node that spawns it."""
        folder = sibling_folder(self.parent, self.name)
        return folder is None or not (folder / GRAPH).exists()

    def graph(self) -> Graph:
        """Load its graph. The graph of an ordinary agent has a single node.

        Raises:
            ManifestError: there is no such agent, or its manifest is refused.
        """
        if self._graph is None:
            folder = sibling_folder(self.parent, self.name)
            if folder is None:  # the validator reports this earlier, unless it is off
                raise ManifestError(Problem("unknown-agent", f"there is no agent '{self.name}'"))
            if self.is_ordinary:
                request = self.parent.for_manifest(folder / CONFIG, None)
                self._graph = ordinary_graph(self.name, request, self.model)
            else:
                self._graph = self.load(self.parent.for_manifest(folder / GRAPH, None), self.model)
        return self._graph

    def nested_graph(self) -> NestedGraph:
        """Return its entry for the vocabulary of the graph that spawns it."""
        key = (str(self.parent.path.parent), self.name, self.model)
        return NestedGraph(key, self.graph, attributed=self.is_ordinary)

    async def run(self, prompt: str, ctx: NodeContext) -> str:
        """Run the agent on a prompt and return its final text.

        Raises:
            Exception: it failed, or its manifest is refused.
        """
        graph = self.graph()
        self._warn(graph, ctx)
        inputs = {INITIAL_PROMPT: prompt}
        ending = await run_inside(ctx, graph, inputs, attribute_to_caller=self.is_ordinary)
        return text_of(ending.output)

    def _warn(self, graph: Graph, ctx: NodeContext) -> None:
        """Raise the warnings of its manifest.

        Their locations start at its folder, so that a trace does not depend on the path of the project.
        """
        for warning in graph.warnings:
            span = warning.span
            place = replace(span, file="/".join(Path(span.file).parts[-2:])) if span else None
            warn_once(ctx.run, replace(warning, span=place).one_line)


async def spawn(
    node: AgentNode, child: ChildAgent, agent_model: ModelSettings, state: State, ctx: NodeContext
) -> Update:
    """Spawn the child, wait for its final text and update the state with it.

    `agent_model` is the model of the agent, which extracts structured output.

    Raises:
        Exception: the child failed or timed out, or structured output cannot be extracted from its text.
    """
    prompt = render(node.prompt, state)

    async def real() -> str:
        return await child.run(prompt, ctx)

    effect = AgentCall(name=node.agent, args={"input": prompt}, real=real)
    # spec: `timeout` limits the child. The extractor runs after it, outside the limit.
    what = f"agent '{node.agent}'"
    text = text_of(await with_timeout(lambda: ctx.perform(effect), ctx, node.timeout, what))
    if node.output_schema is None:
        return exit_update(apply_state_updates(state, node, text))
    value = await parse_structured_output(text, node.output_schema, agent_model, ctx)
    return exit_update(apply_state_updates(merge_output(state, value), node, value))
