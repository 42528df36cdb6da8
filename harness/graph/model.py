"""The graph: what every dialect compiles to. Plain data that knows its own shape.

A node is a pure async function of state plus effects (`harness.graph.effects`); edges, their conditions and
fallbacks are data, so that validation, diagrams and coverage need no dialect. `harness.engine` runs it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from harness.errors import Problem, Span
from harness.graph.vocabulary import Vocabulary

# What runs a graph is not known here. Both have their full interface in `harness.engine.context`.
NodeContext: TypeAlias = Any
RunContext: TypeAlias = Any

START: Final = "__start__"
END: Final = "__end__"

# What an edge to any node says as its condition, and what stands for its target before it is taken.
GOTO: Final = "goto any"
ANY_NODE: Final = "*"

State = Mapping[str, Any]
Reducer = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Update:
    """What a node returns: values for channels, and, where it decides that itself, the node to go on with.

    `goto` names the target of one of the node's fallbacks, which is then followed, or any node of the graph if the
    node is in `Graph.goto_anywhere`. `routing_values` are laid over the state for the router after this node only;
    they are not kept.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    goto: str | None = None
    routing_values: Mapping[str, Any] = field(default_factory=dict)


NodeFunction = Callable[[State, NodeContext], Awaitable[Update]]


@dataclass(frozen=True)
class Channel:
    """A field of the state.

    `reducer` merges a written value into the old one (None: the new value replaces the old, and two writes
    in one superstep fail). `initial` makes the value a thread starts with, fresh each time (None: the
    field is absent at first).
    """

    name: str
    reducer: Reducer | None = None
    initial: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Node:
    """A node. `run` reaches the world only through its context."""

    name: str
    kind: str
    run: NodeFunction
    span: Span | None = None


@dataclass(frozen=True)
class Edge:
    """An edge from one node to another. `condition` is its text (None: always); `on_error` marks fallbacks."""

    source: str
    target: str
    condition: str | None = None
    on_error: bool = False
    span: Span | None = None

    @property
    def label(self) -> str | None:
        """The label of the edge in pictures and in coverage."""
        return "on error" if self.on_error else self.condition


@dataclass(frozen=True)
class DataEdge:
    """A value passed from one node's output to another node's input; it never decides what runs."""

    source: str
    output: str
    target: str
    input: str
    span: Span | None = None


@dataclass(frozen=True)
class Dispatch:
    """Send one edge's target a state of its own (fan-out)."""

    edge: Edge
    state: State


Routes = Sequence[Edge | Dispatch]
"""The edges that are followed after a node, in order."""

Router = Callable[[State, RunContext], Awaitable[Routes]]
"""Chooses among a node's edges, on the state with that node's updates applied. No choice: the path ends."""


@dataclass(frozen=True)
class NodeEntry:
    """A visit that is about to start, the `nth` of its node since the last input. `elapsed_s` is virtual."""

    node: str
    nth: int
    elapsed_s: float


Guard = Callable[[NodeEntry], Exception | None]


async def _nothing(_ctx: RunContext) -> None:
    return None


async def _as_it_is(value: Any, _ctx: RunContext) -> Any:
    return value


async def _not_rescued(error: Exception, _ctx: RunContext) -> Exception | None:
    return error


