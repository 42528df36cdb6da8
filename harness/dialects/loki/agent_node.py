"""The agent node: a child agent from a sibling folder, in the same world and clock. spec: "agent".

A child with a `graph.yaml` runs its graph, in a state of its own; one with a `config.yaml` is an ordinary agent.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from harness.dialects.kit.attempts import with_timeout
from harness.dialects.loki.document import INITIAL_PROMPT, AgentNode
from harness.dialects.loki.json_text import text_of
from harness.dialects.loki.models import ModelSettings
from harness.dialects.loki.ordinary_agent import ordinary_graph
from harness.dialects.loki.routing import leaving
from harness.dialects.loki.state import updated
from harness.dialects.loki.structured import merged, structured
from harness.dialects.loki.templates import render
from harness.dialects.request import LoadRequest
from harness.engine.context import NodeContext
from harness.engine.nested import run_inside
from harness.errors import ManifestError, Problem
from harness.graph.effects import AgentCall
from harness.graph.model import Graph, State, Update
from harness.graph.vocabulary import NestedGraph

GRAPH: Final = "graph.yaml"
CONFIG: Final = "config.yaml"

_WARNED: Final = "warnings of children"
"""The resource of a run that has the warnings of children it raised: each once, however often one is spawned."""

_MOST_BYTES: Final = 255  # of a name of a file, on any usual file system

Load = Callable[[LoadRequest], Graph]


def sibling(request: LoadRequest, agent: str) -> Path | None:
    """The folder of another agent, beside that of the manifest; None if there is none that may be read."""
    folder = request.path.resolve().parent.parent / agent
    if not is_file_name(agent):
        return None
    with suppress(OSError):  # a name that is too long
        return folder if request.may_read(folder.resolve()) and folder.is_dir() else None
    return None


def is_file_name(name: str) -> bool:
    """True if a file in a given folder can have this name."""
    is_short = len(name.encode("utf-8", "surrogatepass")) <= _MOST_BYTES
    return is_short and Path(name).name == name and name != ".." and "\0" not in name


@dataclass
class Child:
    """An agent that a node spawns. What it is made of is read when it is first needed."""

    name: str
    parent: LoadRequest
    load: Load
    _graph: Graph | None = None

    @property
    def is_ordinary(self) -> bool:
        """True if it has no graph of its own: its effects are then those of the node that spawns it."""
        folder = sibling(self.parent, self.name)
        return folder is None or not (folder / GRAPH).exists()

    def graph(self) -> Graph:
        """Its graph; of an ordinary agent, one of a single node.

        Raises:
            ManifestError: there is no such agent, or its manifest is refused.
        """
        if self._graph is None:
            folder = sibling(self.parent, self.name)
            if folder is None:  # which is found at load, unless validation is off
                raise ManifestError(Problem("unknown-agent", f"there is no agent '{self.name}'"))
            if self.is_ordinary:
                self._graph = ordinary_graph(self.name, self.parent.for_manifest(folder / CONFIG, None))
            else:
                self._graph = self.load(self.parent.for_manifest(folder / GRAPH, None))
        return self._graph

    def inside(self) -> NestedGraph:
        """Its graph, for the names in it."""
        return NestedGraph((str(self.parent.path.parent), self.name), self.graph, attributed=self.is_ordinary)

    async def answer(self, prompt: str, ctx: NodeContext) -> str:
        """Its final text.

        Raises:
            Exception: it failed, or its manifest is refused.
        """
        graph = self.graph()
        self._warn(graph, ctx)
        inputs = {INITIAL_PROMPT: prompt}
        ending = await run_inside(ctx, graph, inputs, attribute_to_caller=self.is_ordinary)
        return text_of(ending.output)

    def _warn(self, graph: Graph, ctx: NodeContext) -> None:
        """Raise the warnings of its manifest. Their places begin with its folder: a trace names none above."""
        raised: set[str] = ctx.run.simulation.resources.setdefault(_WARNED, set())
        for warning in graph.warnings:
            span = warning.span
            place = replace(span, file="/".join(Path(span.file).parts[-2:])) if span else None
            text = replace(warning, span=place).one_line
            if text not in raised:
                raised.add(text)
                ctx.run.warn(text)


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
        text = text_of(await ctx.perform(AgentCall(name=node.agent, args={"input": prompt}, real=real)))
        if node.output_schema is None:
            return dict(state), text
        value = await structured(text, node.output_schema, agents, ctx)
        return merged(state, value), value

    after, output = await with_timeout(body, ctx, node.timeout, f"agent '{node.agent}'")
    return leaving(updated(after, node, output))
