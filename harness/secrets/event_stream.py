"""Server-sent events as they were written: the data of each can be changed, all else stays byte for byte."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_LINE: Final = re.compile(r"([^\r\n]*)(\r\n|\n|\r|\Z)")
_DATA: Final = re.compile(r"\ufeff?data(?::\x20?|\Z)")


def rewritten(text: str, data: Callable[[list[str]], list[str]], rest: Callable[[str], str]) -> str:
    """A body of `text/event-stream`, or a part of one, with the `data` of all events and the `rest` of lines changed.

    Lines of an event that are no longer needed go.
    """
    lines = [list(match.groups()) for match in _LINE.finditer(text)]
    events: list[list[int]] = []
    starts: dict[int, int] = {}
    fresh = True
    for number, (line, _) in enumerate(lines):
        if (prefix := _DATA.match(line)) is None:
            lines[number][0] = rest(line)
            fresh = fresh or not line
            continue
        starts[number] = prefix.end()
        if fresh:
            events.append([])
        events[-1].append(number)
        fresh = False
    said = ["\n".join(lines[number][0][starts[number] :] for number in event) for event in events]
    for event, old, new in zip(events, said, data(said), strict=True):
        if old == new:
            continue
        fresh_lines = new.split("\n")
        for number, line in zip(event, fresh_lines, strict=False):
            lines[number][0] = lines[number][0][: starts[number]] + line
        for number in event[len(fresh_lines) :]:
            lines[number] = ["", ""]
    return "".join(line + ending for line, ending in lines)
