"""The content of a cassette as data: HTTP interactions, MCP exchanges and replies of people.

Interactions are in the order of their requests. `turn` is the number of the conversation's input, from 1; None, as in
cassettes recorded by vcrpy, matches any turn. Durations are in seconds: real when recorded, virtual when replayed.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Final

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
    imported     the instant at which the app was imported, if its import preceded the run; "" otherwise
    """

    scenario: str = ""
    recorded: str = ""
    manifests: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    now: str = ""
    imported: str = ""


@dataclass(frozen=True)
class Recording:
    """One recorded run of a scenario."""

    http: tuple[Interaction, ...] = ()
    mcp: Mapping[str, tuple[Exchange, ...]] = field(default_factory=dict)
    human: tuple[HumanReply, ...] = ()
    metadata: RecordingMetadata = field(default_factory=RecordingMetadata)

    def __len__(self) -> int:
        return len(self.http) + sum(map(len, self.mcp.values())) + len(self.human)

    def where(
        self,
        http: Callable[[Interaction], bool],
        mcp: Callable[[str, Exchange], bool],
        human: Callable[[HumanReply], bool],
    ) -> Recording:
        """Return the recording with only those of its calls for which these functions are true."""
        servers = {name: tuple(one for one in of if mcp(name, one)) for name, of in self.mcp.items()}
        return replace(
            self, http=tuple(filter(http, self.http)), mcp=servers, human=tuple(filter(human, self.human))
        )


def merged(first: Recording, second: Recording) -> Recording:
    """Return a recording with the calls of both, and the metadata of the first."""
    mcp = {
        name: (*first.mcp.get(name, ()), *second.mcp.get(name, ())) for name in {**first.mcp, **second.mcp}
    }
    return replace(first, http=(*first.http, *second.http), mcp=mcp, human=(*first.human, *second.human))


def without(recording: Recording, other: Recording) -> Recording:
    """Return a recording without the calls that are in another one."""
    return recording.where(
        lambda one: one not in other.http,
        lambda name, one: one not in other.mcp.get(name, ()),
        lambda one: one not in other.human,
    )


_INPUT: Final = ("prompt_tokens", "input_tokens")
_OUTPUT: Final = ("completion_tokens", "output_tokens")


@dataclass(frozen=True)
class Traffic:
    """Numbers of HTTP requests, MCP requests and questions to people, and the tokens that models report."""

    http: int = 0
    mcp: int = 0
    people: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*map(operator.add, astuple(self), astuple(other)))

    def __bool__(self) -> bool:
        return any(astuple(self))

    @property
    def requests(self) -> int:
        """The number of HTTP and MCP requests."""
        return self.http + self.mcp


@dataclass(frozen=True)
class RunRecording:
    """The part of one run of a scenario in its cassette.

    recording  None if there is nothing to write
    traffic    the calls that were really made
    unused     number of interactions recorded earlier that the run did not request
    problem    the reason why the recording is not to be written; "" if there is none
    """

    recording: Recording | None = None
    traffic: Traffic = field(default_factory=Traffic)
    unused: int = 0
    problem: str = ""


def traffic_of(http: Iterable[Interaction], mcp: Iterable[Exchange], people: int) -> Traffic:
    """Return the traffic of these interactions, exchanges and questions to people.

    Notifications do not count as requests.
    """
    sent = [*http]
    tokens = [tokens_of(interaction.response) for interaction in sent]
    return Traffic(
        http=len(sent),
        mcp=sum("id" in exchange.sent for exchange in mcp),
        people=people,
        input_tokens=sum(used for used, _ in tokens),
        output_tokens=sum(used for _, used in tokens),
    )


def tokens_of(response: Response | None) -> tuple[int, int]:
    """Return the input and output tokens that a response reports, of a stream the largest; 0 if it reports none."""
    found = [_tokens(event) for event in _bodies(response)]
    return max((used for used, _ in found), default=0), max((used for _, used in found), default=0)


def _bodies(response: Response | None) -> Iterator[Any]:
    text = response.body.decode("utf-8", "replace") if response is not None else ""
    data = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
    for body in data or [text]:
        try:
            yield json.loads(body)
        except (ValueError, RecursionError):
            continue


def _tokens(body: Any) -> tuple[int, int]:
    """Return the tokens in `usage`, of OpenAI or Anthropic; the first event of Anthropic has it in `message`."""
    message = body.get("message") if isinstance(body, dict) else None
    holders = [each for each in (body, message) if isinstance(each, dict)]
    usages = [each["usage"] for each in holders if isinstance(each.get("usage"), dict)]
    counts = [
        [usage[name] for usage in usages for name in names if isinstance(usage.get(name), int)]
        for names in (_INPUT, _OUTPUT)
    ]
    return max(counts[0], default=0), max(counts[1], default=0)
