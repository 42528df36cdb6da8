"""Clocks that code replaced, to freeze the time, and did not put back.

A library that freezes the clock replaces the functions of `time` and the classes of `datetime` in every module that
has bound them, and counts how often it did. So names are bound to the originals again in every module, and the
library is executed anew, which makes it forget.
"""

from __future__ import annotations

import datetime
import importlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from harness.time.rebinding import Bindings, bind_names, origin_of

_CLOCKS: Final = (
    *((time, name) for name in dir(time) if callable(getattr(time, name))),
    *((datetime, name) for name in ("date", "datetime")),
)
_WAITS: Final = (time, "sleep")
"""Libraries that replace only this one do not freeze the time, but run an event loop of their own."""


def read_clocks() -> list[Any]:
    """Return the functions and classes that read the time."""
    return [getattr(module, name, None) for module, name in _CLOCKS]


def restore_clocks(saved: list[Any]) -> None:
    """Put back the functions and classes of `read_clocks` wherever others have replaced them."""
    replaced: Bindings = {}
    libraries = set()
    genuine = {id(value) for value in saved}
    for (module, name), value in zip(_CLOCKS, saved, strict=True):
        found = getattr(module, name, None)
        if found is not value:
            setattr(module, name, value)
            if id(found) in genuine:  # another clock, which keeps its own names
                continue
            replaced[id(found)] = found, value
            if (module, name) != _WAITS:
                libraries.add(sys.modules.get(getattr(found, "__module__", None) or ""))
    if replaced:
        bind_names(replaced, everywhere=True)
    for library in libraries:
        if library is not None and isinstance(origin_of(library), str):
            importlib.reload(library)


@contextmanager
def preserve_clocks() -> Iterator[None]:
    """Put back the clocks that are replaced inside. A module is imported in one run, but all runs shall be alike."""
    saved = read_clocks()
    try:
        yield
    finally:
        restore_clocks(saved)
