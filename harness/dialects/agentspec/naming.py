"""Unique names of nodes."""

from __future__ import annotations

from collections.abc import Collection

from harness.graph.model import END, START


def unique_name(name: str, taken: Collection[str] = ()) -> str:
    """Return the name, with a number appended if it is taken or reserved by graphs."""
    found, number = name, 1
    while found in taken or found in (START, END):
        number += 1
        found = f"{name} ({number})"
    return found
