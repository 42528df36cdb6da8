"""The encodings in which a value may occur in text, and the placeholders that replace values.

A value may be plain, escaped for JSON or a URL, in base64, or in hex.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final
from urllib.parse import quote

Edit = tuple[int, int, str]
"""A replacement: start, end, and the new text for text[start:end]."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]+")
_SHORT_ESCAPES: Final = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
# JSON nested in JSON six times has this many backslashes. The bound keeps matching of long runs fast.
_ESCAPE: Final = r"\\{1,63}"
_BASE64: Final = r"[A-Za-z0-9+/_-]"
_PADDING: Final = r"(?:=|%(?:25)*3[dD]|\\+u003[dD]){0,2}"
# A word in which plain characters may be escaped, which only encoders that escape everything do.
_ESCAPED_WORD: Final = re.compile(r"(?<![\w.~\\%-])(?:[\w.~-]|%[0-9A-Fa-f]{2}|\\{1,63}u[0-9A-Fa-f]{4}){6,}+")
_ESCAPED_PLAIN: Final = re.compile(r"(?:%(?:25)*|\\{1,63}u00)(2[dDeE]|3\d|[46][1-9A-Fa-f]|[57][\dAa]|5[fF])")


@dataclass(frozen=True)
class Encoding:
    """A pattern for an encoded value.

    `source` is the regular expression; `probe` is a plain text that every match contains, and is fast to search for.
    """

    probe: str
    source: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source)


