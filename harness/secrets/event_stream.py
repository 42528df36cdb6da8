"""Rewrites the data of server-sent events, and leaves everything else unchanged byte for byte."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_LINE: Final = re.compile(r"([^\r\n]*)(\r\n|\n|\r|\Z)")
_DATA: Final = re.compile(r"\ufeff?data(?::\x20?|\Z)")


def rewrite(text: str, data: Callable[[list[str]], list[str]], rest: Callable[[str], str]) -> str:
    """Rewrite a body of `text/event-stream`, or a part of one.

    `data` is called with the data of all events, and `rest` with each other line. Lines of an event that are no
    longer needed are removed.
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
    texts = ["\n".join(lines[number][0][starts[number] :] for number in event) for event in events]
    for event, old, new in zip(events, texts, data(texts), strict=True):
        if old == new:
            continue
        fresh_lines = new.split("\n")
        for number, line in zip(event, fresh_lines, strict=False):
            lines[number][0] = lines[number][0][: starts[number]] + line
        for number in event[len(fresh_lines) :]:
            lines[number] = ["", ""]
    return "".join(line + ending for line, ending in lines)
