"""The content of a cassette as data: HTTP interactions, MCP exchanges and replies of people.

Interactions are in the order of their requests. `turn` is the number of the conversation's input, from 1; None, as in
cassettes recorded by vcrpy, matches any turn. Durations are in seconds: real when recorded, virtual when replayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.interception.messages import Request, Response


@dataclass(frozen=True)
class Interaction:
    """An HTTP request and its response or failure.

    response     None if none arrived; then see `failure`
    failure      the client's exception and its text, `ConnectError: refused`; "" if the client stopped waiting
    chunks_s     arrival time of each part of a streamed body, in seconds since the request
    line         line in http.yaml, from 1; 0 if not read from a file
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
    """A JSON-RPC message sent to an MCP server, and all messages received up to its response.

    `received` has no response for a notification, nor for a request that the client abandoned.
    """

    sent: Mapping[str, Any]
    received: Sequence[Mapping[str, Any]] = ()
    turn: int | None = None
    duration_s: float = 0.0
    line: int = 0


@dataclass(frozen=True)
class HumanReply:
    """A person's reply to a question. `asked` is the `args` of the effect, as plain data."""

    node: str
    asked: Any
    reply: Any
    turn: int | None = None


@dataclass(frozen=True)
class RecordingMetadata:
    """The origin of a recording.

    recorded     day of its oldest call, such as 2026-01-31
    manifests    SHA-256 of each file the graph was loaded from, by the path that the scenario uses
    versions     versions of the client packages, by name
    now          the instant at which the run began, such as 2026-01-31T12:00:00Z; "" if unknown
    environment  variables with provider addresses, which a replay takes from here, and variables that the manifest
                 reads, which a replay takes from here if they are not set; without secrets
    """

    scenario: str = ""
    recorded: str = ""
    manifests: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    now: str = ""


@dataclass(frozen=True)
class Recording:
    """One recorded run of a scenario."""

    http: tuple[Interaction, ...] = ()
    mcp: Mapping[str, tuple[Exchange, ...]] = field(default_factory=dict)
    human: tuple[HumanReply, ...] = ()
    metadata: RecordingMetadata = field(default_factory=RecordingMetadata)

    def __len__(self) -> int:
        return len(self.http) + sum(map(len, self.mcp.values())) + len(self.human)
