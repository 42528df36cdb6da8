"""Removes secrets from all text output of this process: printed text, logs, and the output of child processes.

It also makes workflow commands of GitHub Actions in the text inert (`harness.source.display`).

print, warnings, tracebacks ──▶ sys.stdout, sys.stderr ──▶ RedactedStream ──┐
child processes, MCP servers, C code ──▶ descriptors 1, 2 ──▶ a pipe ──▶ a thread ──┴──▶ terminal or file
loggers ──▶ log records, whoever handles them
"""

from __future__ import annotations

import codecs
import io
import logging
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Thread
from typing import Any, Final, TextIO

from harness.interception.descriptors import keep_open, let_go
from harness.source.display import CommandEscaper, in_actions

Scrub = Callable[[str], str]

# Their debug records show headers as they arrive, before the secrets in them are known.
CLIENTS: Final = frozenset(
    {"aiohttp", "anthropic", "h2", "hpack", "httpcore", "httpcore2", "httpx", "httpx2", "mcp", "openai"}
    | {"requests", "urllib3", "vcr", "websockets"}
)
LEFT_OUT: Final = "(left out: it may show what is secret)"
_LONGEST_LINE: Final = 1 << 16
_DRAIN_S: Final = 1.0
"""Real seconds to wait for the output of child processes that outlive this process."""


_CUT: Final = "…"
_REMEMBERED: Final = 4096
_KEY_BEGINS: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY(?![\s\S]*-----END)")


class _Pieces:
    """Scrubs the text of a stream piece by piece, where a secret may begin in one piece and end in a later one.

    An incomplete line, and a key in PEM that has not ended, are scrubbed again together with what follows them; what
    was shown of them is not shown again.
    """

    def __init__(self, scrub: Scrub) -> None:
        self._scrub = scrub
        self._begun = self._shown = ""

    def __call__(self, text: str, *, is_whole: bool) -> str:
        """Return the next piece, scrubbed. It is whole if it ends a line."""
        text = self._begun + text
        scrubbed = self._scrub(text) if is_whole else self._unfinished(text)
        pairs = enumerate(zip(self._shown, scrubbed, strict=False))
        same = next((at for at, (old, new) in pairs if old != new), min(len(self._shown), len(scrubbed)))
        self._begun = self._shown = ""
        if key := _KEY_BEGINS.search(text) if "PRIVATE KEY-" in text else None:
            self._remember(text[key.start() :])
        elif not is_whole:
            self._remember(text)
        return scrubbed[same:]

    def _remember(self, text: str) -> None:
        if len(text) <= _REMEMBERED:
            self._begun, self._shown = text, self._unfinished(text)

    def _unfinished(self, text: str) -> str:
        """Scrub a text that goes on: the beginning of a secret at its end is replaced as if it were cut."""
        return self._scrub(self._scrub(text) + _CUT).removesuffix(_CUT)


class RedactedStream(io.TextIOBase):
    """A text stream that writes whole lines, passed through `scrub`. `flush` also writes an incomplete line."""

    def __init__(self, stream: TextIO, scrub: Scrub) -> None:
        self._stream, self._scrub = stream, _Pieces(scrub)
        self._held = ""
        self._inert = CommandEscaper(in_actions())
        self._decode = codecs.getincrementaldecoder(stream.encoding or "utf-8")("replace").decode

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def buffer(self) -> io.BufferedIOBase:
        """A binary stream that writes through this stream.

        It is not stored: the reference cycle would be freed by the garbage collector, which calls Python code to
        close a stream, and a Ctrl-C in such code is lost.
        """
        return _Bytes(self, self._decode)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._stream.errors

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        """Write the lines that are complete, and hold the rest."""
        held = self._held + text
        end = held.rfind("\n") + 1 if len(held) < _LONGEST_LINE else len(held)
        self._held = held[end:]
        if end:
            self._stream.write(self._inert(self._scrub(held[:end], is_whole=True)))
        return len(text)

    def flush(self) -> None:
        """Write all text that is held."""
        held, self._held = self._held, ""
        if held:
            self._stream.write(self._inert(self._scrub(held, is_whole=False)))
        self._stream.flush()


