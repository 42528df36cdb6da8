"""Runs the scripts of nodes as real child processes, confined as far as the system allows.

A script gets the variables of its call and the few that every program needs, a working directory, and its input. It
has its own process group, which is ended with it. If the system allows, it also has its own network namespace,
without connections, and its own process namespace, so that a child that left the group is ended as well. If the
system does not, `Scripts.warnings` has a warning.

Time-outs are in real seconds. Virtual time advances by the duration of the script, rounded down to a multiple of
`STEP_S`, or by the time-out of a script that timed out. So a run has the same times on every rerun, also on a busy
machine, where a short script takes seconds.
"""

from __future__ import annotations

import asyncio
import math
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

from harness.errors import WorldError
from harness.graph.effects import ScriptCall
from harness.secrets.secrets import note_given
from harness.time.paced import RealWork
from harness.time.real import real

# Variables that programs need to find others, to write temporary files, and to print text.
INHERITED: Final = ("PATH", "HOME", "TMPDIR", "SYSTEMROOT")
LOCALE: Final = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}

STEP_S: Final = 10

_NAMESPACES: Final = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--map-current-user")
# The init process of a process namespace has no default signal handlers, so the script is a child of a shell.
_FIRST: Final = ("sh", "-c", '"$@"; exit $?', "sh")

_POLL_S: Final = 0.05  # poll interval for the exit of a script whose output a child may keep open
_DRAIN_S: Final = 1.0  # time limit for reading the rest of the output of a script that has exited
_CHUNK: Final = 65536
_SHOWN: Final = 500  # characters of standard error in messages

NOT_CONFINED: Final = (
    "scripts run without a network namespace: this system refuses `unshare --net --pid`, so a script may reach the "
    "network, and a child that leaves its process group may outlive it"
)


class ScriptFailed(Exception):
    """A script did not start, exited with a code other than 0, took too long, or printed too much."""


class ProgramMissing(WorldError, ScriptFailed):
    """The program that runs a script is not installed. The script may work elsewhere, so the run cannot be judged."""

    code = "program-missing"


class Scripts:
    """Runs the scripts of one run. `close` ends running scripts and removes temporary files.

    Args:
        confined: keep scripts from the network; False if the run itself may reach it.
    """

    def __init__(self, *, confined: bool = True) -> None:
        self.warnings: dict[str, None] = {}
        self._confined = confined
        self._files = ExitStack()
        self._running: set[_Process] = set()

    async def run(self, call: ScriptCall) -> Any:
        """Run a script and return `call.read` of its standard output.

        Raises:
            ProgramMissing: the program that runs it is not installed.
            ScriptFailed: it failed; the text has the reason and the end of its standard error.
            Exception: raised by `call.read`.
        """
        note_given(call.env)
        argv = [_program(call), *call.argv[1:]]
        process = _Process([*self._confinement(), *argv], call, self._environment(call))
        self._running.add(process)
        work = RealWork()
        try:
            # In a thread, which stops the loop's clock. Not in the loop's thread pool, whose threads may all be busy
            # for longer than the script may take.
            thread = ThreadPoolExecutor(1, "script")
            finish = asyncio.get_running_loop().run_in_executor(thread, process.finish)
            thread.shutdown(wait=False)
            finish.add_done_callback(_retrieve_exception)
            await asyncio.wait([finish])
            await asyncio.sleep(process.virtual_seconds)
            return call.read(finish.result())
        finally:
            process.end()
            self._running.discard(process)
            work.abandon()

    def close(self) -> None:
        """End all scripts, and remove their input files."""
        for process in self._running:
            process.end()
        self._files.close()

    def _confinement(self) -> Sequence[str]:
        if not self._confined:
            return ()
        if not can_confine():
            self.warnings[NOT_CONFINED] = None
            return ()
        return _confining()

    def _environment(self, call: ScriptCall) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        files = {name: self._file(text) for name, text in call.files.items()}
        return {**inherited, **LOCALE, **call.env, **call.inputs, **files}

    def _file(self, text: str) -> str:
        folder = self._files.enter_context(tempfile.TemporaryDirectory(prefix="script-"))
        path = Path(folder) / "input"
        path.write_text(text, encoding="utf-8")
        return str(path)


