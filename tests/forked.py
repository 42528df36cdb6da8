"""A fork server for tests: starts installed commands in milliseconds, as forks of a process that has imported them.

The forks are ordinary processes, each with its own signals, environment, working folder and standard streams. Use
`Process` and `run` like `subprocess.Popen` and `subprocess.run`, with an installed command or the path of a script.
Variables that Python reads only when it starts (`PYTHONHASHSEED`, `PYTHONPATH`) are refused: a test that needs them
uses `subprocess`.

    pytest worker ──command, environment, streams──▶ server ──fork──▶ supervisor ──fork──▶ the script
                  ◀───────────── pid, and the exit status ────────────────┘

All workers of a test run share one server, which ends when the last of them disconnects. The workers themselves are
forked from a second server (`fork_workers`).
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import multiprocessing.util
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fcntl import LOCK_EX, flock
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

IMPORTED = (
    "harness.cli.run", "harness.cli.session", "harness.dialects.agentspec.compile",
    "harness.dialects.leafmesh.compile", "harness.dialects.loki.compile", "harness.dialects.sherma.compile",
    "harness.dialects.yagra.compile", "harness.engine.superstep", "harness.expressions.lowering",
    "harness.plugin.collection", "harness.recording.human", "harness.report.console", "harness.report.html.page",
    "harness.report.results", "harness.scenario.run",
    "harness.serve", "harness.variants.application", "harness.workers.worker", "httpx", "hypothesis", "jinja2",
    "jsonschema", "langchain_anthropic", "langchain_openai", "mcp.client.stdio", "mcp.client.streamable_http",
    "mcp.server", "pdb", "requests", "rich.progress", "rich.table", "starlette.applications", "uvicorn", "vcr",
    "xdist.dsession", "xdist.remote", "xdist.workermanage",
    *(plugin.module for plugin in entry_points(group="pytest11")),
)  # fmt: skip
STARTUP_VARIABLES = ("PYTHONHASHSEED", "PYTHONPATH", "PYTHONUTF8", "PYTHONWARNINGS")
OWN_VALUES = {name: os.environ.get(name) for name in STARTUP_VARIABLES}
HASH_SEED = os.environ.get("FORKED_HASH_SEED", "4711")
"""The hash seed of forked processes; pytest itself runs with others, so tests see results that depend on it."""

BIN = Path(sys.executable).parent
FOLDER = Path(tempfile.gettempdir()) / f"forked-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}"
"""The folder with the server's socket and lock, shared by all workers of this test run."""


class Start(NamedTuple):
    """A request to the server; the standard streams and the status pipe are sent with it as descriptors."""

    args: Sequence[str]
    folder: str
    env: Mapping[str, str]
    new_session: bool
    at_terminal: bool


# ---------------------------------------------------------------- for tests


class Process(subprocess.Popen[str]):
    """A running command or script. `at_terminal`: standard input is a terminal, and becomes its controlling one."""

    def __init__(self, args: Sequence[str | Path], *, at_terminal: bool = False, **options: Any) -> None:
        self._at_terminal = at_terminal
        self._status = -1
        super().__init__([str(BIN / args[0]), *map(str, args[1:])], **{"encoding": "utf-8", **options})

    def _execute_child(self, args: Sequence[str], *given: Any) -> None:
        """Start the process through the server; overrides the private hook of `Popen`, all else is inherited."""
        folder, env, pipes, new_session = given[4], given[5], given[9:15], given[20]
        env = dict(os.environ if env is None else env)
        if unread := [name for name in STARTUP_VARIABLES if name in env and env[name] != OWN_VALUES[name]]:
            raise ValueError(
                f"{', '.join(unread)}: only the start of Python reads it; start this with subprocess"
            )
        streams = [own if pipe == -1 else pipe for own, pipe in enumerate((pipes[0], pipes[3], pipes[5]))]
        self._status, written = os.pipe()
        start = Start(args, str(folder or Path.cwd()), env, new_session, self._at_terminal)
        server = _server()
        socket.send_fds(server, [f"{json.dumps(start)}\n".encode()], [*streams, written])
        pid = server.recv(32)
        os.close(written)
        if not pid:
            raise RuntimeError("the server of forked processes has ended: standard error says why")
        self.pid = int(pid)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def poll(self) -> int | None:
        with_status, _, _ = select.select([self._status] if self.returncode is None else [], [], [], 0)
        return self.wait() if with_status else self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(int(os.read(self._status, 32)))
            os.close(self._status)
        return self.returncode


