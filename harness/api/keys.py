"""The keyword arguments of the Python side: the keys of a scenario, of its world and of `expect`, typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

Answer = str | Mapping[str, Any] | Callable[..., Any]
"""A stub: a text, a mapping with the keys of a stub, or a callable that gets the request."""
Answers = Answer | Sequence[Answer]
Entry = Mapping[str, Any] | Sequence[Answer] | Callable[..., Any] | str
"""The answers of a tool, a handler and so on: a stub, several, a callable, `real`, or a dotted path."""
Status = Literal["completed", "interrupted", "failed", "timeout", "invalid"]


class World(TypedDict, total=False):
    """The keys of a world (docs/scenario-format.md, "The world")."""

    llm: Answers | Mapping[str, Answers]
    tools: Mapping[str, Entry]
    mcp: Mapping[str, Mapping[str, Any] | Literal["real"]]
    http: Answers
    scripts: Mapping[str, Entry]
    handlers: Mapping[str, Entry]
    agents: Mapping[str, Entry]
    human: Answers | Mapping[str, Answers]
    retrieval: Mapping[str, Entry]


class RunKeys(World, total=False):
    """The keys of a run besides manifest and input. `timeout` is in virtual seconds."""

    agent: str
    dialect: str
    env: Mapping[str, str]
    config: Mapping[str, Any]
    context: Mapping[str, Any]
    store: Sequence[Mapping[str, Any]]
    seed: int
    timeout: float
    cassette: str
    record_mode: Literal["none", "once", "new_episodes", "all", "rewrite", "live"]
    faults: Sequence[Mapping[str, Any]]
    hooks: Sequence[str]
    now: str | datetime
    allow_unused: bool


class Expect(TypedDict, total=False):
    """The keys of `expect` (docs/scenario-format.md, "Expectations"). Times are virtual seconds."""

    status: Status
    path: Sequence[str | Sequence[str]]
    path_includes: Sequence[str]
    visits: Mapping[str, int]
    max_visits: Mapping[str, int]
    never: Sequence[str]
    routes: Sequence[Mapping[str, str]]
    state: Any
    output: Any
    store: Sequence[Mapping[str, Any]]
    state_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    calls: Sequence[Mapping[str, Any]]
    calls_order: Literal["in_order", "any", "exact"]
    never_calls: Sequence[Mapping[str, Any]]
    call_counts: Mapping[str, int]
    error: Mapping[str, Any]
    interrupt: Any
    latency: Mapping[str, Any]
    usage: Mapping[str, float]
    warnings: Sequence[Any]
    never_warnings: Sequence[Any]
    custom: Sequence[Mapping[str, Any]]
    checks: Sequence[Mapping[str, Any]]
    weights: Mapping[str, float]
