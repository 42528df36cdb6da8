"""Settings of Python's cyclic garbage collector, which takes much time in a process with many imports."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

THRESHOLDS: Final = (50_000, 20, 50)
"""The thresholds for `gc.set_threshold`. With Python's own (700, 10, 10), all objects of LangGraph are scanned
several times during its import, without finding garbage."""


def reduce_gc() -> None:
    """Collect garbage rarely, and never scan the objects that exist now: they are assumed to stay."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    skip_gc_at_exit()


def skip_gc_at_exit() -> None:
    """Skip the collection at the end of the process: it takes 0.2 s, and the system frees all memory anyway."""
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


def restore_gc(thresholds: tuple[int, int, int]) -> None:
    """Undo `reduce_gc`, in a process that continues."""
    gc.unfreeze()
    gc.set_threshold(*thresholds)


@contextmanager
def reduced_gc() -> Iterator[None]:
    """Collect garbage rarely inside, in a process that also runs other code."""
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
