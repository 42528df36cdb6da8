"""The graph: the common form that every dialect compiles to.

A node is an async function of the state, plus effects (`harness.graph.effects`). Edges, their conditions and
fallbacks are data, so validation, diagrams and coverage need no code of the dialect. `harness.engine` runs the graph.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

from harness.errors import Problem, Span
from harness.graph.effects import ToolSpec

VocabularyGraph: TypeAlias = Any  # `harness.graph.model` imports this module

NODE: Final = "node"
"""The key for names of nodes in `Vocabulary.open`."""


@dataclass(frozen=True)
class NestedGraph:
    """A graph that runs inside a node.

    Attributes:
        key: identifies the graph, so that graphs which run each other in a circle are recognized.
        graph: returns the graph, or raises a ManifestError.
        name: what stands between the name of the outer node and those of its nodes; "" for nothing.
        attributed: its effects carry the name of the node it runs inside.
        warned: the warnings of the outer graph contain those of this one.
    """

    key: Hashable
    graph: Callable[[], VocabularyGraph]
    name: str = ""
    attributed: bool = False
    warned: bool = False


@dataclass(frozen=True)
class Outside:
    """Something that a graph calls and that only a scenario answers: without an entry there, the call is an error.

    Attributes:
        kind: the kind of its entry: that of an effect, or `server`.
        name: the name of its entry.
        others: other entries that answer it, as (kind, name). The name "" stands for any.
        asked: the names by which a model asks for it; empty if a node calls it by itself.
        tools: the tools of a server that it calls, as far as they are declared.
        nodes: the nodes that call it, if only they do and a run may well visit none of them.
        declared: where the manifest names it, if nothing else is known of it.
    """

    kind: str
    name: str
    others: tuple[tuple[str, str], ...] = ()
    asked: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    declared: Span | None = None


@dataclass(frozen=True)
class Vocabulary:
    """The names in one graph, besides those of its nodes.

    Attributes:
        names: the names of all calls that it can make, by kind of effect (`llm`: models, `mcp`: tools of MCP
            servers), and of its MCP servers (`server`).
        aliases: other names that a scenario's stubs may use, by kind, each with the name it stands for.
        open: kinds (and `NODE`) that may have names which only a run knows, each with the reason.
        inside: the graphs that may run inside each node.
        callers: callers that are not nodes, by the name that their effects carry as their node.
        inputs: the keys of an input that are kept; None for any keys.
        text_input: the key that an input of text is stored under.
        pauses: the values that a run can pause with, if these are names of nodes; None for values of any kind.
        outside: what it calls and only a scenario answers, as far as it is declared.
    """

    names: Mapping[str, Collection[str]] = field(default_factory=dict)
    aliases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    open: Mapping[str, str] = field(default_factory=dict)
    inside: Mapping[str, Sequence[NestedGraph]] = field(default_factory=dict)
    callers: Collection[str] = ()
    inputs: Collection[str] | None = None
    text_input: str = ""
    pauses: Collection[str] | None = None
    outside: Sequence[Outside] = ()


# This package does not import the engine. Both interfaces are defined in `harness.engine.context`.
NodeContext: TypeAlias = Any
RunContext: TypeAlias = Any

START: Final = "__start__"
END: Final = "__end__"

ON_ERROR: Final = "on error"
"""The condition of a fallback, in traces, pictures and coverage."""
GOTO: Final = "goto any"
"""The condition of an edge from a node that may go to any node."""
ANY_NODE: Final = "*"
"""The target of that edge before it is taken."""

State = Mapping[str, Any]
Reducer = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Update:
    """The result of a node.

    Attributes:
        values: the new values of channels.
        goto: the node to go to: the target of one of the node's fallback edges, or any node of the graph if the node
            is in `Graph.goto_anywhere`. None lets the router or the edges decide.
        routing_values: values that override the state for the router after this node. They are not kept.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    goto: str | None = None
    routing_values: Mapping[str, Any] = field(default_factory=dict)


class Writes(dict[str, Any]):
    """The keys that a node of an open state writes, in contrast to the whole new state."""


NodeFunction = Callable[[State, NodeContext], Awaitable[Update]]


@dataclass(frozen=True)
class Channel:
    """A field of the state.

    Attributes:
        name: the name of the field.
        reducer: merges a written value into the old one. With None, the new value replaces the old, and two writes in
            one superstep are an error.
        initial: makes the initial value of a thread. With None, the field is absent at first.
    """

    name: str
    reducer: Reducer | None = None
    initial: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Node:
    """A node. `run` accesses the world only through its context."""

    name: str
    kind: str
    run: NodeFunction
    span: Span | None = None


