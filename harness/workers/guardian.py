"""A process beside the command, which writes its report where the command itself cannot do so any more.

    command ──notes in shared memory──▶ guardian, which waits for their end, then runs harness.workers.rescue

Code in C that never ends holds the interpreter, so that no other code of its process runs, and a crash ends the
process. The guardian needs nothing of it. It is this file, run with the standard library alone, so that it begins at
once and needs little; it imports the harness only where it has to take over.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")

BETWEEN, RUNNING, REPORTED = range(3)
"""States of the command: it is between two runs, makes one, or has written its report."""
SIZE: Final = 4096
OVERTIME_S: Final = 5.0
"""Real seconds past its limit after which a run cannot be interrupted."""
_EXIT_S: Final = 10.0
"""Real seconds that the command may take to leave when it has written its report."""
_POLL_S: Final = 0.1
_HEADER: Final = struct.Struct("=BId")
_DOING: Final = SIZE // 2
"""The place at which the text about the current activity begins."""


class Note(NamedTuple):
    """The state of the command, for how many real seconds it may last (0: without a limit), and in which run."""

    state: int
    number: int
    limit_s: float
    run: str
    doing: str


def read_note(memory: Any) -> Note:
    """Return the note in the shared memory."""
    run, doing = (
        memory[at:end].split(b"\0\0", 1)[0].decode("utf-8", "replace")
        for at, end in ((_HEADER.size, _DOING), (_DOING, SIZE))
    )
    state, number, limit_s = _HEADER.unpack_from(memory)
    return Note(state, number, limit_s, run, doing)


class Guardian:
    """The guardian of this process. `task` is what `harness.workers.rescue` needs, as bytes."""

    def __init__(self, task: bytes) -> None:
        self._number = 0
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as the process runs
        self._file.write(bytes(SIZE) + task)
        self._file.flush()
        number = self._file.fileno()
        self._memory = mmap.mmap(number, SIZE)
        command = [sys.executable, "-I", "-S", __file__, str(number), str(os.getpid())]
        self._process = subprocess.Popen(command, pass_fds=[number], stdin=subprocess.DEVNULL, stdout=2)
        # To end this process with this number as its exit code, which works while code in C holds the interpreter.
        libc = ctypes.CDLL(None)
        libc.signal(signal.SIGQUIT, ctypes.cast(libc._exit, ctypes.c_void_p))

    def guarded(self, runs: Iterator[T], name: str, limit_s: float) -> Iterator[T]:
        """Yield from the runs of a scenario, each of which may take `limit_s` real seconds; 0 is no limit."""
        number = 0
        while True:
            sys.stdout.flush()  # as what is held would be lost
            self._note(RUNNING, limit_s and limit_s + OVERTIME_S, f"{number}\0{name}")
            made = next(runs, None)
            self._note(BETWEEN, 0, f"{number}\0{name}")
            if made is None:
                return
            yield made
            number += 1

    def doing(self, text: str) -> None:
        """Note the current activity of the run."""
        encoded = text.encode("utf-8", "replace")[: SIZE - _DOING - 2] + b"\0\0"
        self._memory[_DOING : _DOING + len(encoded)] = encoded

    def reported(self) -> None:
        """Tell that the report is written."""
        self._note(REPORTED, 0, "")

    def leave(self, *, has_more: bool) -> None:
        """Tell that the process is about to leave. It is watched further if code of runs has more to do."""
        if has_more:
            self._note(REPORTED, _EXIT_S, "")
        else:
            self._process.kill()
            self._process.wait()

    def _note(self, state: int, limit_s: float, run: str) -> None:
        self._number += 1
        encoded = run.encode("utf-8", "replace")[: _DOING - _HEADER.size - 2] + b"\0\0"
        self._memory[_HEADER.size : _HEADER.size + len(encoded)] = encoded
        _HEADER.pack_into(self._memory, 0, state, self._number, limit_s)


def _watch(file: int, command: int) -> None:
    """Wait for the end of the command, or of the time of a run. Time while this process is stopped does not count."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    memory = mmap.mmap(file, SIZE)
    number, waited_s = -1, 0.0
    while True:
        time.sleep(_POLL_S)  # noqa: TID251 - nothing runs in this process
        has_ended = os.getppid() != command
        note = read_note(memory)
        waited_s = waited_s + _POLL_S if note.number == number else 0.0
        number = note.number
        if has_ended and note.state == REPORTED:
            return
        if has_ended or 0 < note.limit_s < waited_s:
            os.set_inheritable(file, True)
            rescue = [
                sys.executable,
                "-m",
                "harness.workers.rescue",
                str(file),
                str(0 if has_ended else command),
            ]
            os.execv(sys.executable, rescue)


def end(command: int) -> None:
    """End the command with 3 as its exit code: something could not be judged."""
    for number in (signal.SIGQUIT, signal.SIGKILL):  # the first may be blocked
        for _ in range(20):
            if os.getppid() != command:
                return
            with suppress(ProcessLookupError):
                os.kill(command, number)
            time.sleep(_POLL_S / 2)  # noqa: TID251 - see above


if __name__ == "__main__":
    _watch(int(sys.argv[1]), int(sys.argv[2]))
