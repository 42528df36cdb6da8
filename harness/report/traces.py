"""Write the traces of runs, one file each (docs/results.md). `read_trace` reads them.

A file is gzip, with one event on each line. The first line identifies the run:

    trace    format, suite, scenario, id, manifest, dialect, agent, variant, repeat, seed, status, verdict, digest,
             kinds (of the nodes, by name)

The other lines are the events of the run (`harness.graph.trace`) without secrets. Values that several events share
are events of their own (`harness.graph.sharing`). A value of more than a million characters is cut; `cut` of its
event lists the places, such as `["update.pages"]`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.errors import FormatError, Problem, Span
from harness.graph.sharing import DATA, SHARED
from harness.report.encoding import encode, encode_each
from harness.report.summary import SUMMARY, json_in, written_summary
from harness.scenario.outcome import Outcome
from harness.source.document import shown_path

FORMAT: Final = "harness-trace/1"
FOLDER: Final = "traces"
LARGEST_VALUE: Final = 1_000_000
"""Maximum length of a value, in characters."""

_BLOCK: Final = 4096  # bytes that the smallest file occupies on a disk
_UNFINISHED: Final = ".unfinished"
_OURS: Final = re.compile(r"\d+(-\d+)?\.jsonl\.gz|\.unfinished")
_TOGETHER: Final = 100  # events encoded in one batch
_LEVEL: Final = 1
_GZIP: Final = 31  # window size with a gzip header, which contains no time


def pack_trace(outcome: Outcome) -> bytes:
    """Return the trace file of a run; empty if it is not to be kept."""
    if not outcome.events:
        return b""
    head = {
        "event": "trace",
        "format": FORMAT,
        **outcome.identity,
        "repeat": outcome.repeat,
        "seed": outcome.seed,
        "now": outcome.now,
        "status": outcome.observed.status,
        "verdict": outcome.verdict,
        "digest": outcome.digest,
        "kinds": outcome.kinds,
    }
    gzip = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    pieces = [gzip.compress("\n".join(lines).encode() + b"\n") for lines in _batches((head, *outcome.events))]
    return b"".join([*pieces, gzip.flush()])


def unpack_trace(content: bytes) -> list[dict[str, Any]]:
    """Return the events of what `pack_trace` returned, with shared values restored."""
    lines = zlib.decompress(content, _GZIP).decode().splitlines() if content else []
    return list(restored(json.loads(line) for line in lines[1:]))


def _batches(events: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield the lines in batches that compress well and use little memory."""
    lines: list[str] = []
    size = 0
    for first in range(0, len(events), _TOGETHER):
        some = events[first : first + _TOGETHER]
        for event, text in zip(some, encode_each(some), strict=True):
            if len(text) > LARGEST_VALUE:
                text = encode(_bounded(event))
            lines.append(text)
            size += len(text)
            if size > LARGEST_VALUE:
                yield lines
                lines, size = [], 0
    if lines:
        yield lines