@dataclass(frozen=True)
class Lifecycle:
    """What a dialect does around the nodes of a run.

    1. `prepare` once, before anything else (start hooks, list MCP servers); a ManifestError refuses the run.
    2. `accept` turns each input into a state update; what it raises fails the run before any node. An input
       that has a method `recorded()` stands in the trace as what that returns, as effects do.
    3. `guard` sees each visit before it starts; an error that it returns refuses the visit and fails the run there.
       Entry limits of nodes, and limits of time that are checked between nodes, are guards.
    4. `answer` turns each reply to an interrupt into the value the paused node receives.
    5. `update_state` turns what a run at a static breakpoint is resumed with into an update of its state. Keys that
       are no channels are seen by the router that is asked again, and not kept.
    6. `rescue` sees an error that ended the run and returns the error to report, or None to swallow it.
    7. `finish` makes the output from the final state; what it raises fails the run after its nodes.
    8. `salvage` makes the output of a run whose nodes failed; None, if it has none.
    9. `so_far` makes the output of a run that pauses; None, if it has none yet.
    """

    prepare: Callable[[RunContext], Awaitable[None]] = _nothing
    accept: Callable[[Any, RunContext], Awaitable[Mapping[str, Any]]] = _as_it_is
    answer: Callable[[Any, RunContext], Awaitable[Any]] = _as_it_is
    guard: Guard | None = None
    update_state: Callable[[Any, RunContext], Awaitable[Mapping[str, Any]]] = _as_it_is
    rescue: Callable[[Exception, RunContext], Awaitable[Exception | None]] = _not_rescued
    finish: Callable[[State, RunContext], Awaitable[Any]] = _as_it_is
    salvage: Callable[[RunContext], Awaitable[Any]] = _nothing
    so_far: Callable[[RunContext], Awaitable[Any]] = _nothing


@dataclass(frozen=True)
class Rerun:
    """An input of a thread that ran before: run one node again, and go on from there.

    It gets the input that it had last, or `input`; `feedback` and `reason` say what was wrong with its output.
    """

    node: str
    input: Mapping[str, Any] | None = None
    feedback: Any = None
    reason: str = ""

    def recorded(self) -> dict[str, Any]:
        """The input as it stands in the trace."""
        given = {"input": self.input, "feedback": self.feedback, "reason": self.reason or None}
        return {
            "rerun": {"agent": self.node, **{key: value for key, value in given.items() if value is not None}}
        }


@dataclass(frozen=True, eq=False)
class Graph:
    """A compiled agent. `routers` choose among a node's edges; a node without one follows all its edges.

    `recursion_limit` is in supersteps for one invocation. `warnings` were raised at load; `notes` are for a check of
    the manifest alone. A graph that never pauses (`may_pause` False) runs a single input without checkpoints.
    `data_edges` makes the data edges, which may be very many.

    The state of a graph with `open_state` is one mapping of any keys, without channels: what a node returns, and each
    input, is the whole new state, and two nodes of one superstep cannot both return one.

    A run stops at a static breakpoint before the nodes of `pause_before` start and after the superstep of those of
    `pause_after`, if anything follows; nobody is asked anything (see `Conversation.resume`).

    The nodes of `goto_anywhere` may go on to any node (`Update.goto`).

    `sources` are the files it was compiled from, `import_folders` those that Python was imported from beside the
    folders of the request. Supersteps run it, or the event scheduler if it is an `EventGraph`.

    `collision_hint` says, in the words of the dialect, what to do where nodes of one superstep write one field.

    `vocabulary` gives the names of what it calls and of what runs inside it; without it, scenarios are held only
    against the names of its nodes.

    With `reruns`, `Lifecycle.accept` takes a `Rerun` as well. Without `takes_hooks`, hooks that a scenario names do
    nothing.

    With `inside_is_own`, graphs that run inside its nodes are parts of the same agent: the latency of their nodes is
    listed beside that of its own.
    """

    name: str
    dialect: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    channels: tuple[Channel, ...]
    routers: Mapping[str, Router] = field(default_factory=dict)
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    recursion_limit: int = 25
    may_pause: bool = True
    warnings: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    data_edges: Callable[[], Sequence[DataEdge]] = tuple
    open_state: bool = False
    pause_before: frozenset[str] = frozenset()
    pause_after: frozenset[str] = frozenset()
    goto_anywhere: frozenset[str] = frozenset()
    inside_is_own: bool = False
    reruns: bool = False
    takes_hooks: bool = True
    collision_hint: str = ""
    sources: tuple[Path, ...] = ()
    import_folders: tuple[Path, ...] = ()
    vocabulary: Callable[[], Vocabulary] | None = None

    @property
    def has_breakpoints(self) -> bool:
        """True if runs pause before or after some of its nodes."""
        return bool(self.pause_before or self.pause_after)

    def edges_from(self, source: str) -> tuple[Edge, ...]:
        """The edges that leave a node, in the order they were declared."""
        return tuple(edge for edge in self.edges if edge.source == source)