def _program(call: ScriptCall) -> str:
    """Return the program of a call: on its PATH, or as npx finds it, in a `node_modules` of the folder or above.

    Raises:
        ProgramMissing: it does not exist.
    """
    name = call.argv[0]
    folder = Path(call.cwd or ".").absolute()
    local = os.pathsep.join(str(above / "node_modules/.bin") for above in (folder, *folder.parents))
    found = shutil.which(name, path=call.env.get("PATH")) or shutil.which(name, path=local)
    if found is None:
        raise ProgramMissing(f"the script needs the program '{name}', which is not on the PATH")
    return found


def _confining() -> tuple[str, ...]:
    """Return the command that confines another, with whole paths, as a script may have a PATH of its own."""
    unshare, shell = (shutil.which(name) or name for name in (_NAMESPACES[0], _FIRST[0]))
    return (unshare, *_NAMESPACES[1:], shell, *_FIRST[1:])


@cache
def can_confine() -> bool:
    """True if the system allows a process its own network and process namespaces."""
    with suppress(OSError, subprocess.TimeoutExpired):
        command = (*_confining(), "true")
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    return False


class _Process:
    """A running script. `virtual_seconds` is its duration, once it has ended."""

    def __init__(self, argv: Sequence[str], call: ScriptCall, environment: Mapping[str, str]) -> None:
        self._call = call
        self._began = real.monotonic()
        self.virtual_seconds = 0.0
        with ExitStack() as files:
            stdin: IO[bytes] | int = subprocess.DEVNULL
            if call.stdin:
                stdin = files.enter_context(tempfile.TemporaryFile())
                stdin.write(call.stdin.encode())
                stdin.seek(0)
            try:
                self._process = subprocess.Popen(
                    argv,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=call.cwd,
                    env=environment,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:  # no such program, an argument with a NUL
                raise ScriptFailed(f"the script cannot be started: {error}") from None

    def finish(self) -> str:
        """Wait for the script to end, and return its standard output.

        Raises:
            ScriptFailed: as for `Scripts.run`.
        """
        try:
            stdout, stderr = self._read()
        finally:
            self.end()
            code = self._process.wait()
            if not self.virtual_seconds:
                self.virtual_seconds = (real.monotonic() - self._began) // STEP_S * STEP_S
        if code:
            reason = f"was ended by signal {-code}" if code < 0 else f"exited with code {code}"
            raise ScriptFailed(f"the script {reason}{_stderr_tail(stderr)}")
        return stdout.decode("utf-8", "replace")

    def end(self) -> None:
        """Kill the script and its process group, if they are running."""
        # Until the process is waited for, its id is not reused.
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _read(self) -> tuple[bytes, bytes]:
        """Read standard output and standard error to their ends, within the limits of time and size."""
        call, process = self._call, self._process
        assert process.stdout is not None
        assert process.stderr is not None
        stdout, stderr = bytearray(), bytearray()
        deadline = math.inf if call.timeout_s is None else self._began + call.timeout_s
        with selectors.DefaultSelector() as selector, process.stdout, process.stderr:
            selector.register(process.stdout, selectors.EVENT_READ, stdout)
            selector.register(process.stderr, selectors.EVENT_READ, stderr)
            while selector.get_map():
                left = deadline - real.monotonic()
                if left <= 0 and not self._has_exited():
                    self.virtual_seconds = call.timeout_s or 0.0
                    raise ScriptFailed(f"the script timed out after {call.timeout_s:g} s")
                ready = selector.select(max(0.0, min(_POLL_S, left)))
                if left <= 0 and not ready:  # a child that left the group keeps the output open
                    break
                for key, _ in ready:
                    part = os.read(key.fd, _CHUNK)
                    text: bytearray = key.data
                    text += part
                    if not part:
                        selector.unregister(key.fileobj)
                    if len(text) > call.output_limit:
                        raise ScriptFailed(f"the script printed more than {call.output_limit:,} bytes")
                if self._has_exited():
                    self.end()  # children that are still running would keep the output open
                    deadline = min(deadline, real.monotonic() + _DRAIN_S)
        return bytes(stdout), bytes(stderr)

    def _has_exited(self) -> bool:
        """True if the script itself has ended. It is not waited for, so that its id is not reused."""
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _retrieve_exception(finish: asyncio.Future[str]) -> None:
    """Retrieve the exception, so that asyncio does not log it if the call was cancelled."""
    if not finish.cancelled():
        finish.exception()


def _stderr_tail(stderr: bytes) -> str:
    """Return the end of standard error for a message."""
    text = stderr.decode("utf-8", "replace").strip()
    return f": {text[-_SHOWN:]}" if text else ""
