"""The names in a graph: what its nodes, models, tools, servers, agents and handlers are called while it runs.

A front end lists those of one graph (`Graph.vocabulary`), with the graphs that run inside its nodes;
`harness.graph.names` adds them up. Scenarios are held against the result before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Graph: TypeAlias = Any  # a graph has a vocabulary, which knows nothing of graphs

KINDS: Final = ("llm", "tool", "mcp", "server", "agent", "handler", "script", "retrieval")
"""The kinds of names in a vocabulary."""
NODE: Final = "node"
"""The kind of the names of nodes, in `Vocabulary.open`."""


@dataclass(frozen=True)
class NestedGraph:
    """A graph that runs inside a node. `graph` gives it, or raises a ManifestError.

    `key` is the same for the same graph, so that graphs which run each other in a circle come to an end here.
    `attributed`: its effects carry the name of the node around it.
    """

    key: Hashable
    graph: Callable[[], Graph]
    attributed: bool = False


@dataclass(frozen=True)
class Vocabulary:
    """The names in one graph, beside those of its nodes.

    names    by kind of effect, the names of all calls that it can make (`llm`: models, `tool`, `mcp`: tools of MCP
             servers, `agent`, `handler`, `script`, `retrieval`), and of its MCP servers (`server`)
    aliases  by kind, other names that a scenario's stubs may use, and the name each stands for
    open     kinds (and `NODE`) that may have names only a run knows, each with the reason
    inside   by node, the graphs that may run inside it
    callers  what calls beside the nodes, by the name that its effects carry as their node
    inputs   the keys that are kept of an input; None: whatever is given
    text_input  the key that an input of text becomes
    pauses   what a run can pause with, if that is always the name of a node; None: values of any kind
    """

    names: Mapping[str, Collection[str]] = field(default_factory=dict)
    aliases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    open: Mapping[str, str] = field(default_factory=dict)
    inside: Mapping[str, Sequence[NestedGraph]] = field(default_factory=dict)
    callers: Collection[str] = ()
    inputs: Collection[str] | None = None
    text_input: str = ""
    pauses: Collection[str] | None = None
