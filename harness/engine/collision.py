"""The error of nodes that write one field in the same superstep: it names the field and the nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from langgraph import errors

from harness.engine.cycles import some
from harness.errors import RunError, Span
from harness.graph.model import Graph

Write = tuple[str, Collection[str]]
"""A node that ended, and the fields that its update has."""

_WHOLE_STATE: Final = ""


class InvalidUpdateError(RunError, errors.InvalidUpdateError):
    """Several writes of a field without a reducer in one superstep. The name and one of its bases are LangGraph's."""

    code = "invalid-update"

    def __init__(self, text: str, span: Span | None) -> None:
        self.span = span
        super().__init__(text)


def collision(graph: Graph, writes: Iterable[Write]) -> InvalidUpdateError | None:
    """The error for these writes of one superstep; None, if each field can take them. Its place: the last writer."""
    writers = _writers(graph, writes)
    fields = [field for field, nodes in writers.items() if len(nodes) > 1]
    if not fields:
        return None
    more = some([f"'{field}'" for field in fields[1:]], ", ")
    nodes = writers[fields[0]]
    what = "the whole state" if graph.open_state else f"field '{fields[0]}', which has no reducer"
    text = f"{_named(nodes)} wrote in one superstep {what}" + (f" (nor has {more})" if more else "")
    text += f"; {graph.collision_hint}" if graph.collision_hint else ""
    return InvalidUpdateError(text, next((n.span for n in graph.nodes if n.name == nodes[-1]), None))


def _writers(graph: Graph, writes: Iterable[Write]) -> Mapping[str, Sequence[str]]:
    """The nodes that wrote each field without a reducer, in the order of their names, as LangGraph applies them."""
    plain = [_WHOLE_STATE] if graph.open_state else [c.name for c in graph.channels if c.reducer is None]
    ordered = sorted(writes, key=lambda write: write[0])
    return {
        field: [node for node, written in ordered if graph.open_state or field in written] for field in plain
    }


def _named(nodes: Iterable[str]) -> str:
    times = Counter(nodes)
    return some([f"'{node}'" + (f" ({n} times)" if n > 1 else "") for node, n in times.items()], " and ")
