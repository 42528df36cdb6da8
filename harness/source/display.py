"""Text for display: what is unsafe or too long in it, suggestions of similar words, and excerpts of files.

Workflow commands of GitHub Actions in text of unknown origin are escaped, so that the runner does not obey them.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Any, Final

from harness.errors import Problem, Span
from harness.source.location import split_lines

_UNSEEN: Final = re.compile("VARIATION SELECTOR|HANGUL .*FILLER|GRAPHEME JOINER|VOWEL INHERENT")
"""In the names of characters that are drawn as nothing, though Unicode counts them as letters and marks."""
_JOINERS: Final = "\u200c\u200d"
_STYLES: Final = "\ufe0e\ufe0f"
_JOINED: Final = re.compile("Lo|M.|S.")
_STYLED: Final = re.compile("S.|Po|Pd")
_KEYCAP: Final = "\u20e3"


def printable(text: str, *, keep_newlines: bool = False) -> str:
    r"""Return the text without characters that a terminal or an XML parser would act on, or that nobody sees.

    Control and format characters (including escape sequences, those that change the writing direction or have no
    width, and tags), private and unassigned ones, lone surrogates and others that are drawn as nothing become visible
    escapes such as `\x1b`. A joiner between two letters or symbols of a script or an emoji that needs it stays, and
    so does the style of a symbol. Unless `keep_newlines`, line breaks and tabs become one space.

    >>> printable("a\x1b[31m\nb\u200b")
    'a\\x1b[31m b\\u200b'
    """
    if text.isascii() and text.isprintable():
        return text
    if keep_newlines:
        return "\n".join(printable(line) for line in text.split("\n"))
    line = re.sub(r"[\r\n\t]+", " ", text)
    return "".join(
        character.encode("unicode_escape").decode()
        if _is_unsafe(character) and not _joins(line, at)
        else character
        for at, character in enumerate(line)
    )


@lru_cache(maxsize=4096)
def _is_unsafe(character: str) -> bool:
    """True by the category in Unicode, so that characters of later versions are covered."""
    kind = unicodedata.category(character)
    return kind[0] == "C" or kind in ("Zl", "Zp") or bool(_UNSEEN.search(unicodedata.name(character, "")))


def _joins(text: str, at: int) -> bool:
    """True for one joiner between two letters of such scripts or two symbols, and for the style of one symbol.

    A letter with case (Latin, Greek, Cyrillic) is joined to nothing, nor is another joiner.
    """
    if text[at] not in _JOINERS + _STYLES or at == 0:
        return False
    before, after = text[at - 1], text[at + 1 : at + 2]
    if text[at] in _JOINERS:
        return after != "" and all(_JOINED.match(unicodedata.category(each)) for each in (before, after))
    return after == _KEYCAP or bool(_STYLED.match(unicodedata.category(before)))


def clip(text: str, limit: int) -> str:
    """Shorten the text to at most `limit` characters, with an ellipsis if it was cut.

    >>> clip("classification", 9)
    'classifi…'
    """
    return text if len(text) <= limit else text[: max(limit - 1, 0)].rstrip() + "…"


def truncated(value: Any, limit: int) -> Any:
    """Truncate JSON data to as much as a text of `limit` characters needs: rendering all of it may take minutes.

    >>> truncated([[1, 2], "abc", 3], 5)
    [[1, 2], 'abc']
    """
    return _truncated(value, limit, [limit])


def _truncated(value: Any, limit: int, left: list[int]) -> Any:
    """Truncate a part of the data. `left` has the number of characters that remain for it and what follows."""
    left[0] -= 1
    if isinstance(value, str):
        left[0] -= len(value)
        return value if len(value) <= limit else value[: limit + 1]
    if isinstance(value, Mapping):
        pairs = {}
        for key, item in value.items():
            if left[0] <= 0:
                break
            pairs[key if not isinstance(key, str) else _truncated(key, limit, left)] = _truncated(
                item, limit, left
            )
        return pairs
    if isinstance(value, list | tuple):
        items = []
        for item in value:
            if left[0] <= 0:
                break
            items.append(_truncated(item, limit, left))
        return items
    return value


def columns(text: str) -> int:
    """Return the width of the text in columns of a terminal."""
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


_LISTED = 20
_FEW = 5
_CUTOFF = 0.6
_SURE = 0.75


def nearest(word: object, options: Iterable[object], *, cutoff: float = _CUTOFF) -> str | None:
    """Return the option most similar to `word`, ignoring case, or None if none is similar enough.

    All are compared as texts, since keys of YAML may be numbers. `cutoff` is the least similarity; with 1, only
    equal words match.
    """
    known = sorted({str(option) for option in options})
    by_lower = {option.lower(): option for option in reversed(known)}
    sought = str(word).lower()
    found = get_close_matches(sought, list(by_lower), n=_FEW, cutoff=cutoff)
    return next((by_lower[option] for option in found if _likely(sought, option)), None)


def _likely(word: str, option: str) -> bool:
    """True if an option is a plausible suggestion: it has the same first letter, or is very similar."""
    if word[:1] == option[:1] or word in option or option in word:
        return True
    return bool(get_close_matches(word, [option], n=1, cutoff=_SURE))


def did_you_mean(
    word: object,
    options: Sequence[object] | Mapping[Any, Any],
    *,
    cutoff: float = _CUTOFF,
    listing: bool = True,
) -> str:
    """Return a hint: `did you mean 'reply'?`, else (with `listing`) `known: a, b, c`, else "".

    The list has at most 20 options, in the order given (so do not pass a set).
    """
    known = list(dict.fromkeys(map(str, options)))
    found = nearest(word, known, cutoff=cutoff)
    if found is not None:
        return f"did you mean '{found}'?"
    if not known or not listing:
        return ""
    return f"known: {', '.join(known[:_LISTED])}{', …' if len(known) > _LISTED else ''}"


def nearest_names(word: str, names: Iterable[str]) -> str:
    """Return a hint for long names, such as those of scenarios: the nearest, else a few, one per line."""
    known = list(dict.fromkeys(names))
    found = nearest(word, known)
    if found is not None or not known:
        return f"did you mean '{found}'?" if found is not None else ""
    few = get_close_matches(word, known, n=_FEW, cutoff=0)
    more = len(known) - len(few)
    lines = ["there are:", *few, *([f"… and {more} more"] if more else [])]
    return "\n      ".join(lines)


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


_INDENT: Final = "    "
_WIDTH: Final = 100
_BEFORE: Final = 40
_AROUND: Final = 60
"""The lines before and after an excerpt that may tell what is secret in it: those of a key in PEM."""
_LARGEST: Final = 20_000_000
"""The size in bytes of the largest file whose lines are shown."""


Hide = Callable[[list[str]], list[str]]
"""Replaces the secrets in a text that is given in pieces: each is replaced in the piece in which it starts."""


def render(problem: Problem, hide: Hide, text: str | None = None) -> str:
    """Render a problem: `file:line:column: message`, the source line with its caret, and the hint.

    `text` is the text of the file. Without it the file is read; if that fails, the line is left out.
    """
    prefix = f"{problem.span}: " if problem.span else ""
    parts = [f"{prefix}{problem.message}"]
    shown = excerpt(problem.span, hide, text) if problem.span else ""
    if shown:
        parts.append(shown)
    if problem.hint:
        parts.append(_INDENT + problem.hint)
    return "\n".join(parts)


def excerpt(span: Span, hide: Hide, text: str | None = None) -> str:
    """Return the line of `span`, indented, with `^~~~` under the span; "" if the line is empty or does not exist.

    Long lines are cut around the span. Control characters are shown as `·`. Secrets are hidden before the line is
    taken out of its file and cut, since what tells that a value is one may be before it.
    """
    lines = _lines_of(span) if text is None else split_lines(text)
    if not 0 < span.line <= len(lines) or not lines[span.line - 1].strip():
        return ""
    source = lines[span.line - 1]
    start = min(max(span.column - 1, 0), len(source))
    end = min(start + max(span.length, 1), max(len(source), start + 1))
    source, start, end = _hidden(lines, span.line - 1, start, end, hide)
    if not source.strip():
        return ""
    source, start, end = cut_around(source, start, end)
    source = "".join(c if c.isprintable() or c == "\t" else "·" for c in source)
    before = "".join("\t" if c == "\t" else " " * columns(c) for c in source[:start])
    marked = columns(source[start:end]) or 1
    return f"{_INDENT}{source.rstrip()}\n{_INDENT}{before}^{'~' * (marked - 1)}"


def _hidden(lines: Sequence[str], at: int, start: int, end: int, hide: Hide) -> tuple[str, int, int]:
    """Return a line without secrets, and the new offsets of a part of it."""
    before = "".join(f"{line}\n" for line in lines[max(0, at - _AROUND) : at])
    after = "".join(f"\n{line}" for line in lines[at + 1 : at + _AROUND])
    line = lines[at]
    _, head, marked, tail, _ = hide([before, line[:start], line[start:end], line[end:], after])
    return head + marked + tail, len(head), len(head) + len(marked)


def cut_around(source: str, start: int, end: int, width: int = _WIDTH) -> tuple[str, int, int]:
    """Cut a line to about `width` characters around the part from `start` to `end`; return it and the new offsets."""
    if len(source) <= width:
        return source, start, end
    before = min(_BEFORE, width // 2)
    first = max(0, start - before) if start > width - before else 0
    last = min(len(source), first + width)
    head, tail = "…" if first else "", "…" if last < len(source) else ""
    shift = len(head) - first
    return head + source[first:last] + tail, start + shift, min(end, last) + shift


def _lines_of(span: Span) -> list[str]:
    try:
        path = Path(span.file)
        folder = os.path.join(os.path.realpath(path.parent), "")
        if path.is_symlink() and not os.path.realpath(path).startswith(folder):
            return []  # a link in a stranger's project may lead to a private file
        found = path.stat()
        if not S_ISREG(found.st_mode) or found.st_size > _LARGEST:
            return []
        return _lines(path.absolute(), found.st_mtime_ns, found.st_size)
    except (OSError, ValueError):
        return []


@lru_cache(maxsize=8)
def _lines(path: Path, _modified_ns: int, _size: int) -> list[str]:
    """Return the lines of a file. Cached, as a file with one problem often has many."""
    return split_lines(path.read_text(encoding="utf-8-sig"))
