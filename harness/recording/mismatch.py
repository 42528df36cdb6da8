"""Why nothing recorded answers a request: the nearest that was recorded, and what is different."""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any, Final

from harness.errors import CassetteMismatch
from harness.interception.messages import Request
from harness.recording.difference import differences, distance, similarity
from harness.recording.interactions import Interaction
from harness.recording.matching import Matcher
from harness.secrets import bare_url
from harness.source.display import clip, printable
from harness.source.document import shown_path

_SHOWN: Final = 5
_LIMIT: Final = 100  # differences counted
_COMPARED: Final = 40  # interactions held against the request
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
    """The error for a request that nothing in a cassette answers.

    Args:
        request: As it would be recorded, its secrets replaced: parts of it are shown.
        recorded: All the cassette has.
        used: The numbers (from 0) of those that have answered already.
        matcher: What was asked to find the request.
        cassette: Its name.
        folder: Where its http.yaml is.
        record_command: The command that records it again, "" for none.
        turn: The turn the request was made in, None when the recording does not tell turns apart.
    """
    lines = [f"nothing recorded in cassette '{printable(cassette)}' answers {_shown(request)}"]
    key = matcher.key(request)
    equal = [number for number, one in enumerate(recorded) if matcher.key(one.request) == key]
    if equal:
        lines += _used_up(equal, recorded, used, folder, turn)
    elif recorded:
        lines += _nearest(request, recorded, used, matcher, folder)
    else:
        lines.append("  no HTTP request is recorded in it")
    if record_command:
        lines.append(f"  record it again: {record_command}")
    return CassetteMismatch("\n".join(lines))


def _shown(request: Request) -> str:
    """Method and URL, without what may be secret in it."""
    return printable(clip(f"{request.method} {bare_url(request.url)}", _URL))


# ---------------------------------------------------------------- the same request


def _used_up(
    equal: Sequence[int],
    recorded: Sequence[Interaction],
    used: Container[int],
    folder: Path,
    turn: int | None,
) -> list[str]:
    """Why an equal request does not answer this one."""
    left = [number for number in equal if number not in used]
    if not left:
        times = f"{len(equal)} time{'s' * (len(equal) > 1)}"
        said = f"recorded {times}, asked for {_a(len(equal) + 1)} time"
        return [f"  {said}; last: {_place(equal[-1], recorded, folder)}"]
    where = _place(left[0], recorded, folder)
    other = recorded[left[0]].turn
    now = "another one" if turn is None else f"turn {turn}"
    return [f"  it was recorded in turn {other}, and asked in {now}: {where}"]


def _a(number: int) -> str:
    words = {2: "a second", 3: "a third", 4: "a fourth", 5: "a fifth"}
    if number in words:
        return words[number]
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"the {number}{ending}"


def _place(number: int, recorded: Sequence[Interaction], folder: Path) -> str:
    line = recorded[number].line
    where = f" ({printable(shown_path(folder / 'http.yaml'))}:{line})" if line else ""
    return f"interaction {number + 1} of {len(recorded)}{where}"


# ---------------------------------------------------------------- the nearest other request


def _nearest(
    request: Request,
    recorded: Sequence[Interaction],
    used: Container[int],
    matcher: Matcher,
    folder: Path,
) -> list[str]:
    asked = _Parts(matcher.canonical(request))
    others = [_Parts(matcher.canonical(one.request)) for one in recorded]
    order = sorted(range(len(recorded)), key=lambda number: (asked.elsewhere(others[number]), number in used))
    elsewhere = asked.elsewhere(others[order[0]])
    compared = [number for number in order if asked.elsewhere(others[number]) == elsewhere][:_COMPARED]

    def rank(number: int) -> tuple[int, bool, float, int]:
        other = others[number]
        return asked.distance(other), number in used, -asked.likeness(other), number

    best = min(compared, key=rank)
    found = asked.differences(others[best])
    lines = [f"  nearest: {_place(best, recorded, folder)}{', which was used already' * (best in used)}"]
    lines += [f"    {difference}" for difference in found[:_SHOWN]]
    more = len(found) - _SHOWN
    if more > 0:
        lines.append(f"    … and {more}{' or more' * (len(found) == _LIMIT)} more")
    return lines


class _Parts:
    """A canonical request, its parts in the form in which they are compared."""

    def __init__(self, canonical: dict[str, Any]) -> None:
        self._where = tuple(canonical[field] for field in ("path", "host", "method"))
        query: dict[str, Any] = {}
        for name, value in canonical["query"] or ():
            query.setdefault(name, []).append(value)
        self._head = {field: canonical[field] for field in ("method", "host", "path")} | {
            "query": {name: values[0] if len(values) == 1 else values for name, values in query.items()}
        }
        self._body = canonical["body"]

    def elsewhere(self, recorded: _Parts) -> int:
        """How much of method, host and path is different."""
        return sum(one != other for one, other in zip(self._where, recorded._where, strict=True))

    def distance(self, recorded: _Parts) -> int:
        """How many differences there are."""
        return distance(recorded._head, self._head) + distance(recorded._body, self._body)

    def likeness(self, recorded: _Parts) -> float:
        """How much of the bodies is alike, for those with as many differences."""
        return similarity(repr(recorded._body), repr(self._body), sample=_SAMPLE)

    def differences(self, recorded: _Parts) -> list[str]:
        path = "" if isinstance(self._body, dict) and isinstance(recorded._body, dict) else "body"
        head = differences(recorded._head, self._head)
        return [*head, *differences(recorded._body, self._body, path=path, limit=_LIMIT)][:_LIMIT]