def run(
    args: Sequence[str | Path], *, timeout: float = 120, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and return its exit code and output; kill it after `timeout` seconds."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Process(args, **{**pipes, **options}) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def command(*args: str | Path) -> tuple[str, ...]:
    """Return a command line, for programs that start processes, that runs this command through the server."""
    _server()
    return sys.executable, "-I", "-S", __file__, "start", str(FOLDER), *map(str, args)


def workers(number: int) -> tuple[str, str]:
    """Return pytest arguments equivalent to `-n NUMBER`, with forked workers."""
    python = shlex.join(command(__file__, "python"))
    return "--dist=load", f"--tx={number}*popen//python={python}"


def fork_workers(specs: Sequence[Any]) -> None:
    """Make xdist fork the workers of these specifications, as `workers` does.

    They have a server of their own, whose hash seed is random.
    """
    _server("random")
    for spec in specs:
        spec.python = shlex.join(command(__file__, "python"))


@cache
def _server(hash_seed: str = HASH_SEED) -> socket.socket:
    """Return a connection to the server; the first caller of all workers starts it."""
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    address = str(FOLDER / "socket")
    connection = socket.socket(socket.AF_UNIX)
    with (FOLDER / "lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not os.path.exists(address):
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(address)
                listening.listen()
                listening.set_inheritable(True)
                begin = [sys.executable, __file__, "serve", str(listening.fileno())]
                no_input = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
                env = {**os.environ, "PYTHONHASHSEED": hash_seed}
                os.posix_spawn(sys.executable, begin, env, file_actions=[no_input], setsid=True)
        connection.connect(address)
    atexit.register(connection.close)
    return connection


# ---------------------------------------------------------------- the server


def serve(listening: socket.socket) -> tuple[Start, Sequence[int]] | None:
    """Fork a process for each request. Returns None when all clients are gone; in a fork, its request and streams."""
    connections: list[socket.socket] = [listening.accept()[0]]
    while connections:
        ready, _, _ = select.select([listening, *connections], [], [])
        for client in ready:
            if client is listening:
                connections.append(listening.accept()[0])
                continue
            asked, fds, _, _ = socket.recv_fds(client, 1 << 20, 4)
            while asked and not asked.endswith(b"\n"):
                asked += client.recv(1 << 20)
            if not asked:
                connections.remove(client)
                client.close()
            elif os.fork() == 0:
                forked = _supervise(client, Start(*json.loads(asked)), fds)
                for connection in (listening, *connections):
                    connection.close()
                return forked
            for fd in fds:
                os.close(fd)
    return None


def _supervise(client: socket.socket, start: Start, fds: Sequence[int]) -> tuple[Start, Sequence[int]]:
    """Fork the process itself, report its pid and its exit status. Returns in that fork only."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, status = fds
    pid = os.fork()
    if pid == 0:
        os.close(status)
        return start, streams
    client.send(str(pid).encode())
    for fd in streams:
        os.close(fd)
    ended = str(os.waitpid(pid, 0)[1]).encode()
    with suppress(BrokenPipeError):  # the client has ended before
        os.write(status, ended)
    os._exit(0)


def become(start: Start, streams: Sequence[int]) -> None:
    """Give this process the session, streams, folder, environment and arguments of its request."""
    if start.new_session:
        os.setsid()
    if start.at_terminal:
        os.login_tty(os.dup(streams[0]))
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(start.folder)
    os.environ.clear()
    os.environ.update(start.env)
    time.tzset()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    encoding, _, errors = start.env.get("PYTHONIOENCODING", "").partition(":")
    at_once = bool(start.env.get("PYTHONUNBUFFERED"))
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        usual = "backslashreplace" if name == "stderr" else "strict"
        stream: Any = os.fdopen(number, mode, -1, encoding or "utf-8", errors or usual, closefd=False)
        stream.reconfigure(write_through=at_once, line_buffering=name == "stderr" or stream.isatty())
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv = list(start.args)
    sys.path[0] = str(Path(sys.argv[0]).parent)
    multiprocessing.util.spawnv_passfds = _forked_python


def _forked_python(path: bytes, args: Sequence[Any], passfds: Sequence[int]) -> int:
    """Fork instead of starting Python for `multiprocessing`, and run its `-c` code: all imports are done already."""
    if pid := os.fork():
        return pid
    # Python's objects of the parent still own the descriptors, and close them when they are collected: each must stay
    # taken, or such an object closes whatever has got its number since.
    null = os.open(os.devnull, os.O_RDWR)
    for fd in {int(name) for name in os.listdir("/dev/fd")} - {0, 1, 2, null, *passfds}:
        os.dup2(null, fd, inheritable=False)
    command = list(map(os.fsdecode, args))
    code = command.index("-c") + 1
    sys.argv = ["-c", *command[code + 1 :]]
    status: object = 1
    try:
        exec(command[code])
        status = 0
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:  # do not return into the code of the parent
        os._exit(status if isinstance(status, int) else 1)


def run_script() -> None:
    """Run the script that `become` prepared, and exit as Python does, but without tearing modules down.

    Teardown takes longer than most commands: it writes to the modules' memory, which is shared with the server and
    would be copied. If an exception ends the script, or its output cannot be written, Python exits as usual.
    """
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
        status: object = 0
    except SystemExit as end:
        status = end.code or 0
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if not isinstance(status, int):
        sys.exit(str(status))
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(status)
    os._exit(status & 0xFF)


if __name__ == "__main__" and sys.argv[1] == "start":
    FOLDER = Path(sys.argv[2])
    sys.exit(Process(sys.argv[3:]).wait() % 256)
elif __name__ == "__main__" and sys.argv[1] == "python":
    with suppress(BrokenPipeError):  # after Ctrl-C nobody reads the output of an xdist worker
        exec(sys.argv[sys.argv.index("-c") + 1])
elif __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.disable()
    for module in IMPORTED:
        importlib.import_module(module)
    gc.freeze()
    gc.enable()
    rewritten = "_hypothesis_globals", "vcr.matchers"
    for name in (*IMPORTED, *(module.partition(".")[0] for module in IMPORTED), *rewritten):
        sys.modules[name].__doc__ = "PYTEST_DONT_REWRITE"  # or pytest warns: it is too late
    listening = socket.socket(fileno=int(sys.argv[2]))
    folder = Path(listening.getsockname()).parent
    asked = serve(listening)
    if asked:
        become(*asked)
        run_script()
    else:
        shutil.rmtree(folder)
