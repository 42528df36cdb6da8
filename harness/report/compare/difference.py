"""A difference between two traces, as it is read and as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from harness.report.compare.values import ABSENT
from harness.report.compare.words import diff_lines
from harness.report.encoding import encode
from harness.source.display import clip

_MAX_LENGTH: Final = 400
_MAX_VALUE: Final = 10_000


class Part(NamedTuple):
    """A place that differs: what it is called, and the values there (`ABSENT` for none).

    The words of texts are compared, unless they are sentences of ours (`is_whole`).
    """

    place: str
    before: Any
    after: Any
    is_whole: bool = False

    @property
    def lines(self) -> list[str]:
        """What differs, as lines of a diff (`harness.report.compare.words`)."""
        if isinstance(self.before, str) and isinstance(self.after, str) and not self.is_whole:
            return diff_lines(self.before, self.after)
        found = [f"- {_shown(self.before)}"] if self.before is not ABSENT else []
        return found + ([f"+ {_shown(self.after)}"] if self.after is not ABSENT else [])


@dataclass(frozen=True)
class Difference:
    """The first event where two traces differ.

    kind     input, route, prompt, request, reply, call, result, state, pause, warning, error, end, order or time
    what     what differs, in words
    node     the path of the node that it happened in, or left; "" for none
    edge     of a route that differs, both ends; None otherwise
    before   when it happened in the earlier run, in virtual seconds; None where that had ended; `after` in the later
    parts    what differs; `more` is how many there are besides
    slower   what took another time before that, in words; "" for nothing
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
        """The difference as data."""
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
    """A value as JSON has it: the beginning of the text of one that is large."""
    text = value if isinstance(value, str) else encode(value)
    return (
        value
        if len(text) <= _MAX_VALUE
        else f"{text[:_MAX_VALUE]}… ({len(text) - _MAX_VALUE:,} more characters)"
    )