class _Bytes(io.BufferedIOBase):
    """A binary stream that decodes bytes and writes them to a text stream."""

    def __init__(self, stream: RedactedStream, decode: Callable[[bytes], str]) -> None:
        self._stream, self._decode = stream, decode

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, data: Any) -> int:
        text = bytes(data)
        self._stream.write(self._decode(text))
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        """Do nothing: a new instance is made for each use, and an incomplete line stays held."""


@contextmanager
def redacted_streams(scrub: Scrub) -> Iterator[None]:
    """Remove secrets from text that is printed within the context."""
    out, err = sys.stdout, sys.stderr
    wrapped = RedactedStream(out, scrub), RedactedStream(err, scrub)
    sys.stdout, sys.stderr = wrapped
    try:
        yield
    finally:
        for stream in wrapped:
            with suppress(OSError, ValueError):
                stream.flush()
        if (sys.stdout, sys.stderr) == wrapped:
            sys.stdout, sys.stderr = out, err


@contextmanager
def redacted_process(scrub: Scrub) -> Iterator[None]:
    """Do the same as `redacted_streams`, also for the output of child processes and C code."""
    with ExitStack() as stack:
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            stream = getattr(sys, name)
            with suppress(OSError, ValueError, AttributeError):
                if stream.fileno() == descriptor:
                    stack.enter_context(_redacted_descriptor(name, descriptor, scrub))
        stack.enter_context(redacted_streams(scrub))
        yield


@contextmanager
def _redacted_descriptor(name: str, descriptor: int, scrub: Scrub) -> Iterator[None]:
    """Replace a descriptor by a pipe whose text is scrubbed; the stream of that name writes directly."""
    stream: TextIO = getattr(sys, name)
    stream.flush()
    kept = os.dup(descriptor)
    reading, writing = os.pipe()
    os.dup2(writing, descriptor)
    os.close(writing)
    keep_open(kept)
    keep_open(reading)
    pump = Thread(target=_pump, args=(reading, kept, scrub), name=f"redacts {name}", daemon=True)
    pump.start()
    direct = open(kept, "w", encoding=stream.encoding, errors=stream.errors, closefd=False, buffering=1)  # noqa: SIM115
    setattr(sys, name, direct)
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            direct.flush()
        os.dup2(kept, descriptor)
        let_go(kept)
        let_go(reading)
        pump.join(_DRAIN_S)
        setattr(sys, name, stream)


def _pump(reading: int, kept: int, scrub: Scrub) -> None:
    escaper, pieces = CommandEscaper(in_actions()), _Pieces(scrub)
    with open(reading, "rb") as pipe, suppress(OSError):
        for line in iter(lambda: pipe.readline(_LONGEST_LINE), b""):
            text = escaper(pieces(line.decode("utf-8", "surrogateescape"), is_whole=line.endswith(b"\n")))
            data = text.encode("utf-8", "surrogateescape")
            while data:
                data = data[os.write(kept, data) :]


@contextmanager
def redacted_logs(scrub: Scrub) -> Iterator[None]:
    """Scrub the text of all log records within the context; that of debug records of HTTP clients is left out."""
    make = logging.getLogRecordFactory()

    def make_record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        if record.levelno < logging.INFO and record.name.partition(".")[0] in CLIENTS:
            record.msg, record.args, record.exc_info = LEFT_OUT, None, None
            return record
        text = _text(record)
        if (scrubbed := scrub(text)) != text:
            record.msg, record.args = scrubbed, None
        if record.exc_info and record.exc_info[1] is not None:
            # Handlers print this text instead of formatting the traceback.
            record.exc_text = scrub("".join(traceback.format_exception(record.exc_info[1])).rstrip())
        if record.stack_info:
            record.stack_info = scrub(record.stack_info)
        return record

    logging.setLogRecordFactory(make_record)
    try:
        yield
    finally:
        logging.setLogRecordFactory(make)


def _text(record: logging.LogRecord) -> str:
    """Return the message of a record. One with wrong arguments is shown unformatted; `logging` warns of it."""
    try:
        return record.getMessage()
    except Exception:
        return f"{record.msg} {record.args}"
