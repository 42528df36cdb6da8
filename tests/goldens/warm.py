"""A process that has run each kind of command once, and forks for each further one: that takes a tenth of the time.

Parsers, models and tables that the first run builds are there already. The forks are processes as those of
`tests/forked.py`, each with its own streams, environment and folder.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[2])

from tests import forked

WARM_UP = (
    "validate scenarios --imports",
    "run scenarios -v --history history.jsonl",
    "gate reports/latest",
    "summary reports/latest",
    "show agents/shop.yaml -f svg -o graph.svg",
)


@cache
def _process() -> subprocess.Popen[str]:
    """Return the process that forks; it ends with this one."""
    return forked.Process([Path(__file__)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def run(
    args: Sequence[str], *, folder: Path, env: Mapping[str, str], stdin: Path
) -> subprocess.CompletedProcess[str]:
    """Run an installed command to its end and return its exit code and output."""
    process = _process()
    assert process.stdin is not None
    assert process.stdout is not None
    with TemporaryDirectory() as temporary:
        streams = [str(stdin), f"{temporary}/stdout", f"{temporary}/stderr"]
        request = [[str(forked.BIN / args[0]), *args[1:]], str(folder), dict(env), streams]
        process.stdin.write(f"{json.dumps(request)}\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        out, err = (Path(stream).read_text(encoding="utf-8", errors="replace") for stream in streams[1:])
        return subprocess.CompletedProcess(args, code, out, err)


def _warm_up() -> None:
    """Run a command of each kind in this process."""
    from click.testing import CliRunner

    from harness.cli.main import COMMANDS, cli

    for command in COMMANDS:
        import_module(f"harness.cli.{command.replace('-', '_')}")
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        for line in ("init .", *WARM_UP):
            done = CliRunner().invoke(cli, line.split(), prog_name="harness")
            assert done.exit_code == 0, f"{line}: {done.output}"
        os.chdir("/")
    for name in [name for name in sys.modules if name.startswith("shop_")]:
        del sys.modules[name]


def _serve() -> None:
    """Fork a process for each request on standard input, and print its exit code. Returns in a fork that is ready."""
    for line in sys.stdin:
        args, folder, env, streams = json.loads(line)
        pid = os.fork()
        if pid == 0:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            opened = [os.open(streams[0], os.O_RDONLY), *(os.open(path, flags) for path in streams[1:])]
            forked.become(forked.Start(args, folder, env, False, False), opened)
            return forked.run_script()
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    os._exit(0)


if __name__ == "__main__":
    _warm_up()
    gc.collect()
    gc.freeze()
    _serve()
