"""The limit of real time for one run (`real_timeout`), and what was running when it was reached.

When the time is up, an alarm has the event loop raise `OutOfRealTime` between two of its steps, where nothing is
half done. A loop that does not get there is blocked by a tool: then the alarm raises it in the main thread,
wherever that is, and again every second, since a tool may catch it. Both waits are counted in looks at the run,
so that one which a busy machine stops for seconds is not signalled again in the middle of leaving. That ends Python
that runs, waiting for the system, and searches of `re`. What blocks in a thread of its own goes on there: the
thread is asked to end, and left behind. Code in C that never looks at signals can only be ended with its process
(`isolation = "process"`, `-j`).
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from harness.errors import HarnessError, Span
from harness.source.document import shown_path
from harness.time.alarms import Alarm

TICK_S: Final = 0.1
"""Real seconds between two looks at a run whose time is up."""
STEP_TICKS: Final = 2
"""Looks after which a step of the event loop should have ended by itself."""
AGAIN_TICKS: Final = 10
"""Looks after which a run that has not been left is signalled again."""


class OutOfRealTime(KeyboardInterrupt):
    """Raised wherever a run is when its real time is up. Libraries let a KeyboardInterrupt pass, asyncio at once."""


class RealTimeExceeded(HarnessError):
    """A run took more real time than it may.

    Args:
        limit_s: real seconds it may take.
        doing: what it was doing, such as `tool 'search' of node 'find'`.
        node: the node it was in, if it was in one.
        span: the line of the user's code that was running, if any was.
    """

    code = "real-timeout"

    def __init__(
        self, limit_s: float, doing: str = "", node: str | None = None, span: Span | None = None
    ) -> None:
        self.limit_s, self.doing, self.node, self.span = limit_s, doing, node, span
        self.left_behind = 0
        super().__init__(limit_s)

    def __str__(self) -> str:
        text = f"the run took more than {self.limit_s:g} real seconds (real_timeout)"
        if self.doing:
            text += f" in {self.doing}"
        if self.left_behind:
            text += "; threads that it left behind still run"
        return text


@contextmanager
def real_limit(seconds: float | None, running: Callable[[], tuple[str, str | None]]) -> Iterator[None]:
    """Leave what is inside after so many real seconds; None: never.

    `running` gives what the run is doing, and the node it is in. Threads of a run that was left, at Ctrl-C too, are
    left behind.

    Raises:
        RealTimeExceeded: it took longer, whatever it raised or gave in the end.
    """
    if seconds is None:
        yield
        return
    exceeded: RealTimeExceeded | None = None
    ticks = 0

    def ring(frame: FrameType | None) -> None:
        nonlocal exceeded, ticks
        alarm.postpone(TICK_S)
        if exceeded is None:
            exceeded = RealTimeExceeded(seconds, *running(), span=_users_line(frame))
            if (loop := asyncio._get_running_loop()) is not None:
                loop.call_soon_threadsafe(leave)
                ticks = STEP_TICKS
        elif exceeded.span is None:  # before, it was between the lines of the user's code
            exceeded.span = _users_line(frame)
        ticks -= 1
        if ticks < 0:
            leave()

    def leave() -> None:
        nonlocal ticks
        ticks = AGAIN_TICKS
        raise OutOfRealTime

    alarm = Alarm(seconds, ring)
    threads = set(threading.enumerate())
    try:
        try:
            alarm.start()
            yield
        finally:
            alarm.stop()
    except BaseException as error:
        if exceeded is None:
            if isinstance(error, KeyboardInterrupt):
                _leave_behind(set(threading.enumerate()) - threads)
            raise
    finally:
        alarm.stop()
    if exceeded is not None:
        exceeded.left_behind = _leave_behind(set(threading.enumerate()) - threads)
        raise exceeded


def _users_line(frame: FrameType | None) -> Span | None:
    """The innermost line that is neither Python's, nor a package's, nor ours."""
    while frame is not None and frame.f_code.co_filename != _RUN:
        file = frame.f_code.co_filename
        if not file.startswith(_NOT_THE_USERS) and "site-packages" not in file:
            return Span(shown_path(Path(file)), frame.f_lineno, 1)
        frame = frame.f_back
    return None


_RUN: Final = str(Path(__file__).with_name("run.py"))
"""Frames outside of it are not of the run."""
_NOT_THE_USERS: Final = (str(Path(__file__).parent.parent), str(Path(threading.__file__).parent), "<")

_WAITS_FOR_OTHERS: Final = "(_do_shutdown)"
"""asyncio's thread that waits for the worker threads of a loop."""

_left_behind: Final[list[threading.Thread]] = []


def _leave_behind(threads: set[threading.Thread]) -> int:
    """Have threads end when they next run Python. Gives how many of them Python would wait for when it exits."""
    for thread in threads:
        if thread.ident is not None and not thread.name.endswith(_WAITS_FOR_OTHERS):
            exit_ = ctypes.py_object(SystemExit)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), exit_)
        thread.join(0.05)
    waited_for = [thread for thread in threads if thread.is_alive() and not thread.daemon]
    _left_behind.extend(waited_for)
    return len(waited_for)


def is_held_up() -> bool:
    """True if this process cannot exit by itself, since a thread that was left behind still runs."""
    return any(thread.is_alive() for thread in _left_behind)
