"""The bodies of requests and responses: decompressed and decoded, split into parts, rewritten event by event."""

from __future__ import annotations

import codecs
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from harness.secrets.encodings import utf8

_CHARSET: Final = re.compile(r"charset\s*=\s*\"?([\w.:-]+)", re.IGNORECASE)
_MAX_BYTES: Final = 64 * 1024 * 1024
_WINDOWS: Final = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}


def decompressed(body: bytes, encoding: str) -> bytes:
    """Decompress a body; return it unchanged if it cannot be decompressed or is too long."""
    windows = _WINDOWS.get(encoding.strip().lower(), (31,) if body.startswith(b"\x1f\x8b") else ())
    for bits in windows:
        unpack = zlib.decompressobj(bits)
        try:
            plain = unpack.decompress(body, _MAX_BYTES)
        except zlib.error:
            continue
        if unpack.eof:
            return plain
    return body


def decode_body(body: bytes, content_type: str) -> tuple[str, str]:
    """Return the text of a body and its codec; the codec "" is UTF-8 with invalid bytes as surrogates."""
    stated = _CHARSET.search(content_type)
    marked = body[:3] == codecs.BOM_UTF8 or body[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    guessed = json.detect_encoding(body[:64]) if marked or b"\x00" in body[:64] else ""
    for codec in (guessed, stated[1] if stated else ""):
        try:
            if codec and codecs.lookup(codec).name not in ("utf-8", "ascii"):
                text = body.decode(codec)
                if text.encode(codec) == body:
                    return text, codec
        except (LookupError, ValueError):
            continue
    return body.decode("utf-8", "surrogateescape"), ""


def encode_body(text: str, codec: str) -> bytes:
    """Return the bytes of a text in a codec returned by `decode_body`."""
    try:
        return text.encode(codec) if codec else utf8(text)
    except UnicodeEncodeError:
        return utf8(text)


_BOUNDARY: Final = re.compile(r";\s*boundary\s*=\s*(?:\"([^\"]+)\"|([^\s;]+))", re.IGNORECASE)
_FIRST_LINE: Final = re.compile(r"(?:\r?\n)*--([!-~][ -~]{0,69}?)[ \t]*\r?\n")
_HEAD: Final = re.compile(r"\r?\n((?:[^\r\n]+\r?\n)*)\r?\n")
_NAME: Final = re.compile(
    r";\s*name(?:\*\s*=\s*(?:[\w-]*'[^';]*')?([^;\s]+)|\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([^;\s\"]+)))",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Part:
    """A part of a multipart body, or the text before, between or after parts; then `lines` is "".

    lines  the headers as written
    body   the text after the headers
    """

    lines: str
    body: str

    @property
    def headers(self) -> dict[str, str]:
        """The headers, by name in lower case."""
        pairs = (line.partition(":") for line in self.lines.splitlines())
        return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}

    @property
    def name(self) -> str:
        """The name of the form field; "" if the part is none."""
        found = _NAME.search(self.headers.get("content-disposition", ""))
        if found is None:
            return ""
        extended, in_quotes, bare = found.groups()
        if in_quotes is not None:
            return re.sub(r"\\(.)", r"\1", unquote(in_quotes))
        return unquote(extended) if extended else bare


def parts(text: str, content_type: str) -> list[Part]:
    """Split a body into parts. The concatenation of `lines` and `body` of all parts is the text."""
    stated = _BOUNDARY.search(content_type)
    boundary = (stated[1] or stated[2]) if stated else None
    if boundary is None:
        first = _FIRST_LINE.match(text)
        boundary = first[1] if first else None
    if boundary is None:
        return [Part("", text)]
    delimiter = re.compile(rf"((?:\A|\r?\n)--{re.escape(boundary)}(?:--)?[ \t]*(?=\r?\n|\Z))")
    found = []
    for number, piece in enumerate(delimiter.split(text)):
        head = _HEAD.match(piece) if number and number % 2 == 0 else None
        end = head.end() if head else 0
        found.append(Part(piece[:end], piece[end:]))
    return found


_LINE: Final = re.compile(r"([^\r\n]*)(\r\n|\n|\r|\Z)")
_DATA: Final = re.compile(r"\ufeff?data(?::\x20?|\Z)")


def rewrite_events(text: str, data: Callable[[list[str]], list[str]], rest: Callable[[str], str]) -> str:
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
