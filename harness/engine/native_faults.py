"""Faults in the compiled graph of an app, made in place: each of its runs is a process of its own.

A node is skipped or runs twice, a conditional edge leads to a sibling's target, a tool node lacks a tool. A node of a
nested graph is `outer/inner`, or `outer/graph/inner` where code of a node invokes a graph that has a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.errors import ManifestError, Problem
from harness.graph.faults import Fault
from harness.graph.model import END
from harness.graph.native import NativeGraph


def make_faults(graph: NativeGraph, faults: Sequence[Fault]) -> None:
    """Make faults in a graph.

    Raises:
        ManifestError: it has no such node, no such targets or no such tool (code `bad-patch`).
    """
    for fault in faults:
        compiled, name = _place_of(graph.compiled, fault.name)
        node = compiled.nodes.get(name)
        if fault.kind in ("skip", "twice") and node is not None:
            node.bound = _skipped() if fault.kind == "skip" else _twice(node.bound)
            for made in ("node", "flat_writers"):  # from the old one
                vars(node).pop(made, None)
            continue
        tools = getattr(getattr(node, "bound", None), "tools_by_name", {})
        # An edge out of a nested graph leads to the node that it is in.
        around = fault.name.rpartition("/")[0]
        targets = (
            END if each == around else each.removeprefix(f"{around}/") for each in fault.key.split("\n")
        )
        rerouted = fault.kind == "reroute" and _exchange(compiled, name, *targets)
        if not rerouted and not (fault.kind == "without" and tools.pop(fault.key, None)):
            text = f"the graph has nothing that '{fault.kind}' changes at '{fault.name}'"
            raise ManifestError(Problem("bad-patch", text))


def _place_of(compiled: Any, path: str) -> tuple[Any, str]:
    """Return the graph that a node is in, the graph itself or one inside of it, and the node's name there."""
    outer, _, inner = path.partition("/")
    if path in compiled.nodes or not inner:
        return compiled, path
    for nested in getattr(compiled.nodes.get(outer), "subgraphs", ()):
        place = _place_of(nested, inner.removeprefix(f"{nested.name}/"))
        if place[1] in place[0].nodes:
            return place
    return compiled, path


def _skipped() -> Any:
    from langchain_core.runnables import RunnableLambda

    async def nothing(_: Any) -> dict[str, Any]:
        return {}

    return RunnableLambda(lambda _: {}, nothing)


def _twice(bound: Any) -> Any:
    from langchain_core.runnables import RunnableConfig, RunnableLambda

    def run(value: Any, config: RunnableConfig) -> Any:
        bound.invoke(value, config)
        return bound.invoke(value, config)

    async def arun(value: Any, config: RunnableConfig) -> Any:
        await bound.ainvoke(value, config)
        return await bound.ainvoke(value, config)

    return RunnableLambda(run, arun)


def _exchange(compiled: Any, source: str, one: str, other: str) -> bool:
    """Exchange two targets of the conditional edges of a node; False if none has both."""
    branches = getattr(getattr(compiled, "builder", None), "branches", {})
    found = [
        each.ends
        for each in branches.get(source, {}).values()
        if {one, other} <= {*(each.ends or {}).values()}
    ]
    exchanged = {one: other, other: one}
    for ends in found:
        ends.update({label: exchanged.get(target, target) for label, target in ends.items()})
    return bool(found)
