"""Diagnosis of YAML syntax errors: the location, a plain message, and a hint.

PyYAML reports the position where it stopped, and a reason in terms of its grammar. `syntax_flaw` examines the
text around that position for the mistake that a person would see: a quote or bracket that is never closed, a tab,
a missing blank after a colon, a line with wrong indentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import yaml as pyyaml
from yaml.reader import Reader

from harness.source.display import clip
from harness.source.location import Flaw, Lines, split_lines

_CLOSING: Final = {"[": "]", "{": "}"}
_SHOWN: Final = 40


def syntax_flaw(error: pyyaml.YAMLError, text: str, opened: list[int]) -> Flaw:
    """Return the flaw for a syntax error in `text`. `opened` has the offsets of lists and mappings still open."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        found = Reader.NON_PRINTABLE.search(text)
        start = found.start() if found else 0
        shown = f"U+{ord(found.group()):04X}" if found else "a control character"
        return _flaw(start, f"the character {shown} is not allowed")
    begun = getattr(error, "context_mark", None)
    stop = _Stop(
        text=text,
        at=min(mark.index, len(text.rstrip())),
        begun=begun.index if begun is not None else None,
        problem=str(getattr(error, "problem", "")),
        context=str(getattr(error, "context", "")),
        opened=opened,
    )
    for diagnose in _DIAGNOSES:
        flaw = diagnose(stop)
        if flaw is not None:
            return flaw
    hint = "look at the indentation, the quotes and the brackets here and in the line above"
    return _flaw(stop.at, "this cannot be read", hint)


