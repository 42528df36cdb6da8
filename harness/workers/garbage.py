"""How often Python looks for cyclic garbage in a process of ours."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

THRESHOLDS: Final = (50_000, 20, 50)
"""Python's own (700, 10, 10) walk all of LangGraph several times while it is imported, and find nothing."""


def collect_rarely() -> None:
    """Look for garbage rarely. What is there already is taken to stay, and not looked at again."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    collect_nothing_at_exit()


def collect_nothing_at_exit() -> None:
    """Leave out the look at everything that ends a process: 0.2 s, and the system takes back all memory at once."""
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


def collect_as_before(thresholds: tuple[int, int, int]) -> None:
    """Undo `collect_rarely`, in a process that goes on."""
    gc.unfreeze()
    gc.set_threshold(*thresholds)


@contextmanager
def collected_rarely() -> Iterator[None]:
    """Look for garbage rarely inside, in a process that is not ours alone."""
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
