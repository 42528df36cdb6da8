"""Write the traces of runs, one file each (docs/results.md). `harness.report.trace_reader` reads them.

A file is gzip, with one event on each line. The first line identifies the run:

    trace    format, suite, scenario, id, manifest, dialect, agent, variant, repeat, seed, status, verdict, digest,
             kinds (of the nodes, by name)

The other lines are the events of the run (`harness.graph.trace`) without secrets. Values that several events share
are events of their own (`harness.graph.sharing`). A value of more than a million characters is cut; `cut` of its
event lists the places, such as `["update.pages"]`.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from harness.report.encoding import encode, encode_each
from harness.scenario.outcome import Outcome

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
