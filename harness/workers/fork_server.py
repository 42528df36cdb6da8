"""The server process that workers are forked from, on systems that support it. It has imported what all workers need.

This module imports nothing else of the harness, so that the server can start before this process imports it.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
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
"""The modules that nearly every run imports, and that of the command, whose script each worker imports."""

OF_RECORDINGS: Final = (
    "harness.scenario.recording",
    "harness.recording.permits",
    "harness.interception.intercept",
    "harness.world.providers.clients",
    "vcr.stubs.aiohttp_stubs",
)
CLIENTS: Final = ("langchain_openai", "langchain_anthropic")

_IS_THERE: Final = "forkserver" in get_all_start_methods()
CONTEXT: Final = get_context("forkserver") if _IS_THERE else get_context("spawn")


def start(*, records: bool = False) -> None:
    """Start the server and its imports, unless it runs already. Does not wait for it.

    With `records`, it also imports the clients of providers that are installed.
    """
    if _IS_THERE:
        main = ["pytest"] if "pytest" in sys.modules else []
        clients = [name for name in CLIENTS if records and find_spec(name)]
        CONTEXT.set_forkserver_preload([*PRELOADED, *(OF_RECORDINGS if records else ()), *clients, *main])
        with _ctrl_c_ignored():
            forkserver.ensure_running()


@contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    """Make a process that is started inside ignore Ctrl-C from its beginning, as this process handles it."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread can set handlers
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
