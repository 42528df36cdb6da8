"""All names of a graph, and of the graphs that run inside it."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field
from functools import lru_cache

from harness.errors import ManifestError
from harness.graph.model import Graph
from harness.graph.vocabulary import KINDS, NODE, NestedGraph


@dataclass
class Names:
    """All names of a graph and, if they were looked into, of those inside it.

    callers  nodes as effects carry them, `outer/inner` in a nested graph
    inner    nodes of nested graphs, by their own names, each with the node of the top graph it runs in
    circular: graphs run each other in a circle, so that there are longer paths than those in `callers`
    inputs, text_input: as in the vocabulary of the graph itself
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
    """The names of a graph, without `inside` of it alone; None if its front end lists none. Not to be changed."""
    if graph.vocabulary is None:
        return None
    found = Names()
    _Collector(found, inside).add(graph, "", ())
    return found


def has_caller(graph: Graph, node: str) -> bool:
    """True if the graph, or one that runs inside it, makes calls from a node of this name."""
    names = names_of(graph)
    callers = [*(each.name for each in graph.nodes), *(names.callers if names is not None else ())]
    return any(name.rpartition("/")[2] == node for name in callers)


@dataclass
class _Collector:
    found: Names
    inside: bool

    def add(
        self, graph: Graph, prefix: str, within: tuple[Hashable, ...], *, attributed: bool = False
    ) -> None:
        """Add the names of a graph whose nodes have this prefix, inside of these graphs."""
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
            for each in graphs:
                self.add_inside(each, f"{prefix}{node}", within)

    def add_inside(self, each: NestedGraph, node: str, within: tuple[Hashable, ...]) -> None:
        """Add the names of a graph that runs inside this node."""
        if each.key in within:
            self.found.circular = True
            return
        try:
            graph = each.graph()
        except ManifestError as error:  # a run tells it, if it comes there
            self.open(f"what runs inside '{node}' cannot be read: {error.problems[0].message}")
            return
        self.add(graph, f"{node}/", (*within, each.key), attributed=each.attributed)

    def open(self, reason: str) -> None:
        """Note that there may be other names of any kind."""
        self.found.open = {**dict.fromkeys((NODE, *KINDS), reason), **self.found.open}
