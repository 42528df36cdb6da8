"""Decompresses and decodes the bodies of requests and responses."""

from __future__ import annotations

import codecs
import json
import re
import zlib
from typing import Final

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
