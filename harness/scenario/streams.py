"""Protection of standard output and standard error from tools, since the harness writes to them too."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

_DESCRIPTORS: Final = (1, 2)


class _UncloseableStream:
    """A stream that can be used but not closed."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Any:
        return iter(self._stream)

    def __enter__(self) -> _UncloseableStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def close(self) -> None:
        """Flush the stream and leave it open."""
        self.flush()


@contextmanager
def preserve_streams() -> Iterator[None]:
    """Restore standard output and error on exit, even if their descriptors were closed or redirected."""
    streams = sys.stdout, sys.stderr
    descriptors = {number: copy for number in _DESCRIPTORS if (copy := _copy(number)) is not None}
    sys.stdout, sys.stderr = (stream and _UncloseableStream(stream) for stream in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
        for number, copy in descriptors.items():
            if not _same(number, copy):
                os.dup2(copy, number)
            os.close(copy)


def _copy(descriptor: int) -> int | None:
    with suppress(OSError):
        return os.dup(descriptor)
    return None


def _same(one: int, other: int) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(one), os.fstat(other))
    return False
