"""The encodings in which a value may occur in text, and the placeholders that replace values.

A value may be plain, in upper or lower case, escaped for JSON, HTML or a URL, in base64 (also twice, or of compressed
data), in hex, or cut by an ellipsis.
"""

from __future__ import annotations

import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from html.entities import codepoint2name
from typing import Any, Final
from urllib.parse import quote, unquote

Edit = tuple[int, int, str]
"""A replacement: start, end, and the new text for text[start:end]."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]+")
_SHORT_ESCAPES: Final = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
# JSON nested in JSON six times has this many backslashes. The bound keeps matching of long runs fast.
_ESCAPE: Final = r"\\{1,63}"
_BASE64: Final = r"[A-Za-z0-9+/_-]"
_PADDING: Final = r"(?:=|%(?:25)*3[dD]|\\+u003[dD]){0,2}"
# A word in which plain characters may be escaped, which only encoders that escape everything do.
_ESCAPED_WORD: Final = re.compile(
    r"(?<![\w.~\\%-])(?:[\w.~-]|%[0-9A-Fa-f]{2}|\\{1,63}u[0-9A-Fa-f]{4}|&#\d{2,3};){6,}+"
)
_ESCAPED_PLAIN: Final = re.compile(
    r"(?:%(?:25)*|\\{1,63}u00)(2[dDeE]|3\d|[46][1-9A-Fa-f]|[57][\dAa]|5[fF])"
    r"|&#0?(4[568]|49|5[0-7]|6[5-9]|[78]\d|9[05789]|1[01]\d|12[012]);"
)


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
def encodings(value: str, *, generated: bool = False) -> tuple[Encoding, ...]:
    """Return all encodings of a value, except those that must be undone to find it (`unescaped`, `unpacked`).

    The case of letters, and a part beside a cut, only identify a value that looks `generated`.
    """
    lines = value.replace("\\n", "\n")  # as a program reads a key from a variable
    found = [Encoding(_probe(text), _escaped(text)) for text in dict.fromkeys((value, lines))]
    for raw in dict.fromkeys((utf8(value), utf8(lines))):
        for once in _base64(raw):
            found += [once.encoding, *(twice.encoding for twice in _base64(once.core.encode()))]
        if len(raw) >= 4:
            for digits in (raw.hex(), raw.hex(":")):
                found += [Encoding(probe, f"(?i:{digits})") for probe in sorted({digits, digits.upper()})]
    if generated:
        other_cases = dict.fromkeys((value.upper(), value.lower())).keys() - {value}
        found += [Encoding(_probe(text), _escaped(text)) for text in sorted(other_cases)]
        found += _cut(value)
    return tuple(found)


_CUT: Final = r"(?:…|\.\.\.|\\u2026)"
_LEFT: Final = 6
"""A part of a value that a cut has left is replaced if it has this length."""


def _cut(value: str) -> Iterator[Encoding]:
    """Yield the encodings of a value that ends or begins with an ellipsis."""
    for size in range(_LEFT, min(len(value), 2 * _LEFT)):
        if len(probe := _probe(head := value[:size])) >= 4:
            yield Encoding(probe, rf"{_escaped(head)}[^\s…]{{0,{2 * len(value)}}}?(?={_CUT})")
            break
    for size in range(_LEFT, min(len(value), 2 * _LEFT)):
        if len(probe := _probe(tail := value[-size:])) >= 4:
            before = r"(?:(?<=…)|(?<=\.\.\.)|(?<=\\u2026))"
            yield Encoding(probe, rf"{before}[^\s…]{{0,{2 * len(value)}}}?{_escaped(tail)}")
            break


def unpacked(text: str) -> Iterator[Edit]:
    """Yield each part of a text that is compressed data in base64, with the text in it."""
    # The longer sign is only sought if its rarest letter is there, which is much faster.
    if ("H" in text and "H4sI" in text) or ("J" in text and "eJ" in text):
        for packed in _PACKED.finditer(text):
            if plain := _unpacked(packed[0]):
                yield *packed.span(), plain


_PACKED: Final = re.compile(r"(?<![A-Za-z0-9+/_-])(?:H4sI|eJ)(?:[A-Za-z0-9+/_-]|\\/|%2[BbFf]){16,}+={0,2}")
"""Data that was compressed by gzip or zlib, in base64."""
_LARGEST: Final = 16 << 20


def _unpacked(text: str) -> str:
    """Return the text in compressed data in base64; "" if it is something else."""
    text = text.replace("\\/", "/").replace("-", "+").replace("_", "/")
    try:
        data = b64decode(unquote(text).rstrip("=") + "==")
        return zlib.decompressobj(47).decompress(data, _LARGEST).decode("utf-8", "surrogateescape")
    except (ValueError, zlib.error):
        return ""


def unescaped(text: str) -> Iterator[Edit]:
    """Yield each word of a text in which plain characters such as letters are escaped, with its unescaped form."""
    if "%" in text or ("\\" in text and "\\u" in text) or ("&" in text and "&#" in text):
        for word in _ESCAPED_WORD.finditer(text):
            plain = _ESCAPED_PLAIN.sub(_char_of, word[0])
            if plain != word[0]:
                yield word.start(), word.end(), plain


def _char_of(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16) if escape[1] else int(escape[2]))


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
    if ord(char) < 128:
        names = f"|{codepoint2name[ord(char)]}" if ord(char) in codepoint2name else ""
        options.append(rf"&(?:amp;)?(?:\#0*{ord(char)}|\#[xX]0*(?i:{ord(char):x}){names});")
    if char in _SHORT_ESCAPES:
        options.append(rf"{_ESCAPE}{_SHORT_ESCAPES[char]}")
    if char == " ":
        options.append(r"\+")
    return f"(?:{'|'.join(options)})"


def _percent(text: str) -> str:
    return "".join(rf"%(?:25)*(?i:{byte:02x})" for byte in utf8(text))


@dataclass(frozen=True)
class _Base64:
    """A value in base64: the characters that depend on it alone, and the pattern for them and those around."""

    core: str
    encoding: Encoding


def _base64(raw: bytes) -> Iterator[_Base64]:
    """Yield the encodings in base64 for a value that starts 0, 1 or 2 bytes into a group of three.

    A character that encodes only a part of the value is replaced as well, so that the length of the value does not
    show in the text.
    """
    for before in range(3):
        encoded = b64encode(bytes(before) + raw).decode().rstrip("=")
        shared = (before + len(raw)) % 3 != 0
        core = encoded[(0, 2, 3)[before] : len(encoded) - shared]
        if len(core) < 6:
            continue
        source = re.escape(core).replace(r"\+", r"(?:[+-]|%(?:25)*2[bB])")
        source = source.replace("/", r"(?:\\*[/_]|%(?:25)*2[fF])")
        head = rf"(?:(?<![\\%])(?<!%[0-9A-Fa-f]){_BASE64})?" if before else ""
        tail = rf"{_BASE64}?{_PADDING}" if shared else ""
        probe = max(re.findall(r"[A-Za-z0-9]+", core), key=len, default="")
        yield _Base64(core, Encoding(probe, head + source + tail))


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
