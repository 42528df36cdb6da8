"""The limit of real time for one run (`real_timeout`).

When the time is up, an alarm makes the event loop raise `OutOfRealTime` between two of its steps, where no
operation is half done. If the loop does not get there, a tool blocks it: then the alarm raises in the main
thread, wherever that is, and again every second, since a tool may catch the exception. Both delays are counted
in ticks of the alarm, so that a run which a busy machine suspends for seconds is not interrupted again while it
unwinds.

This ends running Python code, system calls that wait, and searches of `re`. A blocking call in another thread
goes on: the thread is asked to end, and abandoned. C code that never checks for signals can only be ended
together with its process (`isolation = "process"`, `-j`).
"""

from __future__ import annotations

import _weakrefset
import asyncio
import ctypes
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from harness.errors import HarnessError, Span
from harness.graph.trace import Event, Trace
from harness.source.document import shown_path
from harness.time.alarms import Alarm
from harness.world.network import refused_attempts

TICK_S: Final = 0.1
"""Real seconds between two ticks of the alarm after the time is up."""
_FINALIZERS: Final = (_weakrefset.__file__, weakref.__file__)
"""The files of callbacks of weak references."""
STEP_TICKS: Final = 2
"""Ticks within which a step of the event loop should end by itself."""
REPEAT_TICKS: Final = 10
"""Ticks after which a run that has not ended is interrupted again."""


class OutOfRealTime(KeyboardInterrupt):
    """Raised inside a run whose real time is up.

    It is a KeyboardInterrupt because libraries do not catch that, and asyncio stops at once.
    """


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
        self.tried = ""
        super().__init__(limit_s)

    def __str__(self) -> str:
        text = f"the run took more than {self.limit_s:g} real seconds (real_timeout)"
        if self.doing:
            text += f" in {self.doing}"
        if self.tried:  # the client of a database tries again until the end
            text += f"; {self.tried}"
        if self.left_behind:
            text += "; threads that it left behind still run"
        return text


@contextmanager
def real_limit(seconds: float | None, running: Callable[[], tuple[str, str | None]]) -> Iterator[None]:
    """Abort the body of the `with` statement after `seconds` of real time; None means no limit.

    `running` returns the current activity of the run and its node. Threads of an aborted run are abandoned,
    also at Ctrl-C.

    Raises:
        RealTimeExceeded: the time was exceeded, whatever the body raised or returned in the end.
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
            exceeded = RealTimeExceeded(seconds, *running(), span=_user_location(frame))
            exceeded.tried = (refused_attempts() or [""])[-1]
            if (loop := asyncio._get_running_loop()) is not None:
                loop.call_soon_threadsafe(leave)
                ticks = STEP_TICKS
        elif exceeded.span is None:  # at the first tick no line of the user's code was running
            exceeded.span = _user_location(frame)
        ticks -= 1
        if ticks < -STEP_TICKS or (ticks < 0 and not _is_finalizer(frame)):
            leave()

    def leave() -> None:
        nonlocal ticks
        ticks = REPEAT_TICKS
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
                abandon_threads(set(threading.enumerate()) - threads)
            raise
    finally:
        alarm.stop()
        alarm.ring = lambda _: None  # the other one refers to the alarm
    if exceeded is not None:
        exceeded.left_behind = abandon_threads(set(threading.enumerate()) - threads)
        raise exceeded


def _is_finalizer(frame: FrameType | None) -> bool:
    """True in code that runs while an object is freed: what it raises goes nowhere."""
    while frame is not None:
        if frame.f_code.co_name == "__del__" or frame.f_code.co_filename in _FINALIZERS:
            return True
        frame = frame.f_back
    return False


def _user_location(frame: FrameType | None) -> Span | None:
    """Return the location of the innermost frame in the user's code: not in Python, a package or the harness."""
    while frame is not None and frame.f_code.co_filename != _RUN_FILE:
        file = frame.f_code.co_filename
        if not file.startswith(_NOT_USER_CODE) and "site-packages" not in file:
            return Span(shown_path(Path(file)), frame.f_lineno, 1)
        frame = frame.f_back
    return None


