"""Detects times that are probably written in milliseconds. Each is a warning, when the file is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.errors import Problem
from harness.source.document import Document, DocumentPath
from harness.world.spec import WorldSpec

_LEAST_S: Final = 5000
_ROUND_MS: Final = 500
_HALF_HOUR_S: Final = 1800


def unlikely_times(at: Document, world: WorldSpec) -> Iterator[Problem]:
    """Yield a warning for the timeout of a scenario, and for each latency in its world, that is hardly in seconds."""
    places: list[tuple[DocumentPath, float | None]] = [(("timeout",), at.value.get("timeout"))]
    for _, path, stubs in world.lists():
        places += (((*stub.path(path, number), "latency"), stub.latency) for number, stub in enumerate(stubs))
    places += ((("faults", number, "latency"), fault.latency) for number, fault in enumerate(world.faults))
    for path, seconds in places:
        if seconds is not None and _looks_like_milliseconds(seconds):
            text = f"'{path[-1]}' is in seconds, and {seconds:g} looks like milliseconds"
            hint = f"write {seconds / 1000:g} for {seconds / 1000:g} s"
            yield Problem("unlikely-time", text, at.span(path), hint, severity="warning")


def _looks_like_milliseconds(seconds: float) -> bool:
    """True for a large round number that is no whole number of half hours."""
    return seconds >= _LEAST_S and seconds % _ROUND_MS == 0 and seconds % _HALF_HOUR_S != 0
