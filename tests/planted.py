"""Search for a planted secret in written data: in plain text, or in an encoding that anyone can undo."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, quote_plus

GZIP = b"\x1f\x8b"
_TRACE_IN_A_PAGE = re.compile(rb'id="trace-\d+">([^<]*)</script>')


def encodings(secret: str) -> dict[str, list[bytes]]:
    """Return the encodings of a secret by name. For base64: the part that any longer text contains."""
    raw = secret.encode()
    quoted = [quote(secret, safe=""), quote(secret), quote_plus(secret)]
    escaped = [json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)]
    return {
        "raw": [raw, *_encoded(secret, "utf-16-le", "utf-16-be", "latin-1")],
        "JSON": [text.encode() for text in escaped] + [json.dumps(text)[1:-1].encode() for text in escaped],
        "URL": [text.encode() for text in quoted] + [lower_escapes(text).encode() for text in quoted],
        "base64": [
            part
            for before in range(3)
            for encode in (b64encode, urlsafe_b64encode)
            if len(part := _inside(encode(bytes(before) + raw), before, len(raw))) >= 6
        ],
        "hex": [raw.hex().encode(), raw.hex().upper().encode()],
        "colon hex": [raw.hex(":").encode(), raw.hex(":").upper().encode()],
        "percent": [
            text.encode() for text in ("".join(f"%{b:02x}" for b in raw), "".join(f"%{b:02X}" for b in raw))
        ],
        "\\u": ["".join(f"\\u{ord(char):04x}" for char in secret).encode()],
    }


def _encoded(secret: str, *charsets: str) -> list[bytes]:
    found = []
    for charset in charsets:
        with suppress(UnicodeEncodeError):
            found.append(secret.encode(charset))
    return found


def lower_escapes(quoted: str) -> str:
    """Return a URL-encoded text with its escapes in lower case: `%2f` for `%2F`."""
    head, *parts = quoted.split("%")
    return "%".join([head, *(part[:2].lower() + part[2:] for part in parts)])


def found_in(data: bytes | str, secret: str) -> list[str]:
    """Return the names of the encodings in which data contains the secret: `["raw", "base64"]`; `[]` if none."""
    data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    data += b"".join(unpacked(data))
    return [name for name, forms in encodings(secret).items() if any(form in data for form in forms)]


def files_with(folder: Path, secret: str) -> dict[str, list[str]]:
    """Return the files under a folder that contain the secret, with the names of its encodings, by relative path."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: found for name, data in sorted(files.items()) if (found := found_in(data, secret))}


def unpacked(data: bytes) -> Iterator[bytes]:
    """Yield the decoded contents of a gzip file, of traces in report.html, and of base64 bodies in cassettes."""
    if data.startswith(GZIP):
        yield zlib.decompress(data, 31)
    for found in _TRACE_IN_A_PAGE.finditer(data):
        yield zlib.decompress(b64decode(found[1]), 31)
    for found in re.finditer(rb"!!binary \|\s+((?:[A-Za-z0-9+/=]+\s+)+)", data):
        body = b64decode(b"".join(found[1].split()) + b"==")
        yield body
        for bits in (31, 15, -15):
            with suppress(zlib.error):
                yield zlib.decompress(body, bits)


def _inside(encoded: bytes, before: int, length: int) -> bytes:
    """Return the base64 characters that depend on the secret alone, of `before` other bytes and the secret."""
    core = encoded.rstrip(b"=")
    shared = (before + length) % 3 != 0
    return core[(0, 2, 3)[before] : len(core) - shared]
