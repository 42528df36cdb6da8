"""Texts of runs that are embedded in the page, up to a limit: details and traces."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.report.encoding import encode
from harness.report.html.scenarios import details

Line = Mapping[str, Any]


def details_of(line: Line) -> str:
    """Return the details of a run, as JSON."""
    return encode(details(line))


def trace_of(report: Path, line: Line) -> str:
    """Return the trace file of a run (gzip) in base64; "" if there is none."""
    if not line.get("trace"):
        return ""
    try:
        return base64.b64encode((report / line["trace"]).read_bytes()).decode()
    except OSError:
        return ""


class EmbeddedTexts:
    """Texts of runs up to a total length; those of runs that did not pass have priority.

    At most twice the limit is held in memory.
    """

    def __init__(self, most: int, text_of: Callable[[Line], str]) -> None:
        self._most, self._text_of = most, text_of
        self._kept: dict[bool, dict[int, str]] = {True: {}, False: {}}
        self._size = {True: 0, False: 0}
        self._full = {True: False, False: False}
        self.left_out = 0

    def add(self, number: int, line: Line, *, first: bool) -> None:
        """Keep the text of a line if there is room. `first` gives it priority."""
        if not self._full[first]:
            text = self._text_of(line)
            if not text:
                return
            self._size[first] += len(text)
            self._full[first] = self._size[first] > self._most
        if self._full[first]:
            self.left_out += 1
        else:
            self._kept[first][number] = text

    def texts(self) -> dict[int, str]:
        """Return the texts that fit, by line number."""
        chosen, size = dict(self._kept[True]), sum(map(len, self._kept[True].values()))
        for number, text in self._kept[False].items():
            size += len(text)
            if size > self._most:
                self.left_out += len(self._kept[True]) + len(self._kept[False]) - len(chosen)
                break
            chosen[number] = text
        return dict(sorted(chosen.items()))
