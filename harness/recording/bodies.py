"""Parses request bodies for comparison: as JSON, multipart, a form, text or bytes.

The kind is detected from the body itself; headers are not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import parse_qs


def read_body(body: bytes) -> tuple[str, Any]:
    """Return the kind of a body and its parsed value.

    The kinds are `empty`, `json`, `form` (a mapping), `multipart` (a list of parts), `text`, and `bytes` (the value
    is a text with their number and hash).
    """
    readings = ((kind, read(body)) for kind, read in _READERS)
    return next(found for found in readings if found[1] is not None)


def _empty(body: bytes) -> str | None:
    return None if body else ""


def _json(body: bytes) -> Any:
    if body.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return json.loads(body, parse_float=number)
    except (ValueError, RecursionError):
        return None


def number(text: str) -> int | float:
    """Parse a JSON number, so that `1`, `1.0` and `1e0` are equal."""
    number = float(text)
    return int(number) if number.is_integer() else number


_BOUNDARY: Final = re.compile(rb"--([!-~][ -~]{0,69})\r\n")


def _multipart(body: bytes) -> list[dict[str, Any]] | None:
    """Return the parts with their headers and contents; None if the body is not multipart."""
    found = _BOUNDARY.match(body)
    if found is None or not body.rstrip(b"\r\n").endswith(b"\r\n--" + found[1] + b"--"):
        return None
    parts = (b"\r\n" + body).split(b"\r\n--" + found[1])[1:-1]
    return [_part(part.removeprefix(b"\r\n")) for part in parts]


def _part(part: bytes) -> dict[str, Any]:
    head, _, content = (b"\r\n" + part).partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines)
    headers = sorted([name.strip().lower(), value.strip()] for name, _, value in pairs)
    text = _text(content)
    return {"headers": headers, "content": _digest(content) if text is None else text}


_FORM: Final = re.compile(
    rb"[\w.*+%~!$'(),;:@/?\[\]-]+=[\w.*+%~!$'(),;:@/?\[\]=-]*(?:&[\w.*+%~!$'(),;:@/?\[\]=-]*)*"
)


def _form(body: bytes) -> dict[str, Any] | None:
    if not _FORM.fullmatch(body):
        return None
    try:
        form = parse_qs(body.decode("ascii"), keep_blank_values=True)
    except ValueError:
        return None
    return {name: values[0] if len(values) == 1 else values for name, values in form.items()}


def _text(body: bytes) -> str | None:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _digest(body: bytes) -> str:
    return f"{len(body)} bytes, BLAKE2 {blake2b(body, digest_size=16).hexdigest()}"


_READERS: Final[Sequence[tuple[str, Callable[[bytes], Any]]]] = (
    ("empty", _empty),
    ("json", _json),
    ("multipart", _multipart),
    ("form", _form),
    ("text", _text),
    ("bytes", _digest),
)
