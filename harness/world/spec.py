"""The world of a scenario as data: stubs, servers, faults.

The scenario loader builds these; `World` answers from them. Words mean what they mean in
docs/scenario-format.md ("The world").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.errors import Span

ErrorKind = Literal[
    "rate_limit",
    "timeout",
    "connection",
    "server_error",
    "auth",
    "invalid_request",
    "context_length",
    "content_filter",
    "malformed",
    "exception",
]
Times = int | Literal["any"]


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """An error instead of an answer. `message` None: the kind's own text; `type`: built-in exception.

    `retry_after_s` is sent as a header where the answer is an HTTP response; effects of an agent have no use for it.
    """

    kind: ErrorKind
    message: str | None = None
    type: str | None = None
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Stub:
    """One scripted answer and when it applies.

    `nodes` are globs that all must match the calling node (the key of a mapping by node, and the stub's
    own `node`). `args` None: any arguments. `answer` holds the answer keys of the stub's kind as written:
    llm {reply | json | tool_calls | chunks, usage, finish_reason}; tools, handlers, agents, scripts and
    retrieval {return}; mcp {return | content}; http {status, json | text, headers}; human {reply}.
    """

    span: Span | None = None
    nodes: tuple[str, ...] = ()
    model: str | None = None
    method: str | None = None
    url: str | None = None
    args: Mapping[str, Any] | None = None
    when: str | None = None
    times: Times = 1
    latency_s: float = 0.0
    error: ErrorAnswer | None = None
    answer: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """Who answers for one tool, handler, agent, script or retrieval: the real thing, or stubs.

    `real` True: the callable the manifest names; text: a dotted path of another; False: `stubs`.
    """

    real: bool | str = False
    stubs: tuple[Stub, ...] = ()
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class MCPToolSpec:
    """A tool of a scripted MCP server. `input_schema` is JSON Schema (2020-12)."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    stubs: tuple[Stub, ...] = ()


@dataclass(frozen=True, slots=True)
class MCPServerSpec:
    """An MCP server: the real one, or a scripted one. `latency_s` (virtual) is added to every call."""

    real: bool = False
    tools: tuple[MCPToolSpec, ...] = ()
    latency_s: float = 0.0
    error: ErrorAnswer | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class FaultSpec:
    """A fault put around answers: one of `nth`, `every`, `rate` selects calls, the last three act on them."""

    effect: Literal["llm", "tool", "mcp", "http", "script", "agent"]
    node: str | None = None
    name: str | None = None
    nth: int | None = None
    every: int | None = None
    rate: float | None = None
    error: ErrorAnswer | None = None
    latency_s: float | None = None
    truncate: int | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class WorldSpec:
    """The world of a scenario. Mappings go from a name to what answers for it."""

    llm: tuple[Stub, ...] = ()
    tools: Mapping[str, Entry] = field(default_factory=dict)
    mcp: Mapping[str, MCPServerSpec] = field(default_factory=dict)
    http: tuple[Stub, ...] = ()
    scripts: Mapping[str, Entry] = field(default_factory=dict)
    handlers: Mapping[str, Entry] = field(default_factory=dict)
    agents: Mapping[str, Entry] = field(default_factory=dict)
    retrieval: Mapping[str, Entry] = field(default_factory=dict)
    human: tuple[Stub, ...] = ()
    hooks: tuple[str, ...] = ()
    faults: tuple[FaultSpec, ...] = ()
