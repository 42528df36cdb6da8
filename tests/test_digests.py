"""The digest of every run in `scenarios/` and `tests/dialects/*/cases`, byte for byte.

`digests.txt` has a line a run: the digest (64 `-` for a run without a trace), then its id. A digest changes only when
what a run does, or what its trace says, is meant to change. `python -m tests.test_digests` writes the file anew.

The same graph, input, world and seed give the same trace in other processes, under other hash seeds, offline: the
file is written under another hash seed than the test has, whose process has no network where the machine allows that.
The cases of the dialects are run by pytest, under its hash seed, which is any: `tests/dialects/conftest.py` holds
each to the file, and a test here sees that the file has no others.
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

from harness.scenario import SUFFIXES
from harness.scenario.load import load_file

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_name("digests.txt")
SCENARIOS, CASES = "scenarios", "tests/dialects"
OFFLINE = ("unshare", "--map-root-user", "--net")


def digests(
    *suites: str, prefix: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The digest of each run, by `suite::scenario #repeat`. `prefix` is a command that starts the process."""
    with TemporaryDirectory() as folder:
        lines = Path(folder) / "lines.jsonl"
        command = [*prefix, sys.executable, "-m", "harness.cli.main", "run", *suites, "-q"]
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


def written(folder: str) -> dict[str, str]:
    """What the file says of the runs in `folder`."""
    pairs = (line.split("  ", 1) for line in FILE.read_text(encoding="utf-8").splitlines())
    return {name: digest for digest, name in pairs if name.startswith(f"{folder}/")}


@pytest.fixture(scope="module")
def offline() -> bool:
    """Whether this machine lets a process leave the network."""
    return subprocess.run([*OFFLINE, "true"], capture_output=True, check=False).returncode == 0


def test_no_run_of_the_scenarios_has_another_digest(offline: bool) -> None:
    found = digests(SCENARIOS, prefix=OFFLINE if offline else (), environment={"PYTHONHASHSEED": "4242"})
    assert found == written(SCENARIOS)


def test_every_run_of_the_dialects_has_a_digest_and_every_digest_a_run() -> None:
    found = {
        f"{path.relative_to(ROOT).as_posix()}::{scenario.name} #{repeat}"
        for path in ROOT.joinpath(CASES).rglob(f"*{SUFFIXES[0]}")
        for scenario in load_file(path).scenarios
        for repeat in range(scenario.repeat)
    }
    assert found == written(CASES).keys()


def test_no_line_of_the_file_is_of_anything_else() -> None:
    lines = FILE.read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(written(SCENARIOS)) + len(written(CASES))


def test_the_suites_had_no_network(offline: bool) -> None:
    if not offline:
        pytest.skip(
            "this machine does not let a process leave the network (unshare --net): the suites had one"
        )


if __name__ == "__main__":
    found = digests(SCENARIOS, CASES, environment={"PYTHONHASHSEED": "0"})
    lines = [f"{digest}  {name}\n" for name, digest in found.items()]
    FILE.write_text("".join(lines), encoding="utf-8")
