"""Read the traces that `harness.report.traces` wrote, named by `trace` in the lines of results.jsonl.

    trace = read_trace(Path("reports/latest/traces/1.jsonl.gz"))
    trace.head["id"], trace.head["verdict"]
    for event in trace.events:      # as in harness.graph.trace, messages in full
        ...

A message is the same object in all events that contain it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.errors import FormatError, Problem, Span
from harness.graph.sharing import DATA, SHARED
from harness.report.traces import FORMAT
from harness.source.document import shown_path

_GZIP: Final = 31
_PIECE: Final = 1 << 16


@dataclass(frozen=True)
class RunTrace:
    """The trace of a run.

    head     identifies the run: id, repeat, seed, verdict, digest, …
    events   its events in order, with shared values restored
    damage   why its end is missing; None if the file is complete
    """

    head: Mapping[str, Any]
    events: list[dict[str, Any]]
    damage: FormatError | None = None


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
    shared = _Shared()
    damage = None
    try:
        for event in lines:
            if event.get("event") == "shared":
                shared.add(event)
            else:
                events.append(shared.restore(event))
    except FormatError as error:
        damage = error
    return RunTrace(head, events, damage)


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