def utf8(text: str) -> bytes:
    """Encode a text, also one with surrogates for bytes that are not UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


@lru_cache(maxsize=1024)
def encodings(value: str) -> tuple[Encoding, ...]:
    """Return all encodings of a value, except those that escape plain characters (`unescaped`)."""
    raw = utf8(value)
    found = [Encoding(_probe(value), _escaped(value))]
    for before in range(3):
        found += _base64(raw, before)
    if len(raw) >= 4:
        for digits in (raw.hex(), raw.hex(":")):
            found += [Encoding(probe, f"(?i:{digits})") for probe in sorted({digits, digits.upper()})]
    return tuple(found)


def unescaped(text: str) -> Iterator[Edit]:
    """Yield each word of a text in which plain characters such as letters are escaped, with its unescaped form."""
    if "%" in text or "\\u" in text:
        for word in _ESCAPED_WORD.finditer(text):
            plain = _ESCAPED_PLAIN.sub(lambda escape: chr(int(escape[1], 16)), word[0])
            if plain != word[0]:
                yield word.start(), word.end(), plain


def _probe(text: str) -> str:
    return max(_PLAIN.findall(text), key=len, default="")


def _escaped(value: str) -> str:
    pieces = re.findall(r"\\+|[^\\]", value, re.DOTALL)
    return "".join(_backslashes(piece) if piece[0] == "\\" else _char(piece) for piece in pieces)


def _backslashes(run: str) -> str:
    return rf"(?:\\{{{len(run)},{64 * len(run)}}}|{_percent(run)})"


def _char(char: str) -> str:
    """Return a pattern for a character: plain, escaped for JSON (nested to any depth), or escaped for a URL."""
    if _PLAIN.fullmatch(char):
        return re.escape(char)
    units = char.encode("utf-16-be", "surrogatepass").hex()
    unicode = "".join(rf"{_ESCAPE}u(?i:{units[at : at + 4]})" for at in range(0, len(units), 4))
    options = [
        rf"\\{{0,63}}{re.escape(char)}" if char in "\"'/" else re.escape(char),
        unicode,
        _percent(char),
    ]
    if char in _SHORT_ESCAPES:
        options.append(rf"{_ESCAPE}{_SHORT_ESCAPES[char]}")
    if char == " ":
        options.append(r"\+")
    return f"(?:{'|'.join(options)})"


def _percent(text: str) -> str:
    return "".join(rf"%(?:25)*(?i:{byte:02x})" for byte in utf8(text))


def _base64(raw: bytes, before: int) -> Iterator[Encoding]:
    """Yield the encoding in base64 for a value that starts `before` bytes into a group of three.

    A character that encodes only a part of the value is replaced as well, so that the length of the value does not
    show in the text.
    """
    encoded = b64encode(bytes(before) + raw).decode().rstrip("=")
    shared = (before + len(raw)) % 3 != 0
    core = encoded[(0, 2, 3)[before] : len(encoded) - shared]
    if len(core) < 6:
        return
    source = re.escape(core).replace(r"\+", r"(?:[+-]|%(?:25)*2[bB])")
    source = source.replace("/", r"(?:\\*[/_]|%(?:25)*2[fF])")
    head = rf"(?:(?<![\\%])(?<!%[0-9A-Fa-f]){_BASE64})?" if before else ""
    tail = rf"{_BASE64}?{_PADDING}" if shared else ""
    yield Encoding(max(re.findall(r"[A-Za-z0-9]+", core), key=len, default=""), head + source + tail)


def apply_edits(pieces: list[str], edits: Iterable[Edit]) -> list[str]:
    """Edit a text that is split into pieces.

    A replacement is put into the piece in which it starts, and the replaced text is removed from all pieces. Edits
    are in order and do not overlap.
    """
    edits = list(edits)
    if not edits:
        return pieces
    result, start = [], 0
    last = max((at for at, piece in enumerate(pieces) if piece), default=0)
    for number, piece in enumerate(pieces):
        end, at, parts = start + len(piece), start, []
        for first, after, replacement in edits:
            if after < start or first > end:
                continue
            parts.append(piece[at - start : max(first - start, at - start)])
            if start <= first < end or (first == end and number == last):
                parts.append(replacement)
            at = max(at, min(after, end))
        result.append("".join(parts) + piece[at - start :])
        start = end
    return result


PLACEHOLDER: Final = re.compile(r"(?:<|%3[cC])secret(?::|%3[aA])([A-Za-z0-9_.-]+)(?:>|%3[eE])")
_ANYTHING: Final = r"(\S{1,4096}?)"


def placeholder(name: str) -> str:
    """Return the placeholder of a secret with this name."""
    return f"<secret:{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:100]}>"


def placeholders_in(text: str) -> set[str]:
    """Return the placeholders in a text, in the form of `placeholder`."""
    return {placeholder(name) for name in PLACEHOLDER.findall(text)}


def has_placeholder(text: str) -> bool:
    """True if the text has a placeholder."""
    return PLACEHOLDER.search(text) is not None


def quoted_placeholder(name: str) -> str:
    """Return the placeholder of a secret, percent-encoded for a URL."""
    return quote(placeholder(name), safe="")


def quoted_placeholders(text: str) -> str:
    """Percent-encode all placeholders in the text of a URL."""
    return PLACEHOLDER.sub(lambda mark: quoted_placeholder(mark.group(1)), text)


def match_placeholders(recorded: Any, asked: Any) -> dict[str, str] | None:
    """Match the placeholders in `recorded` with the texts in `asked`.

    Returns:
        The texts by the names of the placeholders; None if there are no placeholders to match, or if the two values
        differ in anything else.
    """
    found: dict[str, str] = {}
    return found if _matches(recorded, asked, found) and found else None


def _matches(recorded: Any, asked: Any, found: dict[str, str]) -> bool:
    if isinstance(recorded, str) and isinstance(asked, str):
        return recorded == asked or _text_matches(recorded, asked, found)
    if isinstance(recorded, Mapping) and isinstance(asked, Mapping):
        return recorded.keys() == asked.keys() and all(
            _matches(recorded[key], asked[key], found) for key in recorded
        )
    if isinstance(recorded, list | tuple) and isinstance(asked, list | tuple):
        return len(recorded) == len(asked) and all(
            _matches(one, other, found) for one, other in zip(recorded, asked, strict=True)
        )
    return bool(recorded == asked)


def _text_matches(recorded: str, asked: str, found: dict[str, str]) -> bool:
    parts = PLACEHOLDER.split(recorded)
    names = parts[1::2]
    if not names:
        return False
    pattern = "".join(re.escape(part) if at % 2 == 0 else _ANYTHING for at, part in enumerate(parts))
    match = re.fullmatch(pattern, asked)
    if match is None:
        return False
    pairs = zip(names, match.groups(), strict=True)
    return all(found.setdefault(name, value) == value for name, value in pairs)
