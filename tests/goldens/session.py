"""A session: commands that run one after the other in a temporary folder, and the transcript of what they write.

The files of a folder come from an archive of `data/`: a text in which a line `-- PATH --` begins a file.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tests.goldens import warm
from tests.goldens.normal import ROOT, content, normal, sha256

DATA = Path(__file__).with_name("data")
WIDTH = 100
_FILE = re.compile(r"^-- (\S+) --\n", re.M)


class Case(NamedTuple):
    """A golden text.

    Attributes:
        name: the name of the file in `expected/`.
        commands: command lines, `harness …`, `pytest …` or `cp FROM TO`.
        archives: archives of `data/` with the files of the folder.
        copies: files and folders of the project that are copied into it.
        keeps: files whose text counts, as globs.
        hashes: files whose SHA-256 counts, as globs.
        env: additional environment variables.
        slow: only `python -m tests.test_goldens --check` compares it, not `make test`.
    """

    name: str
    commands: Sequence[str]
    archives: Sequence[str] = ()
    copies: Sequence[str] = ()
    keeps: Sequence[str] = ()
    hashes: Sequence[str] = ()
    env: Mapping[str, str] = {}
    slow: bool = False


def files_of(archive: str) -> Iterator[tuple[str, str]]:
    """Yield the files of an archive of `data/`, as path and text."""
    _, *parts = _FILE.split(DATA.joinpath(f"{archive}.txtar").read_text(encoding="utf-8"))
    yield from zip(parts[::2], parts[1::2], strict=True)


def prepare(case: Case, folder: Path) -> None:
    """Write the files of a case into a folder."""
    for copied in case.copies:
        copy(ROOT / copied, folder / Path(copied).name)
    for archive in case.archives:
        for path, text in files_of(archive):
            folder.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
            folder.joinpath(path).write_text(text, encoding="utf-8")


def copy(source: Path, target: Path) -> None:
    """Copy a file, or a folder without what Python and hidden files leave in it."""
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    else:
        shutil.copy(source, target)


def environment(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return all variables of a command: few, so that those of the machine make no difference."""
    passed = ("TZ", "SSL_CERT_DIR", "PYTHONDONTWRITEBYTECODE")
    return {
        **{name: os.environ[name] for name in passed if name in os.environ},
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(folder),
        "COLUMNS": str(WIDTH),
        **env,
    }


def run(lines: Sequence[str], folder: Path, env: Mapping[str, str]) -> list[subprocess.CompletedProcess[str]]:
    """Run command lines in a folder, one after the other in one process."""
    return warm.run([shlex.split(line) for line in lines], folder=folder, env=environment(folder, env))


def transcript(case: Case, folder: Path) -> str:
    """Run a case in an empty folder and return its golden text."""
    prepare(case, folder)
    folders = {folder: "FOLDER", folder.resolve(): "FOLDER"}
    written = []
    for copies, lines in groupby(case.commands, lambda line: line.startswith("cp ")):
        batch = list(lines)
        if copies:
            for line in batch:
                copy(*(folder / path for path in line.split()[1:]))
        else:
            ended = zip(batch, run(batch, folder, case.env), strict=True)
            written += [f"$ {line}\n{output(done)}" for line, done in ended]
    written += [part(path, content(folder / path, folders)) for path in found(folder, case.keeps)]
    written += [
        f"==== {path}  {sha256(content(folder / path, folders))}\n" for path in found(folder, case.hashes)
    ]
    return normal("".join(written), folders)


def output(done: subprocess.CompletedProcess[str]) -> str:
    """Return the exit code and the output of a command."""
    streams = (("stdout", done.stdout), ("stderr", done.stderr))
    return f"exit code {done.returncode}\n" + "".join(part(name, text) for name, text in streams if text)


def part(name: str, text: str) -> str:
    return f"==== {name}\n{text}" + ("" if text.endswith("\n") else "\n==== no line end\n")


def found(folder: Path, globs: Sequence[str]) -> list[str]:
    """Return the files of a folder that globs match, sorted, relative to the folder."""
    files = {
        path
        for glob in globs
        for path in folder.glob(glob)
        if path.is_file() and path.parent.name != "__pycache__"
    }
    return sorted(str(path.relative_to(folder)) for path in files)
