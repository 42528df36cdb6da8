"""The process that workers are forked from, where the system has such a thing: it has imported what they all need.

This module imports nothing of ours, so that the process starts before the one that asks for it imports anything.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, get_all_start_methods, get_context
from typing import Final

PRELOADED: Final = (
    "harness.cli.main",
    "harness.workers.worker",
    "harness.scenario.run",
    "harness.report.results",
    "harness.engine.superstep",
    "harness.expressions.lowering",
)
"""What nearly every run imports, and the command, whose script each worker imports."""

_IS_THERE: Final = "forkserver" in get_all_start_methods()
CONTEXT: Final = get_context("forkserver") if _IS_THERE else get_context("spawn")


def start() -> None:
    """Have the process import everything, unless it does already. Returns at once."""
    if _IS_THERE:
        main = ["pytest"] if "pytest" in sys.modules else []
        CONTEXT.set_forkserver_preload([*PRELOADED, *main])
        with _ctrl_c_ignored():
            forkserver.ensure_running()


@contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    """A process that is started inside ignores Ctrl-C from its beginning: it is this process that handles it."""
    if threading.current_thread() is not threading.main_thread():  # which cannot set it
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
