"""The error for a request without a recorded answer: it shows the nearest recorded request and the differences."""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any, Final

from harness.errors import CassetteMismatch
from harness.interception.messages import Request
from harness.interception.patches import grouped
from harness.recording.difference import differences, distance, similarity
from harness.recording.interactions import Interaction
from harness.recording.matching import Matcher
from harness.secrets import bare_url
from harness.source.display import clip, printable
from harness.source.document import shown_path

_SHOWN: Final = 5
_LIMIT: Final = 100  # differences counted
_COMPARED: Final = 40  # interactions compared with the request
_URL: Final = 200
_SAMPLE: Final = 20_000  # characters of a body


def mismatch_error(
    request: Request,
    recorded: Sequence[Interaction],
    used: Container[int],
    matcher: Matcher,
    *,
    cassette: str,
    folder: Path,
    record_command: str,
    turn: int | None = None,
) -> CassetteMismatch:
    """Return the error for a request that no interaction of a cassette answers.

    Args:
        request: the request with its secrets replaced, since parts of it are shown.
        recorded: all interactions of the recording.
        used: indices, from 0, of the interactions that were replayed already.
        matcher: the matcher that did not find the request.
        cassette: name of the cassette.
        folder: folder of its http.yaml.
        record_command: the command that records it again, "" for none.
        turn: turn of the request; None if the recording has no turns.
    """
    lines = [f"nothing recorded in cassette '{printable(cassette)}' answers {_shown(request)}"]
    recording = _Recorded(recorded, used, folder)
    key = matcher.key(request)
    equal = [number for number, one in enumerate(recorded) if matcher.key(one.request) == key]
    if equal:
        lines.append(recording.reason_of_equal(equal, turn))
    elif recorded:
        lines += recording.nearest(request, matcher)
    else:
        lines.append("  no HTTP request is recorded in it")
    if record_command:
        lines.append(f"  record it again: {record_command}")
    return CassetteMismatch("\n".join(lines))


def _shown(request: Request) -> str:
    """Return method and URL, without user, password and query, which may be secret."""
    return printable(clip(f"{request.method} {bare_url(request.url)}", _URL))


def _ordinal(number: int) -> str:
    words = {2: "a second", 3: "a third", 4: "a fourth", 5: "a fifth"}
    if number in words:
        return words[number]
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"the {number}{ending}"


class _Recorded:
    """The interactions of a recording, the indices of those in use, and the folder of their file."""

    def __init__(self, interactions: Sequence[Interaction], used: Container[int], folder: Path) -> None:
        self.interactions, self.used, self.folder = interactions, used, folder

    def reason_of_equal(self, equal: Sequence[int], turn: int | None) -> str:
        """Return the reason why interactions with an equal request do not answer."""
        left = [number for number in equal if number not in self.used]
        if not left:
            times = f"{len(equal)} time{'s' * (len(equal) > 1)}"
            text = f"recorded {times}, asked for {_ordinal(len(equal) + 1)} time"
            return f"  {text}; last: {self._location(equal[-1])}"
        other = self.interactions[left[0]].turn
        now = "another one" if turn is None else f"turn {turn}"
        return f"  it was recorded in turn {other}, and asked in {now}: {self._location(left[0])}"

    def nearest(self, request: Request, matcher: Matcher) -> list[str]:
        """Return lines about the most similar interaction: where it is, and how it differs."""
        asked = _Parts(matcher.canonical(request))
        others = [_Parts(matcher.canonical(one.request)) for one in self.interactions]
        targets = [asked.target_distance(other) for other in others]
        least = min(targets)
        nearest = [number for number, target in enumerate(targets) if target == least]
        compared = sorted(nearest, key=lambda number: number in self.used)[:_COMPARED]

        def rank(number: int) -> tuple[int, bool, float, int]:
            other = others[number]
            return asked.distance(other), number in self.used, -asked.body_similarity(other), number

        best = min(compared, key=rank)
        found = asked.differences(others[best])
        lines = [f"  nearest: {self._location(best)}{', which was used already' * (best in self.used)}"]
        lines += [f"    {difference}" for difference in found[:_SHOWN]]
        more = len(found) - _SHOWN
        if more > 0:
            lines.append(f"    … and {more}{' or more' * (len(found) == _LIMIT)} more")
        return lines

    def _location(self, number: int) -> str:
        line = self.interactions[number].line
        where = f" ({printable(shown_path(self.folder / 'http.yaml'))}:{line})" if line else ""
        return f"interaction {number + 1} of {len(self.interactions)}{where}"


class _Parts:
    """A canonical request, split into target, head and body for comparison."""

    def __init__(self, canonical: dict[str, Any]) -> None:
        self._target = tuple(canonical[field] for field in ("path", "host", "method"))
        query = grouped(canonical["query"] or ())
        self._head = {field: canonical[field] for field in ("method", "host", "path")} | {
            "query": {name: values[0] if len(values) == 1 else values for name, values in query.items()}
        }
        self._body = canonical["body"]

    def target_distance(self, recorded: _Parts) -> int:
        """Return how many of method, host and path differ: 0 to 3."""
        return sum(one != other for one, other in zip(self._target, recorded._target, strict=True))

    def distance(self, recorded: _Parts) -> int:
        """Return the number of differences."""
        return distance(recorded._head, self._head) + distance(recorded._body, self._body)

    def body_similarity(self, recorded: _Parts) -> float:
        """Return the similarity of the bodies, 0 to 1; decides between requests with equally many differences."""
        return similarity(repr(recorded._body), repr(self._body), sample=_SAMPLE)

    def differences(self, recorded: _Parts) -> list[str]:
        """Return one line for each difference."""
        path = "" if isinstance(self._body, dict) and isinstance(recorded._body, dict) else "body"
        head = differences(recorded._head, self._head)
        return [*head, *differences(recorded._body, self._body, path=path, limit=_LIMIT)][:_LIMIT]
