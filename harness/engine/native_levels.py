"""The levels of the graphs that run inside each other in an app, and the names that their nodes have.

The nodes of the outermost graph have their own names, those of a graph inside a node `outer/inner`. A graph that the
code of a node invokes, and that has a name, stands by it in between: `tools/searcher/model`. So the sub-agents of one
tool, or of several tools of one node, have nodes of their own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, Final

from langgraph.pregel import Pregel

from harness.graph.effects import ToolCall
from harness.graph.native import name_inside
from harness.interception.real_effects import current_effect
from harness.time.turns import CARRIED


@dataclass(frozen=True)
class Level:
    """A graph that runs.

    Attributes:
        prefix: what stands before the names of its nodes: "" or `outer/`.
        graph: the `Pregel`; None if LangGraph did not tell.
    """

    prefix: str = ""
    graph: Any = None


_OUTERMOST: Final = Level()
_level: ContextVar[Level] = ContextVar("_level", default=_OUTERMOST)
current_task: ContextVar[Any] = ContextVar("current_task", default=None)
"""The task of LangGraph whose code runs."""
CARRIED.extend((_level, current_task))


def current_level() -> Level:
    """Return the level of the tasks that start here."""
    return _level.get()


@cache
def wrap_streams() -> None:
    """Wrap the functions through which every run of a graph goes, once in a process."""
    of_langgraph: Any = Pregel
    stream, astream = of_langgraph.stream, of_langgraph.astream

    @wraps(stream)
    def stream_at(self: Any, *args: Any, **options: Any) -> Any:
        return _each(_level_of(self), stream(self, *args, **options))

    @wraps(astream)
    def astream_at(self: Any, *args: Any, **options: Any) -> Any:
        return _each_async(_level_of(self), astream(self, *args, **options))

    of_langgraph.stream, of_langgraph.astream = stream_at, astream_at


def _level_of(graph: Any) -> Level:
    """Return the level of a graph that is invoked here."""
    owner, task = current_effect(), current_task.get()
    if owner is None or owner.effect is None or task is None:
        return Level("", graph)
    effect = owner.effect
    name = name_inside(graph, task.name, task.proc)
    if name == "" and isinstance(effect, ToolCall):
        name = effect.name
    return Level(f"{effect.node}/{name}/" if name else f"{effect.node}/", graph)


def _each(level: Level, stream: Generator[Any]) -> Generator[Any]:
    """Yield what a run streams. It is at its level only while it works, not while its caller does."""
    try:
        while True:
            token = _level.set(level)
            try:
                item = next(stream)
            except StopIteration:
                return
            finally:
                _level.reset(token)
            yield item
    finally:
        stream.close()


async def _each_async(level: Level, stream: AsyncGenerator[Any]) -> AsyncGenerator[Any]:
    try:
        while True:
            token = _level.set(level)
            try:
                item = await anext(stream)
            except StopAsyncIteration:
                return
            finally:
                _level.reset(token)
            yield item
    finally:
        await stream.aclose()
