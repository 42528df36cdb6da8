"""The traffic of a run while it is recorded: the numbers of requests that were really made, and their tokens."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from harness.recording.interactions import Exchange, Interaction

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
        return Traffic(*(mine + theirs for mine, theirs in zip(self._all(), other._all(), strict=True)))

    def __bool__(self) -> bool:
        return any(self._all())

    @property
    def requests(self) -> int:
        """The number of HTTP and MCP requests."""
        return self.http + self.mcp

    def _all(self) -> tuple[int, ...]:
        return self.http, self.mcp, self.people, self.input_tokens, self.output_tokens


def traffic_of(http: Iterable[Interaction], mcp: Iterable[Exchange], people: int) -> Traffic:
    """Return the traffic of these interactions, exchanges and questions to people.

    Notifications do not count as requests.
    """
    sent = [*http]
    tokens = [usage for interaction in sent for usage in _usage(interaction)]
    return Traffic(
        http=len(sent),
        mcp=sum("id" in exchange.sent for exchange in mcp),
        people=people,
        input_tokens=sum(used for used, _ in tokens),
        output_tokens=sum(used for _, used in tokens),
    )


def tokens_of(interaction: Interaction) -> tuple[int, int]:
    """Return the input and output tokens that a response reports; 0 for each that it does not report."""
    return next(_usage(interaction), (0, 0))


def _usage(interaction: Interaction) -> Iterator[tuple[int, int]]:
    """Yield the input and output tokens of a response, if it is JSON; of a stream, the largest of its events."""
    found = [_tokens(event) for event in _bodies(interaction)]
    if found:
        yield max(used for used, _ in found), max(used for _, used in found)


def _bodies(interaction: Interaction) -> Iterator[Any]:
    text = interaction.response.body.decode("utf-8", "replace") if interaction.response is not None else ""
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
