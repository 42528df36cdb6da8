"""A process that has run each kind of command once, and forks for each session: that takes a tenth of the time.

Parsers, models and tables that the first run builds are there already. A fork is a process as those of
`tests/forked.py`, with its own environment and folder. It runs the commands of its session one after the other.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
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

STREAMS = ("stdout", "stderr")
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
    commands: Sequence[Sequence[str]], *, folder: Path, env: Mapping[str, str]
) -> list[subprocess.CompletedProcess[str]]:
    """Run installed commands one after the other, and return the exit code and output of each."""
    process = _process()
    assert process.stdin is not None
    assert process.stdout is not None
    with TemporaryDirectory() as temporary:
        request = [commands, str(folder), dict(env), temporary]
        process.stdin.write(f"{json.dumps(request)}\n")
        process.stdin.flush()
        codes = json.loads(process.stdout.readline())
        assert len(codes) == len(commands), f"the process ended in {commands[len(codes)]}"
        return [
            subprocess.CompletedProcess(args, code, *(_read(temporary, number, name) for name in STREAMS))
            for number, (args, code) in enumerate(zip(commands, codes, strict=True))
        ]


def _read(folder: str, number: int, stream: str) -> str:
    return Path(folder, f"{number}.{stream}").read_text(encoding="utf-8", errors="replace")


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
    """Fork a process for each request on standard input, and print the exit codes of its commands."""
    for line in sys.stdin:
        commands, folder, env, temporary = json.loads(line)
        codes = Path(temporary, "codes")
        codes.touch()
        pid = os.fork()
        if pid == 0:
            for number, args in enumerate(commands):
                code = _run(args, folder, env, [f"{temporary}/{number}.{stream}" for stream in STREAMS])
                with codes.open("a") as file:
                    file.write(f"{code}\n")
            os._exit(0)
        os.waitpid(pid, 0)
        print(json.dumps([int(code) for code in codes.read_text().split()]), flush=True)
    os._exit(0)


def _run(args: Sequence[str], folder: str, env: Mapping[str, str], streams: Sequence[str]) -> int:
    """Run a command in this process, and return its exit code."""
    opened = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for path in streams]
    start = forked.Start([str(forked.BIN / args[0]), *args[1:]], folder, env, False, False)
    forked.become(start, [os.open(os.devnull, os.O_RDONLY), *opened])
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
        status: object = 0
    except SystemExit as end:
        status = end.code or 0
    sys.stdout.flush()
    sys.stderr.flush()
    return status if isinstance(status, int) else 1


if __name__ == "__main__":
    _warm_up()
    gc.collect()
    gc.freeze()
    _serve()
