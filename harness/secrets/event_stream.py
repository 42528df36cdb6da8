"""Server-sent events as they were written: the data of each can be changed, all else stays byte for byte."""

from __future__ import annotations

import re

_LINE = re.compile(r"([^\r\n]*)(\r\n|\n|\r|\Z)")
_DATA = re.compile(r"\ufeff?data(?::\x20?|\Z)")


class EventStream:
    """A body of `text/event-stream`, or a part of one.

    `events` has for each event the numbers of its lines of data, `rest` the numbers of all other lines.
    """

    def __init__(self, text: str) -> None:
        found = [match.groups() for match in _LINE.finditer(text)]
        self._lines = [line for line, _ in found]
        self._endings = [ending for _, ending in found]
        self.events: list[list[int]] = []
        self.rest: list[int] = []
        fresh = True
        for number, line in enumerate(self._lines):
            if not _DATA.match(line):
                self.rest.append(number)
                fresh = fresh or not line
            elif fresh:
                self.events.append([number])
                fresh = False
            else:
                self.events[-1].append(number)

    def line(self, number: int) -> str:
        """What a line says; of a line of data, its data alone."""
        return self._lines[number][self._prefix(number) :]

    def write(self, number: int, text: str) -> None:
        """Say something else in a line."""
        self._lines[number] = self._lines[number][: self._prefix(number)] + text

    def data(self, event: list[int]) -> str:
        """The data of an event, its lines joined."""
        return "\n".join(self.line(number) for number in event)

    def write_data(self, event: list[int], data: str) -> None:
        """Change the data of an event. Lines that are no longer needed go."""
        lines = data.split("\n")
        for number, line in zip(event, lines, strict=False):
            self.write(number, line)
        for number in event[len(lines) :]:
            self._lines[number] = self._endings[number] = ""

    def __str__(self) -> str:
        return "".join(line + ending for line, ending in zip(self._lines, self._endings, strict=True))

    def _prefix(self, number: int) -> int:
        prefix = _DATA.match(self._lines[number])
        return prefix.end() if prefix else 0
