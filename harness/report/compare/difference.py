"""A difference between two traces, as lines of text and as JSON data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from harness.report.compare.text_diff import diff_lines
from harness.report.compare.values import ABSENT
from harness.report.encoding import encode
from harness.source.display import clip

_MAX_LENGTH: Final = 400
_MAX_VALUE: Final = 10_000


class Part(NamedTuple):
    """A place where two events differ, with both values (`ABSENT` for a missing one).

    Texts are compared by words, unless they are sentences written by this package (`is_whole`).
    """

    place: str
    before: Any
    after: Any
    is_whole: bool = False

    @property
    def lines(self) -> list[str]:
        """The difference as lines of a diff (`harness.report.compare.text_diff`)."""
        if isinstance(self.before, str) and isinstance(self.after, str) and not self.is_whole:
            return diff_lines(self.before, self.after)
        found = [f"- {_shown(self.before)}"] if self.before is not ABSENT else []
        return found + ([f"+ {_shown(self.after)}"] if self.after is not ABSENT else [])


@dataclass(frozen=True)
class Difference:
    """The first event where two traces differ.

    kind     input, route, prompt, request, reply, call, result, state, pause, warning, error, end, order or time
    what     a short description of what differs
    node     the path of the node in which it happened, or which the route leaves; "" for none
    before   the time of the event in the earlier run, in virtual seconds; None if that run had ended
    after    the same in the later run
    parts    the places that differ
    more     the number of further places
    edge     for a route, both of its ends; None otherwise
    slower   a description of an earlier difference in time; "" for none
    """

    kind: str
    what: str
    node: str
    before: float | None
    after: float | None
    parts: Sequence[Part]
    more: int = 0
    edge: tuple[str, str] | None = None
    slower: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the difference as JSON data."""
        return {
            "kind": self.kind,
            "what": self.what,
            "node": self.node or None,
            "at": {"before": self.before, "after": self.after},
            "parts": [
                {
                    "place": part.place,
                    **{
                        side: None if value is ABSENT else _bounded(value)
                        for side, value in (("before", part.before), ("after", part.after))
                    },
                    "diff": part.lines,
                }
                for part in self.parts
            ],
            "more": self.more,
            "times": self.slower or None,
        }


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else encode(value)
    return clip(" ".join(text.split("\n")), _MAX_LENGTH)


def _bounded(value: Any) -> Any:
    """Return a value for JSON: a large one becomes the beginning of its text."""
    text = value if isinstance(value, str) else encode(value)
    return (
        value
        if len(text) <= _MAX_VALUE
        else f"{text[:_MAX_VALUE]}… ({len(text) - _MAX_VALUE:,} more characters)"
    )
