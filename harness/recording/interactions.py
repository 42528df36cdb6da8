"""What a cassette holds, as data: what was asked and answered, over HTTP, over MCP and by people.

Interactions stand in the order they were asked in. `turn` counts the inputs of a conversation from 1; None, as in
cassettes recorded by others, is any. Durations are in seconds: real when recorded, virtual when replayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.interception.messages import Request, Response


@dataclass(frozen=True)
class Interaction:
    """An HTTP request and what became of it.

    response     None when none came: see `failure`
    failure      `ConnectError: refused`, the client's exception and its text; "" when it was given up waiting
    chunks_s     when each part of a streamed body came, since the request
    line         where it stands in http.yaml, from 1; 0 when it was not read from there
    """

    request: Request
    response: Response | None
    turn: int | None = None
    duration_s: float = 0.0
    chunks_s: tuple[float, ...] = ()
    failure: str = ""
    line: int = 0


@dataclass(frozen=True)
class Exchange:
    """A JSON-RPC message sent to an MCP server, and all it sent from then until its response.

    A notification has no response; a request that was given up has none in `received`.
    """

    sent: Mapping[str, Any]
    received: Sequence[Mapping[str, Any]] = ()
    turn: int | None = None
    duration_s: float = 0.0
    line: int = 0


@dataclass(frozen=True)
class HumanReply:
    """What a person said to a question. `asked` is the effect's `args`, as plain data."""

    node: str
    asked: Any
    reply: Any
    turn: int | None = None


@dataclass(frozen=True)
class RecordingMetadata:
    """Where a recording comes from.

    recorded     the day of its oldest call, as 2026-01-31
    manifests    the files the graph was loaded from, as the scenario names them, to the SHA-256 of their bytes
    versions     of the packages that spoke
    environment  variables that said where providers are, which are read from here on replay, and those that the
                 manifest was given, which are where they are not set; without secrets
    """

    scenario: str = ""
    recorded: str = ""
    manifests: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Recording:
    """One recorded run of a scenario."""

    http: tuple[Interaction, ...] = ()
    mcp: Mapping[str, tuple[Exchange, ...]] = field(default_factory=dict)
    human: tuple[HumanReply, ...] = ()
    metadata: RecordingMetadata = field(default_factory=RecordingMetadata)

    def __len__(self) -> int:
        return len(self.http) + sum(map(len, self.mcp.values())) + len(self.human)
