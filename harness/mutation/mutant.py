"""An agent that scenarios run, and a mutant of it: one fault, as in-memory changes, with its place and diff."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.dialects.request import Changes
from harness.errors import Span
from harness.scenario.model import Scenario


@dataclass
class Agent:
    """An agent that scenarios run, and what their unchanged runs showed.

    Attributes:
        scenario: one of them.
        users: the numbers of all of them.
        keys: the keys that each node wrote.
        lists: the fields that hold lists.
        shape: the graph, as in results.
        dialect: the dialect.
        tools: the tools that ran, with the node that each ran in.
        acting: the nodes that called or asked something.
    """

    scenario: Scenario
    users: tuple[int, ...]
    keys: dict[str, dict[str, None]] = field(default_factory=dict)
    lists: dict[str, None] = field(default_factory=dict)
    shape: Mapping[str, Any] = field(default_factory=dict)
    dialect: str = ""
    tools: dict[tuple[str, str], None] = field(default_factory=dict)
    acting: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Mutant:
    """A fault.

    Attributes:
        id: the operator, the manifest, and the path of the change by names.
        operator: the name of its operator.
        where: the location of the change.
        lines: the first and the last line of the part that it is in, in the file of `where`.
        diff: the change as a diff.
        changes: the change itself.
        users: the numbers of the scenarios whose agent has it.
        node: the node that must run for it to matter; None if it may matter in any run.
        names: the names that it takes away: a scenario that uses one notices.
        route: both ends of the edge that it is about, or its source alone; empty for none.
        in_prompt: it changes what a model is told.
        in_edges: it changes nothing but the edges of the graph.
        repeats: it runs a node twice that calls and asks nothing.
    """

    id: str
    operator: str
    where: Span
    lines: tuple[int, int]
    diff: str
    changes: Changes
    users: tuple[int, ...] = ()
    node: str | None = None
    names: frozenset[str] = frozenset()
    route: tuple[str, ...] = ()
    in_prompt: bool = False
    in_edges: bool = False
    repeats: bool = False

    @property
    def place(self) -> str:
        """`file:line`."""
        return f"{self.where.file}:{self.where.line}"
