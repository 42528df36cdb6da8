"""The names in a graph: of the models, tools, servers, agents and handlers that it calls.

A front end lists the names in one graph (`Graph.vocabulary`), and the graphs that run inside its nodes;
`harness.graph.names` combines them. The names in scenarios are checked against the result before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Graph: TypeAlias = Any  # `harness.graph.model` imports this module

KINDS: Final = ("llm", "tool", "mcp", "server", "agent", "handler", "script", "retrieval")
"""The kinds of names in a vocabulary."""
NODE: Final = "node"
"""The key for names of nodes in `Vocabulary.open`."""


@dataclass(frozen=True)
class NestedGraph:
    """A graph that runs inside a node.

    Attributes:
        key: identifies the graph, so that graphs which run each other in a circle are recognized.
        graph: returns the graph, or raises a ManifestError.
        attributed: its effects carry the name of the node it runs inside.
        warned: the warnings of the outer graph contain those of this one.
    """

    key: Hashable
    graph: Callable[[], Graph]
    attributed: bool = False
    warned: bool = False


@dataclass(frozen=True)
class Vocabulary:
    """The names in one graph, besides those of its nodes.

    Attributes:
        names: the names of all calls that it can make, by kind of effect (`llm`: models, `tool`, `mcp`: tools of MCP
            servers, `agent`, `handler`, `script`, `retrieval`), and of its MCP servers (`server`).
        aliases: other names that a scenario's stubs may use, by kind, each with the name it stands for.
        open: kinds (and `NODE`) that may have names which only a run knows, each with the reason.
        inside: the graphs that may run inside each node.
        callers: callers that are not nodes, by the name that their effects carry as their node.
        inputs: the keys of an input that are kept; None for any keys.
        text_input: the key that an input of text is stored under.
        pauses: the values that a run can pause with, if these are names of nodes; None for values of any kind.
    """

    names: Mapping[str, Collection[str]] = field(default_factory=dict)
    aliases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    open: Mapping[str, str] = field(default_factory=dict)
    inside: Mapping[str, Sequence[NestedGraph]] = field(default_factory=dict)
    callers: Collection[str] = ()
    inputs: Collection[str] | None = None
    text_input: str = ""
    pauses: Collection[str] | None = None