@dataclass(frozen=True)
class Edge:
    """An edge from one node to another.

    `condition` is the text of its condition, None for an unconditional edge. `on_error` marks a fallback.
    """

    source: str
    target: str
    condition: str | None = None
    on_error: bool = False
    span: Span | None = None

    @property
    def label(self) -> str | None:
        """The label of the edge in pictures and in coverage."""
        return ON_ERROR if self.on_error else self.condition


@dataclass(frozen=True)
class DataEdge:
    """A value passed from one node's output to another node's input. It never decides which nodes run."""

    source: str
    output: str
    target: str
    input: str
    span: Span | None = None


@dataclass(frozen=True)
class Dispatch:
    """An edge to follow with a state of its own for the target (fan-out)."""

    edge: Edge
    state: State


Routes = Sequence[Edge | Dispatch]
"""The edges to follow after a node, in order."""

Router = Callable[[State, RunContext], Awaitable[Routes]]
"""Chooses among a node's edges, given the state with that node's update. The path ends if it chooses none."""


@dataclass(frozen=True)
class NodeEntry:
    """A visit that is about to start, the `nth` of its node since the last input.

    `elapsed_s` is the virtual time since that input.
    """

    node: str
    nth: int
    elapsed_s: float


Guard = Callable[[NodeEntry], Exception | None]


async def _return_none(_ctx: RunContext) -> None:
    return None


async def _unchanged(value: Any, _ctx: RunContext) -> Any:
    return value


async def _same_error(error: Exception, _ctx: RunContext) -> Exception | None:
    return error


@dataclass(frozen=True)
class Lifecycle:
    """The hooks of a dialect around the nodes of a run, in the order in which they are called.

    1. `prepare` runs once, before anything else (start hooks, list MCP servers). A ManifestError refuses the run.
    2. `accept` turns each input into a state update. An exception fails the run before any node. An input with a
       method `recorded()` is recorded in the trace as the value which that returns, as effects are.
    3. `guard` is called before each visit. If it returns an error, the visit is refused and the run fails there.
       Limits on the entries of a node, and time limits that are checked between nodes, are guards.
    4. `answer` turns each reply to an interrupt into the value that the paused node receives.
    5. `update_state` turns the value that resumes a run at a static breakpoint into an update of its state. The
       router that is asked again sees keys that are not channels; they are not kept.
    6. `rescue` receives an error that ended the run, and returns the error to report, or None to swallow it.
    7. `finish` makes the output from the final state. An exception fails the run after its nodes.
    8. `salvage` makes the output of a run whose nodes failed, or returns None.
    9. `so_far` makes the output of a run that pauses, or returns None.
    """

    prepare: Callable[[RunContext], Awaitable[None]] = _return_none
    accept: Callable[[Any, RunContext], Awaitable[Mapping[str, Any]]] = _unchanged
    answer: Callable[[Any, RunContext], Awaitable[Any]] = _unchanged
    guard: Guard | None = None
    update_state: Callable[[Any, RunContext], Awaitable[Mapping[str, Any]]] = _unchanged
    rescue: Callable[[Exception, RunContext], Awaitable[Exception | None]] = _same_error
    finish: Callable[[State, RunContext], Awaitable[Any]] = _unchanged
    salvage: Callable[[RunContext], Awaitable[Any]] = _return_none
    so_far: Callable[[RunContext], Awaitable[Any]] = _return_none


@dataclass(frozen=True)
class Rerun:
    """An input to a thread that ran before: run one node again, and continue from there.

    The node receives its last input, or `input`. `feedback` and `reason` describe the fault in its output.
    """

    node: str
    input: Mapping[str, Any] | None = None
    feedback: Any = None
    reason: str = ""

    def recorded(self) -> dict[str, Any]:
        """Return the input as it is recorded in the trace."""
        given = {"input": self.input, "feedback": self.feedback, "reason": self.reason or None}
        return {
            "rerun": {"agent": self.node, **{key: value for key, value in given.items() if value is not None}}
        }


@dataclass(frozen=True)
class Entry:
    """An input to a thread, for another entry of the graph than the one it was loaded for."""

    name: str
    input: Any = None

    def recorded(self) -> dict[str, Any]:
        """Return the input as it is recorded in the trace."""
        return {"entry_point": self.name, "input": self.input}


Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Declared:
    """The data of an agent as its manifest declares it, as JSON Schemas. A schema is None where nothing is declared.

    Attributes:
        input: the mapping that a caller may give. Of an undeclared state, its properties are only those keys that
            something reads before any node writes them.
        takes_text: a caller may give a text.
        context: the context that a caller gives with it (LangGraph).
        output: what a completed run returns.
        state: the state of a run that completed. Keys that a run may leave out are not required.
        results: what calls return, by kind of effect and name. The replies of models (`llm`, as JSON) and of people
            (`human`), and the bodies of responses (`http`), are by the name of the node; responses to the calls of
            tools of agents are by their URL, in which `*` stands for any text.
        servers: the tools of MCP servers, as far as they are declared, by the id of the server.
        handles_faults: something in the manifest handles failures: a retry, a fallback, an error branch, a default.
        fallible: the nodes whose handlers may fail, as the manifest has a retry or a fallback for them.
    """

    input: Schema | None = None
    takes_text: bool = False
    context: Schema | None = None
    output: Schema | None = None
    state: Schema | None = None
    results: Mapping[tuple[str, str], Schema] = field(default_factory=dict)
    servers: Mapping[str, Sequence[ToolSpec]] = field(default_factory=dict)
    handles_faults: bool = False
    fallible: Collection[str] = ()


