"""Graphs with those that run inside them: all names in them, their problems, and the whole as one graph."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain

from harness.errors import ManifestError, Problem
from harness.graph.effects import EFFECTS, NAMED_KINDS, SERVER
from harness.graph.model import NODE, Edge, Graph, NestedGraph, Node
from harness.graph.observe import implied_ends, inside


@dataclass
class Names:
    """The names in a graph and, if asked for, in the graphs inside it. The mappings keep the order of the names.

    Attributes:
        callers: the names of nodes that effects carry, `outer/inner` in a nested graph.
        inner: the nodes of nested graphs by their own names, each with the node of the outermost graph it runs in.
        names: the names of calls, by kind.
        aliases: other names that stubs may use, by kind, each with the name that it stands for.
        open: kinds that may have more names, each with the reason.
        circular: True if graphs run each other in a circle, so that `callers` lacks longer paths.
        inputs: as in the vocabulary of the outermost graph.
        text_input: as in the vocabulary of the outermost graph.
    """

    callers: dict[str, None] = field(default_factory=dict)
    inner: dict[str, str] = field(default_factory=dict)
    names: dict[str, dict[str, None]] = field(default_factory=dict)
    aliases: dict[str, dict[str, str]] = field(default_factory=dict)
    open: dict[str, str] = field(default_factory=dict)
    circular: bool = False
    inputs: Collection[str] | None = None
    text_input: str = ""


@lru_cache(maxsize=256)
def names_of(graph: Graph, *, inside: bool = True) -> Names | None:
    """Return the names in a graph and, unless `inside` is False, in the graphs inside it.

    None if its front end lists no names. The result is cached and must not be changed.
    """
    if graph.vocabulary is None:
        return None
    found = Names()
    _Collector(found, inside).add(graph, "", ())
    return found


def has_caller(graph: Graph, node: str) -> bool:
    """True if effects of the graph, or of one inside it, may carry the name of this node."""
    names = names_of(graph)
    callers = [*(own.name for own in graph.nodes), *(names.callers if names is not None else ())]
    return any(name.rpartition("/")[2] == node for name in callers)


def noun_of(kind: str) -> str:
    """Return what messages call a name of this kind."""
    if kind == SERVER:
        return "MCP server"
    return (EFFECTS[kind].noun or EFFECTS[kind].target) if kind in EFFECTS else kind


@dataclass
class _Collector:
    found: Names
    inside: bool

    def add(
        self, graph: Graph, prefix: str, within: tuple[Hashable, ...], *, attributed: bool = False
    ) -> None:
        """Add the names in a graph. `prefix` is the path to its nodes, `within` has the keys of the outer graphs."""
        found, own = self.found, [node.name for node in graph.nodes]
        if prefix:
            found.inner = {**dict.fromkeys(own, prefix.partition("/")[0]), **found.inner}
        if not attributed:
            found.callers.update(dict.fromkeys(prefix + name for name in own))
        if graph.vocabulary is None:
            self.open(f"the names in '{graph.name}' are not listed")
            return
        vocabulary = graph.vocabulary()
        if not within:
            found.inputs, found.text_input = vocabulary.inputs, vocabulary.text_input
        found.callers.update(dict.fromkeys(prefix + name for name in vocabulary.callers))
        for kind, names in vocabulary.names.items():
            found.names.setdefault(kind, {}).update(dict.fromkeys(names))
        for kind, aliases in vocabulary.aliases.items():
            found.aliases.setdefault(kind, {}).update(aliases)
        found.open = {**vocabulary.open, **found.open}
        for node, graphs in vocabulary.inside.items() if self.inside else ():
            for nested in graphs:
                self.add_nested(nested, f"{prefix}{node}", within)

    def add_nested(self, nested: NestedGraph, node: str, within: tuple[Hashable, ...]) -> None:
        """Add the names in a graph that runs inside this node."""
        if nested.key in within:
            self.found.circular = True
            return
        try:
            graph = nested.graph()
        except ManifestError as error:  # a run that reaches the node reports it
            self.open(f"what runs inside '{node}' cannot be read: {error.problems[0].message}")
            return
        prefix = f"{node}/{nested.name}/" if nested.name else f"{node}/"
        self.add(graph, prefix, (*within, nested.key), attributed=nested.attributed)

    def open(self, reason: str) -> None:
        """Mark all kinds as open: there may be more names."""
        self.found.open = {**dict.fromkeys((NODE, *NAMED_KINDS), reason), **self.found.open}


def inner_graphs(graph: Graph) -> Iterator[Graph | ManifestError]:
    """Yield the graphs inside a graph at any depth, each once. For a manifest that is refused, yield the error."""
    return (inner for _, inner in _nested(graph))


def _nested(graph: Graph) -> Iterator[tuple[NestedGraph, Graph | ManifestError]]:
    seen: set[Hashable] = set()
    ahead = [graph]
    while ahead:
        outer = ahead.pop()
        inside = outer.vocabulary().inside if outer.vocabulary is not None else {}
        for nested in chain.from_iterable(inside.values()):
            if nested.key in seen:
                continue
            seen.add(nested.key)
            try:
                found = nested.graph()
            except ManifestError as error:
                yield nested, error
                continue
            yield nested, found
            ahead.append(found)


def nested_problems(graph: Graph) -> Iterator[Problem]:
    """Yield the problems of all nested graphs. Errors become warnings, as a scenario may answer in their place."""
    for nested, inner in _nested(graph):
        if isinstance(inner, Graph):
            yield from () if nested.warned else inner.warnings
        else:
            yield from (replace(problem, severity="warning") for problem in inner.problems)


@lru_cache(maxsize=256)
def flattened(graph: Graph) -> Graph:
    """Return a graph with those inside its nodes as one, if its pictures show them; else the graph itself.

    The nodes inside are `outer/inner`. A graph inside begins at its outer node and returns to it, so its ends need no
    names of their own.
    """
    if not graph.draws_inside or graph.vocabulary is None or not graph.vocabulary().inside:
        return graph
    parts = [*_flat_parts(graph, "", "", ())]
    return replace(
        graph,
        nodes=tuple(node for nodes, _ in parts for node in nodes),
        edges=tuple(edge for _, edges in parts for edge in edges),
    )


def _flat_parts(
    graph: Graph, prefix: str, outer: str, within: tuple[Hashable, ...]
) -> Iterator[tuple[Sequence[Node], Sequence[Edge]]]:
    """Yield the nodes and edges of a graph inside the node `outer`, and of those inside it."""
    renamed = [
        replace(edge, source=inside(edge.source, prefix, outer), target=inside(edge.target, prefix, outer))
        for edge in (*graph.edges, *implied_ends(graph))
    ]
    nodes = [replace(node, name=prefix + node.name) for node in graph.nodes]
    yield nodes, [edge for edge in renamed if not edge.source == edge.target == outer]
    for node, graphs in graph.vocabulary().inside.items() if graph.vocabulary is not None else ():
        for nested in graphs:
            if nested.key not in within:
                path = f"{prefix}{node}"
                below = f"{path}/{nested.name}/" if nested.name else f"{path}/"
                yield from _flat_parts(nested.graph(), below, path, (*within, nested.key))
