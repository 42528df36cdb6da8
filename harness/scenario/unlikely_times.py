"""Detects times that are probably written in milliseconds. Each is a warning, when the file is read."""

from __future__ import annotations

from collections.abc import Iterator

from harness.errors import Problem
from harness.source.document import Document, DocumentPath
from harness.units import milliseconds_hint
from harness.world.spec import WorldSpec


def unlikely_times(at: Document, world: WorldSpec) -> Iterator[Problem]:
    """Yield a warning for the timeout of a scenario, and for each latency in its world, that is hardly in seconds."""
    places: list[tuple[DocumentPath, float | None]] = [(("timeout",), at.value.get("timeout"))]
    for _, path, stubs in world.lists():
        places += (((*stub.path(path, number), "latency"), stub.latency) for number, stub in enumerate(stubs))
    places += ((("faults", number, "latency"), fault.latency) for number, fault in enumerate(world.faults))
    for path, seconds in places:
        if seconds is not None and (found := milliseconds_hint(str(path[-1]), seconds)):
            text, hint = found
            yield Problem("unlikely-time", text, at.span(path), hint, severity="warning")