def _no_problems(_functions: Mapping[str, Collection[str]]) -> Sequence[Problem]:
    return ()


@dataclass(frozen=True, eq=False)
class Graph:
    """A compiled agent. It runs in LangGraph's supersteps, or in events if it is an `EventGraph`.

    Attributes:
        name: the name of the agent.
        dialect: the name of the dialect.
        nodes: the nodes.
        edges: the edges, fallbacks included, in the order they were declared.
        channels: the fields of the state.
        routers: choose among a node's edges, by node. A node without a router follows all its edges.
        lifecycle: the hooks of the dialect.
        recursion_limit: the most supersteps of one invocation.
        may_pause: False for a graph that never pauses. A single input then needs no checkpoints.
        warnings: warnings raised at load.
        notes: further remarks, shown only when the manifest itself is checked.
        tool_problems: returns the problems of tools that it names, given the functions of those MCP servers that are
            known, by server. It is for checks without a run, which itself asks the servers.
        data_edges: makes the data edges, of which there may be very many.
        open_state: the state is one mapping with any keys, without channels. Each input, and each result of a
            node, is the whole new state, and only one node of a superstep may return one; but see `merges`.
        merges: for an open state of which several nodes of a superstep write keys: their results are `Writes`, merged
            in the order of `nodes`, and a key that two of them write has its reducer here. None without such nodes.
        pause_before: nodes before which a run stops at a static breakpoint. Nobody is asked (`Conversation.resume`).
        pause_after: nodes after whose superstep a run stops, if anything follows.
        explicit_ends: only an edge to END ends a run. At a node without an edge, the run fails.
        goto_anywhere: nodes that may go to any node (`Update.goto`).
        includes_nested_latency: graphs inside its nodes are parts of the same agent, so the latency of their nodes is
            listed with that of its own.
        reruns: `Lifecycle.accept` takes a `Rerun` as well.
        entries: the names for which `Lifecycle.accept` takes an `Entry` as well.
        identity: what the graph is made of, where manifests of several forms may name the same.
        draws_inside: pictures and coverage have the nodes of the graphs inside, as `outer/inner`.
        takes_hooks: False if hooks that a scenario names have no effect.
        collision_hint: advice, in the words of the dialect, for nodes of one superstep that write one field.
        shares_answers: one value that resumes a run answers all its questions. If False, it answers a single
            question, as in LangGraph.
        output_types: the JSON types of keys of the output that every completed run has: values are cast to them.
        sources: the files that the graph was compiled from.
        import_folders: folders that Python was imported from, besides those of the request.
        vocabulary: returns the names of its calls and of the graphs inside it. Without it, only the names of nodes in
            scenarios are checked.
        declared: returns what its manifest declares of its data.
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
    tool_problems: Callable[[Mapping[str, Collection[str]]], Sequence[Problem]] = _no_problems
    data_edges: Callable[[], Sequence[DataEdge]] = tuple
    open_state: bool = False
    merges: Mapping[str, Reducer] | None = None
    pause_before: frozenset[str] = frozenset()
    pause_after: frozenset[str] = frozenset()
    explicit_ends: bool = False
    goto_anywhere: frozenset[str] = frozenset()
    includes_nested_latency: bool = False
    reruns: bool = False
    entries: tuple[str, ...] = ()
    identity: str = ""
    draws_inside: bool = False
    takes_hooks: bool = True
    collision_hint: str = ""
    shares_answers: bool = True
    output_types: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[Path, ...] = ()
    import_folders: tuple[Path, ...] = ()
    vocabulary: Callable[[], Vocabulary] | None = None
    declared: Callable[[], Declared] = Declared

    @property
    def has_breakpoints(self) -> bool:
        """True if runs pause before or after some of its nodes."""
        return bool(self.pause_before or self.pause_after)

    def edges_from(self, source: str) -> tuple[Edge, ...]:
        """Return the edges that leave a node, in the order they were declared."""
        return self._edges_by_source.get(source, ())

    @cached_property
    def _edges_by_source(self) -> Mapping[str, tuple[Edge, ...]]:
        found: dict[str, list[Edge]] = {}
        for edge in self.edges:
            found.setdefault(edge.source, []).append(edge)
        return {source: tuple(edges) for source, edges in found.items()}
