"""Functions shared by the families of clients: patching, and reading the headers and bodies that clients pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def patched(owner: Any, **functions: Any) -> Iterator[None]:
    """Replace functions of `owner`, a class or a module, within the context."""
    before = {name: vars(owner)[name] for name in functions}
    for name, function in functions.items():
        setattr(owner, name, function)
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(owner, name, function)


def is_stream(headers: Mapping[str, str]) -> bool:
    """True if the body is a stream of events, which may be endless."""
    return str(headers.get("content-type") or "").startswith("text/event-stream")


def headers_of(headers: Any) -> dict[str, str]:
    """Return headers by name in lower case; of a repeated header, the first value."""
    return {_text(name).lower(): _text(_first(value)) for name, value in dict(headers).items()}


def body_of(body: Any) -> bytes:
    """Return a body as bytes, given in any form that clients accept: bytes, text, a file, parts, or None.

    A file or an iterator is consumed.
    """
    if hasattr(body, "read"):
        body = body.read()
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    return b"".join(map(body_of, body))


def _first(value: Any) -> Any:
    return value if isinstance(value, (str, bytes)) else next(iter(value), "")


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
