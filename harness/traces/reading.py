"""Read a file of traces: those of our runs, and the exports of others.

An export becomes the same events as a run, but for what it lacks: a value that it does not have is left out, `gap` of
its event names it, and `missing` of the trace has sentences on all. The head has the name of the format, a name for
the conversation as `scenario` and `id`, and None for what only our runs have.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness.errors import FormatError, Problem
from harness.errors import Span as Location
from harness.report.traces import FORMAT, RunTrace, read_trace
from harness.source.document import shown_path
from harness.traces import exports, otel
from harness.traces.conversations import traces_of
from harness.traces.spans import Span

LARGEST_FILE: Final = 100_000_000
"""The most bytes of an export, unpacked."""
_GZIP: Final = b"\x1f\x8b"


class _Format(NamedTuple):
    name: str
    title: str
    recognises: Callable[[Sequence[Any]], bool]
    read: Callable[[Sequence[Any]], Iterable[Span]]


FORMATS: Final = (
    _Format("otel", "OpenTelemetry (OTLP as JSON)", otel.recognises, otel.read),
    _Format("langsmith", "LangSmith (runs)", exports.is_langsmith, exports.of_langsmith),
    _Format("langfuse", "Langfuse (traces or observations)", exports.is_langfuse, exports.of_langfuse),
    _Format("openai-agents", "OpenAI Agents SDK", exports.is_openai_agents, exports.of_openai_agents),
    _Format("yagra", "Yagra (golden runs)", exports.is_yagra, exports.of_yagra),
)


def read_traces(path: Path) -> list[RunTrace]:
    """Read the traces of a file, one for each conversation. The format is told by the content.

    Raises:
        FormatError: there is no such file (`trace-missing`), it is damaged (`trace-damaged`), or of none of the
            formats (`trace-unknown`).
    """
    content = _content(path)
    if content is None:
        return [read_trace(path)]
    records = _records(path, content)
    found = next((each for each in FORMATS if each.recognises(records)), None)
    known = ", ".join(each.title for each in FORMATS)
    hint = f"known are traces of runs (reports/…/traces/*.jsonl.gz), {known}"
    if found is None:
        message = f"{shown_path(path)} is no trace of a known format"
        raise FormatError(Problem("trace-unknown", message, hint=hint))
    try:
        traces = traces_of([*found.read(records)], found.name)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        message = f"{shown_path(path)} looks like {found.title}, but cannot be read: {type(error).__name__}: {error}"
        raise FormatError(Problem("trace-damaged", message[:500])) from error
    if not traces:
        message = f"{shown_path(path)} is of {found.title}, but has no span of an agent, a model or a tool"
        raise FormatError(Problem("trace-unknown", message, hint=hint))
    return traces


def _content(path: Path) -> bytes | None:
    """Return the content of an export, unpacked; None for a trace of our own."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
        with gzip.open(path) if packed else path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
            if FORMAT.encode() in content[:1000]:
                return None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return None  # `read_trace` says where it is damaged
    except OSError as error:
        message = f"cannot read the trace {shown_path(path)}: {error.strerror or error}"
        raise FormatError(Problem("trace-missing", message)) from None
    if len(content) > LARGEST_FILE:
        message = f"{shown_path(path)} has more than {LARGEST_FILE // 1_000_000} MB"
        raise FormatError(Problem("trace-damaged", message, hint="export the traces of fewer conversations"))
    return content


def _records(path: Path, content: bytes) -> list[Any]:
    """Return the values of a JSON file, or of the lines of one; the items of a list count as values."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _damaged(path, 1, "this is no text") from None
    try:
        values = [json.loads(text)]
    except RecursionError:
        raise _damaged(path, 1, "this is nested too deeply") from None
    except ValueError:
        values = [
            _value(path, number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()
        ]
    if not values:
        raise _damaged(path, 1, "the file is empty")
    return [item for value in values for item in (value if isinstance(value, list) else [value])]


def _value(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise _damaged(path, number, f"this is not JSON: {line.strip()[:60]!r}") from None


def _damaged(path: Path, line: int, message: str) -> FormatError:
    return FormatError(Problem("trace-damaged", message, Location(shown_path(path), line, 1)))
