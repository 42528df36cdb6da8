"""A graph that runs as its own framework compiled it: LangGraph's `Pregel`, unmodified."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.graph.model import Graph


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