@dataclass(frozen=True)
class _Stop:
    """A syntax error of the parser.

    Attributes:
        text: the whole text.
        at: the offset at which the parser stopped.
        begun: the offset of the construct that it was reading, or None.
        problem: its description of the error.
        context: its description of the construct.
        opened: the offsets of the lists and mappings that are still open.
    """

    text: str
    at: int
    begun: int | None
    problem: str
    context: str
    opened: list[int]

    @property
    def character(self) -> str:
        return self.text[self.at : self.at + 1]

    @property
    def line_start(self) -> int:
        return self.text.rfind("\n", 0, self.at) + 1

    @property
    def line_end(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end

    @property
    def before(self) -> str:
        """The line up to the position where the parser stopped."""
        return self.text[self.line_start : self.at]

    @property
    def line(self) -> str:
        return self.text[self.line_start : self.line_end]

    @property
    def indentation(self) -> int:
        return len(self.line) - len(self.line.lstrip(" \t"))


def _flaw(start: int, message: str, hint: str = "", *, length: int = 1) -> Flaw:
    return Flaw("syntax", f"not valid YAML: {message}", start, start + length, hint)


# ---------------------------------------------------------------- diagnoses: the first that applies is used


def _tab(stop: _Stop) -> Flaw | None:
    at = stop.line.find("\t", 0, max(stop.indentation, 1))
    if at < 0 and stop.character != "\t":
        return None
    start = stop.line_start + at if at >= 0 else stop.at
    return _flaw(start, "the indentation contains a tab", "indent with spaces: YAML does not allow tabs")


def _quote(stop: _Stop) -> Flaw | None:
    """Diagnose a quote that is never closed, or an unknown escape."""
    if "quoted scalar" not in stop.context or stop.begun is None:
        return None
    if "escape" in stop.problem or "hex" in stop.problem:
        start = stop.text.rfind("\\", 0, stop.at + 1)
        message = f"'{stop.text[start : start + 2]}' is not an escape sequence in double quotes"
        hint = "write '\\\\' for a backslash, or put the text in single quotes"
        return _flaw(start, message, hint, length=2)
    quote = stop.text[stop.begun]
    return _flaw(stop.begun, f"this {quote} is never closed", f"end the text with {quote}")


def _bracket(stop: _Stop) -> Flaw | None:
    """Diagnose a bracket that is never closed, or a missing comma between two items."""
    begun = stop.begun if "flow" in stop.context else None
    at_end = stop.at >= len(stop.text.rstrip()) - 1
    if (begun is None or stop.text[begun : begun + 1] not in _CLOSING) and at_end and stop.opened:
        begun = stop.opened[-1]
    opening = stop.text[begun : begun + 1] if begun is not None else ""
    if begun is None or opening not in _CLOSING:
        return None
    closing = _CLOSING[opening]
    looks_like_a_key = re.match(r"\s*(- )?[\w.-]+:(\s|$)", stop.line) and stop.line_start > begun
    if at_end or looks_like_a_key or stop.character in set("]}") - {closing}:
        return _flaw(begun, f"this '{opening}' is never closed", f"close it with '{closing}'")
    hint = "separate items by ', ', and quote a text that contains one of [ ] { } ,"
    return _flaw(stop.at, f"a ',' or '{closing}' is missing here", hint)


def _stray_closing(stop: _Stop) -> Flaw | None:
    if stop.character not in ("]", "}", ","):
        return None
    return _flaw(stop.at, f"this '{stop.character}' is out of place", "quote it if it is text")


def _after_quote(stop: _Stop) -> Flaw | None:
    """Diagnose text after a closing quote, or a quote in a line above that this one closes."""
    head = stop.before.rstrip()
    if not head.endswith(('"', "'")) or stop.character in ("", "\n") or "flow" in stop.context:
        return None
    quote = head[-1]
    opening = _unclosed_above(stop, quote)
    if opening is not None:
        return _flaw(opening, f"this {quote} is not closed in its line", f"end the text with {quote}")
    hint = "quote the whole text in '…'"
    if quote == "'":
        hint = "quote the whole text, the quotes in it doubled: 'it''s'"
    return _flaw(stop.at, "there is text after the closing quote", hint)


def _unclosed_above(stop: _Stop, quote: str) -> int | None:
    """Return the offset of the last quote in the nearest line above with an odd number of quotes, or None."""
    end = stop.line_start
    while end > 0:
        start = stop.text.rfind("\n", 0, end - 1) + 1
        if stop.text.count(quote, start, end) % 2:
            return stop.text.rfind(quote, start, end)
        end = start
    return None


def _missing_blank(stop: _Stop) -> Flaw | None:
    """Diagnose `key:value`, which is read as one text."""
    starts = [stop.line_start, stop.text.rfind("\n", 0, max(stop.line_start - 1, 0)) + 1]
    for start in starts:
        found = re.compile(r"[ ]*(?:- )?[A-Za-z_][\w-]*(:)(?=[^\s:/]).*").match(stop.text, start)
        if found and ("expected ':'" in stop.problem or "mapping values" in stop.problem):
            colon = found.start(1)
            return _flaw(colon, "a space is missing after this ':'", "write `key: value`")
    return None


def _second_colon(stop: _Stop) -> Flaw | None:
    if "mapping values" not in stop.problem:
        return None
    if re.search(r":\s", stop.before):
        message = "the value of a key contains a second ':'"
        return _flaw(stop.at, message, "quote a text that contains ': '")
    start = stop.line_start + stop.indentation
    above = Lines(stop.text).number(stop.at) - 1
    hint = "wrong indentation, or a text over several lines that has to be quoted"
    message = f"this key is a part of the value in line {above} or above"
    return _flaw(start, message, hint, length=stop.at - start)


def _no_colon(stop: _Stop) -> Flaw | None:
    if "expected ':'" not in stop.problem or stop.begun is None:
        return None
    end = stop.text.find("\n", stop.begun)
    found = stop.text[stop.begun : end if end >= 0 else None].strip()
    message = f"'{clip(found, _SHOWN)}' is not a key with a value: it has no ': '"
    return _flaw(stop.begun, message, "write `key: value`, or `- item` in a list", length=len(found))


def _bad_start(stop: _Stop) -> Flaw | None:
    """Diagnose a text that begins with a character that has another meaning in YAML."""
    start = stop.at
    if any(word in stop.context for word in ("anchor", "alias", "tag", "directive")):
        start = stop.begun if stop.begun is not None else stop.at
    elif "cannot start any token" not in stop.problem and "tag handle" not in stop.problem:
        return None
    character = stop.text[start : start + 1]
    return _flaw(
        start, f"a text cannot begin with '{character}'", f"quote a text that starts with '{character}'"
    )


def _item_after_key(stop: _Stop) -> Flaw | None:
    if "sequence entries are not allowed" not in stop.problem:
        return None
    hint = "begin the list in the line below, or write [a, b]"
    return _flaw(stop.at, "a list cannot begin in the line of its key", hint)


def _block_text(stop: _Stop) -> Flaw | None:
    if "block scalar" not in stop.context:
        return None
    message = "only a comment may follow in the line of '|' or '>'"
    return _flaw(stop.at, message, "begin the text in the line below, indented")


def _indentation(stop: _Stop) -> Flaw | None:
    """Diagnose a line whose indentation fits none above, or a list item among keys, or a key among list items."""
    said = (stop.context, "block"), (stop.problem, "<block end>"), (stop.problem, "document start")
    if not any(words in text for text, words in said):
        return None
    start = stop.line_start + stop.indentation
    content = stop.text[start : stop.line_end].rstrip()
    columns = _columns_above(stop)
    is_item = content.startswith("- ") or content == "-"
    if columns and stop.indentation not in columns:
        shown = _listed([str(column) for column in sorted(columns)])
        message = (
            f"this line is indented by {stop.indentation}, the lines above that it may belong to by {shown}"
        )
        return _flaw(start, message, "wrong indentation", length=len(content))
    if is_item:
        hint = "wrong indentation, or a key is missing above the list"
        return _flaw(start, "a list item is among the keys of a mapping", hint)
    if stop.opened and stop.text[stop.opened[-1]] == "-":
        hint = "wrong indentation, or '- ' is missing in front"
        message = "this line is among the items of a list, but is not an item"
        return _flaw(start, message, hint, length=len(content))
    hint = "wrong indentation, or something is missing in the line above"
    return _flaw(start, "this line does not fit the lines before it", hint, length=len(content))


def _columns_above(stop: _Stop) -> set[int]:
    """Return the indentations of the line above and of its enclosing lines."""
    columns: set[int] = set()
    for line in reversed(split_lines(stop.text[: stop.line_start])):
        column = len(line) - len(line.lstrip(" "))
        if not line.strip() or line.lstrip().startswith("#") or (columns and column >= min(columns)):
            continue
        columns.add(column)
        if line.lstrip().startswith("- ") and len(columns) == 1:
            columns.add(len(line) - len(line.lstrip(" ")[1:].lstrip(" ")))
        if column == 0:
            break
    return columns


def _listed(names: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


_DIAGNOSES: Final[tuple[Callable[[_Stop], Flaw | None], ...]] = (
    _tab,
    _quote,
    _after_quote,
    _bracket,
    _stray_closing,
    _missing_blank,
    _second_colon,
    _no_colon,
    _bad_start,
    _item_after_key,
    _block_text,
    _indentation,
)
