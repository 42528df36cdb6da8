"""The number of requests that a provider gets at once, and the pauses of all when it has had too many.

Additive increase, multiplicative decrease, as TCP does it: a response that says "too many" halves the number of
connections to its host, at most once per round trip, and each good one adds a part of one. All requests to the host
wait as long as the response says (`Retry-After`), or twice as long each time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

from harness.time.real import real

TOO_MANY: Final = (429, 503, 529)
"""The statuses of an overloaded provider; 529 is Anthropic's. 503 counts if it says when to come back."""
LONGEST_S: Final = 60.0
"""The longest real seconds to wait. A provider that asks for more has not been overloaded, but used up."""
RETRY: Final = ("retry-after", "retry-after-ms")
"""The headers that say when to come back."""
BARREN: Final = 3
"""The refusals in a row, without a good response to anybody, after which a request is not repeated."""
MOST_TRIES: Final = 20
"""The times that a request is sent at most: its own refusal may have nothing to do with the load."""


@dataclass
class Host:
    """The requests to one host.

    most      how many may be under way at once
    open      how many are
    widest    the most that ever were
    resumes   the real time (`monotonic`) from which requests may be sent
    refusals  the responses "too many" since the last good one
    answers   the good responses
    narrowed  the real time at which `most` was last reduced
    """

    most: float
    open: int = 0
    widest: int = 0
    resumes: float = 0.0
    refusals: int = 0
    answers: int = 0
    narrowed: float = 0.0


@dataclass
class Sent:
    """A request that is under way, and its earlier tries."""

    host: str
    tries: int = 0
    began: float = 0.0
    barren: int = 0
    answers: int = 0


@dataclass
class Throttle:
    """The connections to all hosts, at most `most` to each. Not thread-safe; `harness.recording.permits` locks it."""

    most: float = math.inf
    hosts: dict[str, Host] = field(default_factory=dict)

    def wait_s(self, host: str, *, patient: bool = True) -> float:
        """Return the real seconds to wait before a request to a host; `inf` until another one ends.

        With `patient` false, the number of connections does not count.
        """
        found = self._host(host)
        if (left := found.resumes - real.monotonic()) > 0:
            return left
        return math.inf if patient and found.open >= max(1, int(min(found.most, 1e9))) else 0.0

    def begin(self, sent: Sent) -> None:
        """Note that a request is sent."""
        host = self._host(sent.host)
        host.open += 1
        host.widest = max(host.widest, host.open)
        sent.tries += 1
        sent.began, sent.answers = real.monotonic(), host.answers

    def end(self, sent: Sent, status: int | None, headers: Mapping[str, str]) -> bool:
        """Note the end of a request. `status` is None if no response arrived.

        Returns:
            True if the request is to be repeated: the provider has had too much at once, and serves others.
        """
        host, now = self._host(sent.host), real.monotonic()
        host.open -= 1
        asked_s = retry_after_s(headers)
        if status not in TOO_MANY or (status == 503 and asked_s is None):
            if status is not None and status < 400:
                host.answers, host.refusals = host.answers + 1, 0
                host.most = min(self.most, host.most + 1 / max(host.most, 1.0))
            return False
        if asked_s is not None and asked_s > LONGEST_S:
            return False
        if sent.began >= host.narrowed:
            host.most, host.narrowed = max(1.0, min(host.most, host.open + 1) / 2), now
            host.refusals += 1
        pause_s = asked_s if asked_s is not None else min(2.0 ** (host.refusals - 2), LONGEST_S)
        host.resumes = max(host.resumes, now + pause_s)
        sent.barren = sent.barren + 1 if host.answers == sent.answers else 1
        return host.widest > 1 and sent.barren <= BARREN and sent.tries < MOST_TRIES

    def pauses(self) -> dict[str, float]:
        """Return the real seconds for which requests are held back, by host."""
        now = real.monotonic()
        return {name: host.resumes - now for name, host in self.hosts.items() if host.resumes > now}

    def _host(self, name: str) -> Host:
        return self.hosts.setdefault(name, Host(self.most))


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a response asks to wait; None if it does not say. Header names are in lower case."""
    try:
        if "retry-after-ms" in headers:  # OpenAI's
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        text = headers["retry-after"]
    except (KeyError, ValueError):
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        then = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, ((then if then.tzinfo else then.replace(tzinfo=UTC)) - real.now()).total_seconds())
