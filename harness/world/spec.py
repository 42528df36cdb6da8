"""Data model of a scenario's world: stubs, servers, faults.

The scenario loader builds it; `ScriptedWorld` answers from it. Terms are those of docs/scenario-format.md ("The
world").
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
    """An error instead of an answer.

    message        None for the default text of the kind
    type           the name of the exception, for the kind `exception`
    retry_after_s  sent as a header if the answer is an HTTP response; not used for effects of an agent
    """

    kind: ErrorKind
    message: str | None = None
    type: str | None = None
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Stub:
    """One scripted answer, and the calls it applies to.

    nodes   globs that must all match the calling node: the key of a mapping by node, and the stub's own `node`
    args    None matches any arguments
    answer  the answer keys of the stub's kind as written: llm {reply | json | tool_calls | chunks, usage,
            finish_reason}; tools, handlers, agents, scripts and retrieval {return}; mcp {return | content};
            http {status, json | text, headers}; human {reply}
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
    """The source of answers for one tool, handler, agent, script or retrieval: the real thing, or stubs.

    real  True for the callable that the manifest names, a text for the dotted path of another, False for `stubs`
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
    """An injected fault.

    One of `nth`, `every` and `rate` selects calls; `error`, `latency_s` and `truncate` act on them.
    """

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
    """The world of a scenario. Mappings are by the name of the tool, server, script and so on."""

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
