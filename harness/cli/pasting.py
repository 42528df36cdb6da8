"""Answers at a terminal: a line that is typed, or a text that is pasted, which may have several lines.

A terminal that is asked to marks the beginning and the end of what is pasted ("bracketed paste"), so that a line
break in it does not end the answer. Only Enter does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_MARK, _DO_NOT_MARK = "\x1b[?2004h", "\x1b[?2004l"
_BEGIN, _END = "\x1b[200~", "\x1b[201~"
_LOCAL_FLAGS: Final = 3


def read_answer() -> str:
    """Return the answer with the line break at its end.

    Raises:
        EOFError: the input is at its end.
    """
    with _pastes_marked():
        typed = sys.stdin.readline()
        while typed.count(_BEGIN) > typed.count(_END) and (more := sys.stdin.readline()):
            typed += more
    if not typed:
        raise EOFError
    return typed.replace(_BEGIN, "").replace(_END, "")


@contextmanager
def _pastes_marked() -> Iterator[None]:
    """Let the terminal mark what is pasted, and echo the marks as they are: then it does not show them."""
    try:
        import termios
    except ImportError:  # Windows, whose terminal pastes line by line
        yield
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    hidden = [*before]
    hidden[_LOCAL_FLAGS] &= ~termios.ECHOCTL  # which echoes them as ^[[200~
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, hidden)
    print(_MARK, end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print(_DO_NOT_MARK, end="", file=sys.stderr, flush=True)
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
