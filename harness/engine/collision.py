"""The error for several nodes that write one field in the same superstep. It names the field and the nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from langgraph import errors

from harness.engine.cycles import abbreviated
from harness.errors import RunError, Span
from harness.graph.model import Graph

Write = tuple[str, Collection[str]]
"""The name of a node that ended, and the fields in its update."""

_WHOLE_STATE: Final = ""


class InvalidUpdateError(RunError, errors.InvalidUpdateError):
    """Several writes to a field without a reducer in one superstep.

    It has the name of LangGraph's error, and is a subclass of it.
    """

    code = "invalid-update"

    def __init__(self, text: str, span: Span | None) -> None:
        self.span = span
        super().__init__(text)


def collision_error(graph: Graph, writes: Iterable[Write]) -> InvalidUpdateError | None:
    """Return the error for conflicting writes of one superstep, located at the last writer, or None."""
    writers = _writers(graph, writes)
    fields = [field for field, nodes in writers.items() if len(nodes) > 1]
    if not fields:
        return None
    more = abbreviated([f"'{field}'" for field in fields[1:]], ", ")
    nodes = writers[fields[0]]
    what = "the whole state" if graph.open_state else f"field '{fields[0]}', which has no reducer"
    text = f"{_quoted(nodes)} wrote in one superstep {what}" + (f" (nor has {more})" if more else "")
    text += f"; {graph.collision_hint}" if graph.collision_hint else ""
    return InvalidUpdateError(text, next((n.span for n in graph.nodes if n.name == nodes[-1]), None))


def _writers(graph: Graph, writes: Iterable[Write]) -> Mapping[str, Sequence[str]]:
    """Map each field without a reducer to the nodes that wrote it, in the order of names that LangGraph uses."""
    plain = [_WHOLE_STATE] if graph.open_state else [c.name for c in graph.channels if c.reducer is None]
    ordered = sorted(writes, key=lambda write: write[0])
    return {
        field: [node for node, written in ordered if graph.open_state or field in written] for field in plain
    }


def _quoted(nodes: Iterable[str]) -> str:
    times = Counter(nodes)
    return abbreviated(
        [f"'{node}'" + (f" ({n} times)" if n > 1 else "") for node, n in times.items()], " and "
    )