_RUN_FILE: Final = str(Path(__file__).with_name("run.py"))
"""The frames of a run are those inside this file's."""
_NOT_USER_CODE: Final = (str(Path(__file__).parent.parent), str(Path(threading.__file__).parent), "<")

_SHUTDOWN_THREAD: Final = "(_do_shutdown)"
"""Name suffix of asyncio's thread that waits for the worker threads of a loop."""

_abandoned: Final[list[threading.Thread]] = []


def abandon_threads(threads: Collection[threading.Thread], numbers: Iterable[int] = ()) -> int:
    """Make threads exit when they next run Python code, also those that have only a number.

    Return the number of those that Python would wait for at exit.
    """
    named = {one.ident for one in threads if one.ident and not one.name.endswith(_SHUTDOWN_THREAD)}
    for number in (*named, *numbers):
        exit_ = ctypes.py_object(SystemExit)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(number), exit_)
    for thread in threads:
        thread.join(0.05)
    waited_for = [thread for thread in threads if thread.is_alive() and not thread.daemon]
    _abandoned.extend(waited_for)
    return len(waited_for)


def has_abandoned_threads() -> bool:
    """True if this process cannot exit by itself, because an abandoned thread is still running."""
    return any(thread.is_alive() for thread in _abandoned)


_SHOWN: Final = 3


class Progress:
    """The current position of a run. `listener` is called with a text when a node, a call or a check begins.

    `trace` is that of the run, complete or so far; None if no graph has run. `stopped` is True once a
    KeyboardInterrupt told the run to end, which code in between may turn into a failure.
    """

    def __init__(self) -> None:
        self.listener: Callable[[str], None] | None = None
        self.trace: Trace | None = None
        self.stopped = False
        self._check = ""

    def begin(self) -> None:
        """Start a run. Its manifest is loaded first."""
        self.trace, self._check = None, ""
        if self.listener is not None:
            self.listener("")

    def raise_if_stopped(self) -> None:
        """Raise the KeyboardInterrupt that told a run to end, if one did.

        Raises:
            KeyboardInterrupt: it did.
        """
        if self.stopped:
            raise KeyboardInterrupt

    def watch(self, trace: Trace) -> None:
        """Follow the run in this trace."""
        self.trace = trace
        if self.listener is not None:
            trace.listener = self._tell

    def check(self, name: str) -> None:
        """Note that a check begins."""
        self._check = f"check '{name}'"
        if self.listener is not None:
            self.listener(self._check)

    def doing(self) -> tuple[str, str | None]:
        """Return a text that describes the current activity, and the node it is in, if any."""
        if self._check:
            return self._check, None
        if self.trace is None:
            return "loading the manifest", None
        calls: dict[int, Event] = {}
        visits: dict[tuple[str, str], Event] = {}
        for event in self.trace.events:
            kind = event["event"]
            if kind == "call":
                calls[event["call"]] = event
            elif kind == "answer":
                calls.pop(event["call"], None)
            elif kind in ("node_start", "node_resume"):
                visits[event["graph"], event["node"]] = event
            elif kind in ("node_end", "node_error", "node_pause"):
                visits.pop((event["graph"], event["node"]), None)
        under_way = [*calls.values()] or [*visits.values()]
        texts = [_text(event) for event in under_way[:_SHOWN]]
        return ", ".join(texts), (under_way[0]["node"] if under_way else None)

    def _tell(self, event: Event) -> None:
        if self.listener is not None and event["event"] in ("call", "node_start", "node_resume"):
            self.listener(_text(event))


def _text(event: Event) -> str:
    if event["event"] == "call":
        return f"{event['kind']} '{event['name']}' of node '{event['node']}'"
    return f"node '{event['graph']}{event['node']}'"


progress: Final = Progress()
"""The progress of this process, in which scenarios run one after another."""
