"""An agent that scenarios run, and what their unchanged runs showed of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.scenario.model import Scenario


@dataclass
class Seen:
    """The facts that the unchanged runs of an agent showed.

    Attributes:
        keys: the keys that each node wrote.
        lists: the fields that hold lists.
        shape: the graph, as in results.
        dialect: the dialect.
        tools: the tools that ran, with the node that each ran in.
        acting: the nodes that called or asked something.
    """

    keys: dict[str, dict[str, None]] = field(default_factory=dict)
    lists: dict[str, None] = field(default_factory=dict)
    shape: Mapping[str, Any] = field(default_factory=dict)
    dialect: str = ""
    tools: dict[tuple[str, str], None] = field(default_factory=dict)
    acting: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Agent:
    """An agent that scenarios run.

    Attributes:
        scenario: one of them.
        users: the numbers of all of them.
        seen: what their runs showed.
    """

    scenario: Scenario
    users: tuple[int, ...]
    seen: Seen = field(default_factory=Seen)
