"""A forest of spans: every export of traces is read into one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple

Kind = Literal["model", "tool", "handler", "retrieval", "node", "agent", "step", "route", "other"]
"""`step` is a function, chain or graph inside of the app, and may turn out to be a node. `other` has nothing to do
with agents, such as the request of a web server."""


class Absent:
    """The type of `ABSENT`, which stands for a value that the export does not have. It is false."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = Absent()
MAX_DEPTH: Final = 100
"""The deepest nesting of spans; what is deeper is left out."""


class Failure(NamedTuple):
    """The failure of a span. A pause is none; it has the values it asked with, None if they cannot be read."""

    type: str
    message: str
    is_pause: bool = False
    values: list[Any] | None = None


@dataclass(eq=False)
class Span:
    """A thing that took time.

    id, parent, trace  as exported; `parent` is "" for a root
    start, end         seconds since the epoch
    order              breaks ties of `start`
    source             the exporter
    thread             the conversation it belongs to; "" if it does not tell
    place, node, step  of a graph: an id of the running task, the node, and the superstep
    input              of a model the messages, of a tool the arguments, else any data; ABSENT if it was not exported
    output             of a model the reply (`text`, `tool_calls`), else any data
    tools              names of the tools that a model was offered
    call               of a tool the id of its call; of a model the id of the response
    routes             where a node led to, with the conditions
    """

    id: str
    parent: str
    trace: str
    name: str
    kind: Kind
    start: float
    end: float
    source: str
    order: Any = 0
    thread: str = ""
    place: str = ""
    node: str = ""
    step: float | None = None
    input: Any = ABSENT
    output: Any = ABSENT
    failure: Failure | None = None
    tools: list[str] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    call: str = ""
    routes: list[tuple[str, str]] = field(default_factory=list)
    children: list[Span] = field(default_factory=list)

    @property
    def has_content(self) -> bool:
        """True if it has an input or an output."""
        return self.input is not ABSENT or self.output is not ABSENT

    def in_graph(self, meta: Mapping[str, Any]) -> None:
        """Set what LangGraph tells of its tasks in the metadata of a span."""
        self.place = str(meta.get("langgraph_checkpoint_ns") or "")
        self.node = str(meta.get("langgraph_node") or "")
        step = meta.get("langgraph_step")
        if isinstance(step, int | float | str) and str(step).isdecimal():
            self.step = int(step)

    def below(self) -> Iterator[Span]:
        """Yield the spans inside, outer ones first."""
        waiting = [*reversed(self.children)]
        while waiting:
            span = waiting.pop()
            yield span
            waiting += reversed(span.children)


def forest(spans: Iterable[Span]) -> list[Span]:
    """Return the roots, with `children` in order of time.

    Of spans with one id the first counts. A span whose parent is missing, or who is its own ancestor, is a root.
    """
    known: dict[tuple[str, str], Span] = {}
    for span in spans:
        known.setdefault((span.trace, span.id), span)
    found = sorted(known.values(), key=lambda span: (span.start, str(span.order)))
    roots = []
    for span in found:
        parent = known.get((span.trace, span.parent))
        if parent is None or _depth(span, known) > MAX_DEPTH:
            roots.append(span)
        else:
            parent.children.append(span)
    return roots


def _depth(span: Span, known: dict[tuple[str, str], Span]) -> int:
    depth = 0
    above: Span | None = span
    while above is not None and depth <= MAX_DEPTH:
        above = known.get((above.trace, above.parent))
        depth += 1
    return depth


def seconds_of(time: Any) -> float:
    """Return a time in ISO 8601 as seconds since the epoch; 0.0 for none. Without a zone it is UTC."""
    if not time:
        return 0.0
    found = datetime.fromisoformat(str(time))
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping as it is, and an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}
