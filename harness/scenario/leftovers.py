"""Threads, processes and handlers of the exit that the code of a run leaves at work when the run has ended.

Threads that do the project's work are told to end; what they send is refused (`harness.interception.real_effects`).
Idle threads of a library, such as the workers of a pool, are left alone: a later run may use them. When the process
leaves, nothing that runs have left reaches the network, or keeps it from ending.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, Final
from weakref import WeakSet

from harness.interception.real_effects import note_late
from harness.scenario.real_limit import abandon_threads, has_abandoned_threads
from harness.source.display import clip
from harness.source.document import shown_path
from harness.time.alarms import set_handler
from harness.time.real import real
from harness.time.rebinding import USER, origin
from harness.world.network import close_network_for_good, started_processes

OFFER: Final = '`isolation = "process"` keeps it from other runs'
_LEAVE_S: Final = 5.0
"""Real seconds that handlers and threads may take at the exit of the process."""
_BEGIN_S: Final = 0.01
"""Real seconds in which a process that was just started gets its command line."""
_SHOWN: Final = 80
"""Characters of a command that are shown."""

at_cut_off: Final[list[Callable[[], None]]] = []
"""Called when the process is about to leave, and code that runs have left has more to do."""


class _Left:
    """All that the runs of this process have left."""

    exit_code: int | None = None
    """That of the command, when it is about to leave."""
    handlers = 0
    """The number of functions that they have registered with atexit."""
    threads: ClassVar[WeakSet[threading.Thread]] = WeakSet()
    """Those that Python waits for at exit."""
    processes: ClassVar[set[int]] = set()
    """Those that still ran at the end of a run."""
    children: ClassVar[set[int]] = set()
    """The processes that ran when this one had started `started` of them."""
    started = -1


@contextmanager
def leftovers_found(left: list[str]) -> Iterator[None]:
    """On exit, tell threads to end that were started inside, note what else is left, and add warnings to `left`.

    To be used inside of what restores the state of the process, which they would change again.
    """
    _watch_exit(os.getpid())
    threads, handlers = set(sys._current_frames()), _handlers()
    _note_children()
    try:
        yield
    finally:
        _Left.handlers += max(0, _handlers() - handlers)
        if started := sys._current_frames().keys() - threads:
            left += _end_threads(started)
        before = _Left.children
        if _note_children() and (new := _Left.children - before):
            left += _named(new)


_handlers: Final[Callable[[], int]] = getattr(atexit, "_ncallbacks", lambda: 0)

# ---------------------------------------------------------------- the exit


def note_exit_code(code: object) -> None:
    """Note the code with which this process, that of a command, is about to leave."""
    _Left.exit_code = code if isinstance(code, int) else 0


@cache
def _watch_exit(process: int) -> None:
    """Have `_leave` called when this process begins to leave, before it waits for threads."""
    threading._register_atexit(partial(_leave, process))  # type: ignore[attr-defined]


def _leave(process: int) -> None:
    if _Left.exit_code is None or os.getpid() != process:  # a program that has made runs, or a fork
        return
    close_network_for_good()
    end_processes()
    if has_abandoned_threads():
        _exit()
    waits = _Left.handlers or any(thread.is_alive() for thread in _Left.threads)
    if waits and hasattr(signal, "setitimer"):
        for call in at_cut_off:
            call()
        set_handler(signal.SIGALRM, _cut_off)
        signal.setitimer(signal.ITIMER_REAL, _LEAVE_S)


def _cut_off(_signal: int, _frame: object) -> None:
    places = {_work(frame) for frame in sys._current_frames().values()} - {""}
    places = places or {f"thread '{thread.name}'" for thread in _Left.threads if thread.is_alive()}
    what = ", ".join(sorted(places))
    text = f"\nwarning: code that runs have left keeps this process from ending in {what}: cut off\n"
    with suppress(OSError):
        os.write(2, text.encode())
    _exit()


def _exit() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(_Left.exit_code or 0)


# ---------------------------------------------------------------- threads


def _end_threads(numbers: set[int]) -> list[str]:
    """Tell threads with these numbers to end, if they do the project's work, and return a warning."""
    objects = {thread.ident: thread for thread in threading.enumerate() if thread.ident in numbers}
    _Left.threads.update(thread for thread in objects.values() if not thread.daemon)
    frames = sys._current_frames()
    found = {number: _work(frames[number], objects.get(number)) for number in numbers & frames.keys()}
    late = {number: work for number, work in found.items() if work}
    if not late:
        return []
    for number in late:
        note_late(number, thread := objects.get(number))
        if thread is not None:
            thread._invoke_excepthook = _say_nothing  # type: ignore[attr-defined]  # of its end, which is told here
        if isinstance(thread, threading.Timer):
            thread.cancel()
    abandon_threads([objects[number] for number in late if number in objects], late.keys() - objects.keys())
    places = ", ".join(sorted(set(late.values())))
    return [f"this run left a thread at work in {places}, which was told to end: {OFFER}"]


def _say_nothing(_thread: object) -> None:
    pass


def _work(frame: FrameType | None, thread: Any = None) -> str:
    """Return the place in the project's code at which a thread works, or will; "" if it does no such work."""
    while frame is not None:
        if origin(frame.f_code.co_filename) is USER:
            return f"{shown_path(Path(frame.f_code.co_filename))}:{frame.f_lineno}"
        frame = frame.f_back
    for function in (getattr(thread, "function", None), getattr(thread, "_target", None)):
        code = getattr(function, "__code__", None)
        if code is not None and origin(code.co_filename) is USER:
            return f"{shown_path(Path(code.co_filename))}:{code.co_firstlineno}"
    return ""


# ---------------------------------------------------------------- processes


def end_processes() -> None:
    """End the processes that runs have left."""
    for process in _Left.processes & _children() if _Left.processes else ():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _note_children() -> bool:
    """Note the processes that this one has started, if it has started any since."""
    started = started_processes()
    if started == _Left.started:
        return False
    _Left.started, _Left.children = started, _children()
    return True


def _children() -> set[int]:
    """Return the numbers of the processes that this one has started, where the system tells."""
    found: set[int] = set()
    with suppress(OSError):  # the run may open no more files
        for file in Path("/proc/self/task").glob("*/children"):
            with suppress(OSError):  # the thread that started them has ended just now
                found.update(map(int, file.read_text().split()))
    return found


def _named(processes: set[int]) -> list[str]:
    """Return the warning of a run that has left these processes."""
    commands = []
    real.sleep(_BEGIN_S)
    for process in processes:
        with suppress(OSError):
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
            command = b" ".join(words).decode("utf-8", "replace").strip()
            if command and "from multiprocessing." not in command:  # what has ended, and Python's own helpers
                _Left.processes.add(process)
                commands.append(clip(command, _SHOWN))
    if not commands:
        return []
    return [f"this run left a process at work, which ends with the command: {', '.join(commands)}"]
