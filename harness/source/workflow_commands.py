"""Printed text on which the runner of GitHub Actions does not act.

The runner reads what a step prints, and runs `::error::…` at the beginning of a line (blanks before it do not
matter) and `##[error]…` anywhere in it. A model's reply, or whatever a tool prints, must set no output, mask no word
and turn no command off: a backslash breaks those it contains. Commands of the harness itself are let through.
"""

from __future__ import annotations

import os
from typing import Final

_BEGINS: Final = "::"
_ANYWHERE: Final = "##["
_KEPT: Final = 64
_ours: set[str] = set()


def in_actions() -> bool:
    """True if the output of this process is read by a runner of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def let_through(command: str) -> str:
    """The line of a command, on which the runner is to act."""
    _ours.add(command)
    return command


def inert(text: str) -> str:
    """The text, from the beginning of a line on, with nothing in it on which a runner acts."""
    return Inert(in_actions())(text)


def inert_json(text: str) -> str:
    """A line of JSON on which a runner does not act; it is still the same JSON."""
    return text.replace(_ANYWHERE, "##\\u005b") if in_actions() else text


class Inert:
    """Makes the text of a stream inert, in pieces that need not be lines."""

    def __init__(self, active: bool) -> None:
        self._active = active
        self._line = ""
        """The beginning and the end of the line so far."""

    def __call__(self, text: str) -> str:
        """The next piece."""
        if not self._active or not text:
            return text
        return "".join(map(self._piece, text.splitlines(keepends=True)))

    def _piece(self, piece: str) -> str:
        if not self._line and piece.rstrip("\r\n") in _ours:
            return piece
        before = len(self._line)
        line = self._line + piece
        begins = len(line) - len(line.lstrip())
        if line.startswith(_BEGINS, begins):
            line = f"{line[: begins + 1]}\\{line[begins + 1 :]}"
        line = line.replace(_ANYWHERE, "##\\[")
        self._line = "" if piece.endswith(("\n", "\r")) else _ends(line)
        return line[before:]


def _ends(line: str) -> str:
    """As much of a line as tells whether what follows makes a command of it."""
    return line if len(line) < _KEPT else line.lstrip()[:2] + line[-2:]
