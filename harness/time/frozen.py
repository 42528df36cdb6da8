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

_WAITS: Final = (time, "sleep")
"""Libraries that replace only this one do not freeze the time, but run an event loop of their own."""

Clocks = tuple[dict[str, Any], dict[str, Any]]
"""The functions and classes that read the time, by name: those of `time` and of `datetime`."""


def read_clocks() -> Clocks:
    """Return the functions and classes that read the time."""
    return vars(time).copy(), {"date": datetime.date, "datetime": datetime.datetime}


def restore_clocks(saved: Clocks) -> None:
    """Put back the functions and classes of `read_clocks` wherever others have replaced them."""
    if read_clocks() == saved:  # the rule, and one comparison
        return
    replaced: Bindings = {}
    libraries = set()
    clocks = [
        (module, name, value)
        for module, names in zip((time, datetime), saved, strict=True)
        for name, value in names.items()
        if callable(value)
    ]
    genuine = {id(value) for _, _, value in clocks}
    for module, name, value in clocks:
        found = getattr(module, name, None)
        if found is not value:
            setattr(module, name, value)
            if id(found) in genuine or not callable(
                found
            ):  # another clock keeps its own names, and so does None
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
