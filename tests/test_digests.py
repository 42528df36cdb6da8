"""The digest of every run in `scenarios/` and `tests/dialects/*/cases`, byte for byte.

`digests.txt` has a line a run: the digest (64 `-` for a run without a trace), then its id. A digest changes only when
what a run does, or what its trace says, is meant to change. `python -m tests.test_digests` writes the file anew.

The same graph, input, world and seed give the same trace in other processes, under other hash seeds, offline: the
file is written under another hash seed than the test has, whose process has no network where the machine allows that;
and `tests/dialects/conftest.py` holds the cases of the dialects to it under the hash seed of pytest, which is any.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_name("digests.txt")
SUITES = ("scenarios", "tests/dialects")
OFFLINE = ("unshare", "--map-root-user", "--net")


def digests(prefix: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The digest of each run, by `suite::scenario #repeat`. `prefix` is a command that starts the process."""
    with TemporaryDirectory() as folder:
        lines = Path(folder) / "lines.jsonl"
        command = [*prefix, sys.executable, "-m", "harness.cli.main", "run", *SUITES, "-q"]
        done = subprocess.run(
            [*command, "--json", str(lines), "--report", f"{folder}/report"],
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found = map(json.loads, lines.read_text(encoding="utf-8").splitlines())
        return {f"{line['id']} #{line['repeat']}": line["digest"] or "-" * 64 for line in found}


def written() -> dict[str, str]:
    """What the file says."""
    pairs = (line.split("  ", 1) for line in FILE.read_text(encoding="utf-8").splitlines())
    return {name: digest for digest, name in pairs}


@pytest.fixture(scope="module")
def offline() -> bool:
    """Whether this machine lets a process leave the network."""
    return subprocess.run([*OFFLINE, "true"], capture_output=True, check=False).returncode == 0


def test_no_run_of_the_suites_has_another_digest(offline: bool) -> None:
    found = digests(prefix=OFFLINE if offline else (), environment={"PYTHONHASHSEED": "4242"})
    assert found == written()


def test_the_suites_had_no_network(offline: bool) -> None:
    if not offline:
        pytest.skip(
            "this machine does not let a process leave the network (unshare --net): the suites had one"
        )


if __name__ == "__main__":
    lines = [f"{digest}  {name}\n" for name, digest in digests(environment={"PYTHONHASHSEED": "0"}).items()]
    FILE.write_text("".join(lines), encoding="utf-8")
