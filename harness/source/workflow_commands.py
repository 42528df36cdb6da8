"""Escaping of workflow commands of GitHub Actions in printed text.

The runner of a workflow reads the output of a step, and executes `::error::…` at the beginning of a line (after
blanks, too) and `##[error]…` anywhere in it. The reply of a model, or the output of a tool, must not set an
output, mask a word or turn commands off: a backslash is inserted into commands that they contain. Commands of the
harness itself are let through.
"""

from __future__ import annotations

import os
from typing import Final

_BEGINS: Final = "::"
_ANYWHERE: Final = "##["
_KEPT: Final = 64
_ours: set[str] = set()


def in_actions() -> bool:
    """True if a runner of GitHub Actions reads the output of this process."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def allow_command(command: str) -> str:
    """Register the line of a command of the harness, which is not escaped, and return it."""
    _ours.add(command)
    return command


def escape_commands(text: str) -> str:
    """Escape the commands in a text that starts at the beginning of a line."""
    return CommandEscaper(in_actions())(text)


def escape_json_commands(text: str) -> str:
    """Escape the commands in a line of JSON, so that it still parses to the same value."""
    return text.replace(_ANYWHERE, "##\\u005b") if in_actions() else text


class CommandEscaper:
    """Escapes the commands in the text of a stream, piece by piece. A piece may end within a line."""

    def __init__(self, active: bool) -> None:
        self._active = active
        self._line = ""
        """The current line so far, shortened to its beginning and end."""

    def __call__(self, text: str) -> str:
        """Return the next piece, escaped."""
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
    """Shorten a line to the parts that, with the text after it, may form a command."""
    return line if len(line) < _KEPT else line.lstrip()[:2] + line[-2:]