def _bounded(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event with too large values cut."""
    places: list[str] = []
    bounded = {key: _beginning(value, key, places)[0] for key, value in event.items()}
    return {**bounded, "cut": places} if places else bounded


def _beginning(value: Any, place: str, places: list[str]) -> tuple[Any, int]:
    """Return the part of a value that is kept, and its size. The places of cuts are appended to `places`."""
    if isinstance(value, str):
        if len(value) <= LARGEST_VALUE:
            return value, len(value)
        places.append(place)
        return f"{value[:LARGEST_VALUE]}… ({len(value)} characters)", LARGEST_VALUE
    if not isinstance(value, dict | list):
        return value, 8
    size = 0
    kept: list[Any] = []
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if size >= LARGEST_VALUE:
            places.append(place)
            break
        item, of_item = _beginning(item, f"{place}.{key}", places)
        kept.append((key, item))
        size += of_item + len(str(key))
    more = f"… {len(value) - len(kept)} more" if len(kept) < len(value) else ""
    if isinstance(value, dict):
        return dict(kept) | ({"…": more} if more else {}), size
    return [item for _, item in kept] + ([more] if more else []), size


class TraceFolder:
    """The folder `traces` of a report. Its files are written atomically.

    Traces are left out once they would exceed `limit` bytes on disk, or cannot be written, as on a full disk: the
    results of a run matter more than its traces.
    """

    def __init__(self, report: Path, limit: float) -> None:
        self._folder, self._limit = str(report / FOLDER), limit
        self._unfinished = f"{self._folder}/{_UNFINISHED}"
        self._taken = 0
        self._kept = 0
        self._left_out = 0
        self._why = ""

    def add(self, name: str, content: bytes) -> str | None:
        """Write a file and return its path relative to the report; None if it is left out."""
        size = -(-len(content) // _BLOCK) * _BLOCK
        if not self._why and self._taken + size > self._limit:
            self._why = f"the traces of a run may take {self._limit / 1e6:g} MB (traces_limit)"
        if not self._why:
            self._write(f"{name}.jsonl.gz", content)
        if self._why:
            self._left_out += 1
            return None
        self._taken += size
        self._kept += 1
        return f"{FOLDER}/{name}.jsonl.gz"

    def _write(self, name: str, content: bytes) -> None:
        try:
            if not self._kept:
                os.makedirs(self._folder, exist_ok=True)
            with open(self._unfinished, "wb") as file:
                file.write(content)
            os.replace(self._unfinished, f"{self._folder}/{name}")
        except OSError as error:
            self._why = f"they cannot be written: {error.strerror or error}"
            with suppress(OSError):
                os.unlink(self._unfinished)

    def as_json(self) -> dict[str, Any]:
        """Return the numbers of traces kept and left out, and why they were left out, or None."""
        return {"kept": self._kept, "left_out": self._left_out, "why": self._why or None}


def remove_traces(report: Path) -> None:
    """Remove the traces of an earlier run. Other files in their folder stay.

    Raises:
        OSError: they cannot be removed.
    """
    for file in _traces_in(report):
        file.unlink(missing_ok=True)
    with suppress(OSError):  # the folder does not exist, or has other files
        (report / FOLDER).rmdir()


def move_traces(report: Path, other: Path) -> None:
    """Move the traces of a run to another report.

    Raises:
        OSError: they cannot be moved.
    """
    found = _traces_in(report)
    if found:
        (other / FOLDER).mkdir(exist_ok=True)
    for file in found:
        os.replace(file, other / FOLDER / file.name)


def _traces_in(report: Path) -> list[Path]:
    folder = report / FOLDER
    return [file for file in folder.iterdir() if _OURS.fullmatch(file.name)] if folder.is_dir() else []


_PIECE: Final = 1 << 16


@dataclass(frozen=True)
class RunTrace:
    """The trace of a run.

    head     identifies the run: id, repeat, seed, verdict, digest, …
    events   its events in order, with shared values restored
    damage   why its end is missing; None if the file is complete
    missing  sentences on what an export of another tool lacks (`harness.traces`)
    """

    head: Mapping[str, Any]
    events: list[dict[str, Any]]
    damage: FormatError | None = None
    missing: tuple[str, ...] = ()


def read_trace(path: Path) -> RunTrace:
    """Read a trace file. Of a damaged file, everything before the damage is returned.

    Raises:
        FormatError: there is no such file (`trace-missing`), or it is no trace (`trace-damaged`).
    """
    lines = _lines(path)
    try:
        head = next(lines, None)
    except FormatError as error:
        raise error from None
    if head is None or head.get("format") != FORMAT:
        found = "nothing" if head is None else f"{str(head.get('format', head))[:60]!r}"
        raise _damaged(path, 1, f"this is not a trace of the format {FORMAT}: found {found}")
    events: list[dict[str, Any]] = []
    damage = None
    try:
        events.extend(restored(lines))
    except FormatError as error:
        damage = error
    return RunTrace(head, events, damage)


def restored(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the events of a trace file, or of an outcome, with the values that several of them share."""
    shared = _Shared()
    for event in events:
        if event.get("event") == "shared":
            shared.add(event)
        else:
            yield shared.restore(event)


class _Shared:
    """Values that several events share, by number."""

    def __init__(self) -> None:
        self._values: dict[int, Any] = {}
        self._cut: set[int] = set()

    def add(self, event: Mapping[str, Any]) -> None:
        number = event.get("number", 0)
        self._values[number] = event.get("value")
        if "cut" in event:
            self._cut.add(number)

    def restore(self, event: dict[str, Any]) -> dict[str, Any]:
        """Restore the shared values of an event. `cut` of the result lists the places where a value was cut."""
        cut: list[str] = []
        whole = {
            key: self._restore_value(item, key, cut) if key in DATA else item for key, item in event.items()
        }
        return {**whole, "cut": [*event.get("cut", ()), *cut]} if cut else whole

    def _restore_value(self, value: Any, place: str, cut: list[str]) -> Any:
        if isinstance(value, list):
            items: list[Any] = []
            for item in value:
                numbers = item.get(SHARED) if isinstance(item, dict) and len(item) == 1 else None
                if isinstance(numbers, list) and all(number in self._values for number in numbers):
                    followers = range(numbers[0], numbers[-1] + 1)
                    items += [self._value(number, place, cut) for number in followers]
                else:
                    items.append(self._restore_value(item, f"{place}.{len(items)}", cut))
            return items
        if isinstance(value, dict):
            if len(value) == 1 and isinstance(number := value.get(SHARED), int):
                return self._value(number, place, cut)
            return {key: self._restore_value(item, f"{place}.{key}", cut) for key, item in value.items()}
        return value

    def _value(self, number: int, place: str, cut: list[str]) -> Any:
        if number in self._cut:
            cut.append(place)
        return self._values.get(number)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    number = 0
    for number, raw in enumerate(_raw_lines(path), start=1):
        try:
            event = json.loads(raw)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            raise _damaged(path, number, f"this is not an event: {raw[:60].decode(errors='replace')!r}")
        yield event


def _raw_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a gzip file.

    Raises:
        FormatError: it cannot be read, is no gzip file, or ends too early.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        message = f"cannot read the trace {shown_path(path)}: {error.strerror or error}"
        raise FormatError(Problem("trace-missing", message)) from None
    gzip = zlib.decompressobj(_GZIP)
    number, rest = 1, b""
    for at in range(0, len(content), _PIECE):
        try:
            rest += gzip.decompress(content[at : at + _PIECE])
        except zlib.error:
            what = "the rest of the file is damaged" if number > 1 or at else "this is not a gzip file"
            raise _damaged(path, number, what) from None
        *lines, rest = rest.split(b"\n")
        number += len(lines)
        yield from lines
    if not gzip.eof or rest:
        raise _damaged(path, number, "the file is cut off here")


def _damaged(path: Path, line: int, message: str) -> FormatError:
    return FormatError(Problem("trace-damaged", message, Span(shown_path(path), line, 1)))


LAST_WHOLE: Final = "last-whole"


def last_whole_run(folder: Path) -> Path | None:
    """Return the folder of the last complete run: this one, or the one kept in it; None if there is none."""
    return next((at for at in (folder, folder / LAST_WHOLE) if _is_whole(at)), None)


def keep_last_whole(folder: Path, files: Sequence[str]) -> None:
    """Move the run with these files, and its traces, to `last-whole`, if it is complete.

    The summary is moved last, since a folder without it does not count as a complete run.

    Raises:
        OSError: a file cannot be moved.
    """
    if not _is_whole(folder):
        return
    kept = folder / LAST_WHOLE
    kept.mkdir(exist_ok=True)
    (kept / SUMMARY).unlink(missing_ok=True)
    remove_traces(kept)
    move_traces(folder, kept)
    for name in files:
        # Copied and not moved, since one of them is open, and not every system can move an open file.
        if name != SUMMARY and (folder / name).exists():
            shutil.copyfile(folder / name, kept / name)
    os.replace(folder / SUMMARY, kept / SUMMARY)


def remove_last_whole(folder: Path, files: Sequence[str]) -> None:
    """Remove the run in `last-whole`, after a complete run."""
    # OSError: nothing was kept, or the folder has other files. `last_whole_run` copes with both.
    with suppress(OSError):
        for name in files:
            (folder / LAST_WHOLE / name).unlink(missing_ok=True)
        remove_traces(folder / LAST_WHOLE)
        (folder / LAST_WHOLE).rmdir()


def last_whole_summary(folder: Path) -> dict[str, Any] | None:
    """Return the summary of the last complete run; None if there is none or it has another format."""
    run = last_whole_run(folder)
    return written_summary(run) if run else None


def _is_whole(folder: Path) -> bool:
    return json_in(folder / SUMMARY).get("complete") is True
