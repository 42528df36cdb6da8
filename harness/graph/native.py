"""A graph that runs as its own framework compiled it: LangGraph's `Pregel`, unmodified."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from harness.graph.model import END, Graph


@dataclass(frozen=True)
class StoredItem:
    """An item of a LangGraph store."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any]


@dataclass(frozen=True)
class Invocation:
    """The values that a scenario gives to the invocation of an app, besides its inputs.

    Attributes:
        config: the `RunnableConfig`: `configurable`, `tags`, `recursion_limit`, …
        context: the context of the run; None if the scenario has none.
        store: the items in the store before the run.
        thread: identifies the scenario, so that no two scenarios are one thread.
        offline: no provider is reached, so that dummy keys do.
    """

    config: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] | None = None
    store: Sequence[StoredItem] = ()
    thread: str = ""
    offline: bool = True


COMMAND: Final = "Command"
"""The condition of a route that a node takes by returning a `Command`."""
_DEFAULT_NAME: Final = "LangGraph"
"""The name of a graph that the app gave none."""


def name_inside(graph: Any, node: str, runnable: Any) -> str:
    """Return the name by which a `Pregel` stands inside a node, which runs `runnable`.

    "" if it stands by the node alone: it is the node itself, or its name says no more than that of the node.
    """
    if _consists_of(runnable, graph):
        return ""
    name = (graph.config or {}).get("run_name") or graph.get_name()
    return "" if name in (_DEFAULT_NAME, node) else str(name)


def _consists_of(runnable: Any, graph: Any) -> bool:
    """True if a runnable is this graph, or a sequence with it."""
    if runnable is graph or getattr(runnable, "bound", None) is graph:
        return True
    return any(_consists_of(step, graph) for step in getattr(runnable, "steps", ()))


@lru_cache(256)
def route_label(graph: Any, source: str, target: str) -> str | None:
    """Return the condition of a route of a `Pregel`, None for an edge without one.

    It is the label of the target in the conditional edge, else the name of the function that chose, or `Command`.
    """
    builder = getattr(graph, "builder", None)
    edges, branches = getattr(builder, "edges", ()), getattr(builder, "branches", {})
    joins = getattr(builder, "waiting_edges", ())
    if builder is None or (source, target) in edges:
        return None
    if any(source in sources and target == end for sources, end in joins):
        return None
    chosen = branches.get(source, {})
    for name, branch in chosen.items():
        for label, end in (branch.ends or {}).items():
            if end == target:
                return str(label) if label != target else name
    for name, branch in chosen.items():
        if branch.ends is None or target == END:
            return str(name)
    declared = getattr(builder.nodes.get(source), "ends", None) or ()
    return COMMAND if target != END or END in declared else None


def _nothing() -> None:
    pass


class PlainState(dict[str, Any]):
    """The state of a function of LangGraph that returned no mapping: `value` is what it returned."""


@dataclass(frozen=True, eq=False)
class NativeGraph(Graph):
    """A graph of an app.

    Attributes:
        compiled: the `Pregel` of LangGraph.
        invocation: what the scenario gives to it.
        enter: gives this process the variables and the import path of the app, for the length of a run.
        has_tasks: it is a function whose `@task`s are known only when it runs.
    """

    compiled: Any = None
    invocation: Invocation = field(default_factory=Invocation)
    enter: Callable[[], None] = _nothing
    has_tasks: bool = False
