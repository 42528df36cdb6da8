"""Ctrl-C during a run: a KeyboardInterrupt that differs from one that user code raises."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from harness.time.signals import get_handler, set_handler


@contextmanager
def marked_interrupts() -> Iterator[None]:
    """Make Ctrl-C raise its KeyboardInterrupt in this module, unless the program has a handler of its own.

    A KeyboardInterrupt that user code raises is a failure of that code (`harness.engine.callables`). The module of
    the innermost frame is the only difference between the two.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or get_handler(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    set_handler(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        set_handler(signal.SIGINT, signal.default_int_handler)


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
