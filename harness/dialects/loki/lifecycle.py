"""The lifecycle of a run: the checks before it, its input and output, and the limits of `settings`.

spec: "`{{initial_prompt}}`", `max_loop_iterations`, `timeout`.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from harness.dialects.kit.manifest import input_values
from harness.dialects.loki.document import INITIAL_PROMPT, GraphFile, LLMNode
from harness.dialects.loki.nodes import OUTPUT, AgentContext
from harness.dialects.loki.tool_universe import UnknownTool
from harness.engine.context import RunContext
from harness.errors import HarnessError, ManifestError, Problem
from harness.graph.model import Lifecycle, NodeEntry, State
from harness.source.document import Document
from harness.source.suggest import did_you_mean


class VisitLimit(HarnessError):
    """A node that is entered more often than `max_loop_iterations` allows."""

    code = "visit-limit"


def lifecycle(context: AgentContext, document: Document) -> Lifecycle:
    """Return the lifecycle of a graph agent. Each input starts the graph from `initial_state`."""
    graph = context.graph

    async def prepare(run: RunContext) -> None:
        if graph.settings.validate_before_run:
            await _check_functions(context, document, run)

    async def accept(value: Any, _run: RunContext) -> Mapping[str, Any]:
        values = input_values(
            value, INITIAL_PROMPT, "an input is text (initial_prompt) or a mapping of state keys"
        )
        return {**deepcopy(graph.initial_state), **values}

    async def finish(_state: State, run: RunContext) -> Any:
        return run.resources.get(OUTPUT)

    return Lifecycle(prepare=prepare, accept=accept, guard=_guard(graph), finish=finish)


def _guard(graph: GraphFile) -> Any:
    settings = graph.settings

    def guard(entry: NodeEntry) -> Exception | None:
        most = settings.max_loop_iterations
        if entry.nth > most:
            return VisitLimit(f"Node '{entry.node}' visited {entry.nth} times (max_loop_iterations={most})")
        if settings.timeout is not None and entry.elapsed_s > settings.timeout:
            return TimeoutError(
                f"the graph timed out before node '{entry.node}': {entry.elapsed_s:g} s have passed, and its timeout "
                f"is {settings.timeout:g} s"
            )
        return None

    return guard


async def _check_functions(context: AgentContext, document: Document, run: RunContext) -> None:
    """Check whitelist entries against the functions of the agent's MCP servers.

    spec: "Each entry is validated at startup".

    Raises:
        ManifestError: an entry is neither a tool of the agent nor a function of its servers.
    """
    problems = []
    for id_, node in context.graph.nodes.items():
        for index, entry in enumerate(node.tools if isinstance(node, LLMNode) else ()):
            if entry in context.tools.names():
                continue
            try:
                await context.tools.select([entry], run)
            except UnknownTool as error:
                where = document.span(("nodes", id_, "tools", index))
                hint = did_you_mean(entry, error.known, listing=False)
                problems.append(Problem("unknown-tool", f"node '{id_}': {error}", where, hint))
    if problems:
        raise ManifestError(problems)
