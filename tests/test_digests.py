"""The digest of every run in `scenarios/` and `tests/dialects/*/cases`, byte for byte.

`digests.txt` has one line per run: the digest (64 `-` for a run without a trace), then the run's id. A digest may
change only with an intended change of what a run does or records. `python -m tests.test_digests` rewrites the file.

The same graph, input, world and seed give the same trace in any process, under any hash seed, offline. So the file is
written with hash seed 0, and the test runs `scenarios/` with another one, without a network where the machine allows
it. pytest runs the cases of the dialects with a random hash seed: `tests/dialects/conftest.py` compares each with
the file, and a test here checks that the file lists exactly these cases.

The same run of `scenarios/` is compared with `goldens/scenarios.txt`: a hash of the results lines of each scenario
file, and all errors and warnings as text. `python -m tests.test_digests` rewrites that file too.
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
from tests.goldens.normal import normal, sha256
from tests.goldens.whole import messages

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_name("digests.txt")
GOLDEN = Path(__file__).parent / "goldens/scenarios.txt"
SCENARIOS, CASES = "scenarios", "tests/dialects"
OFFLINE = ("unshare", "--map-root-user", "--net")


def results(
    *suites: str, prefix: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> list[str]:
    """Run suites and return the lines of their results. `prefix`: a wrapper command."""
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
        return lines.read_text(encoding="utf-8").split("\n")[:-1]


def digests(lines: Sequence[str]) -> dict[str, str]:
    """Return the digest of each run by `suite::scenario #repeat`."""
    found = map(json.loads, lines)
    return {f"{line['id']} #{line['repeat']}": line["digest"] or "-" * 64 for line in found}


def golden(lines: Sequence[str]) -> str:
    """Return the golden text of the results of `scenarios/` among these: hashes by file, then errors and warnings."""
    texts = {line: json.loads(line) for line in lines}
    ours = {line: found for line, found in texts.items() if found["suite"].startswith(f"{SCENARIOS}/")}
    suites: dict[str, str] = {}
    for line, found in ours.items():
        suites[found["suite"]] = suites.get(found["suite"], "") + normal(line, {}) + "\n"
    hashes = "".join(f"{sha256(text)}  {suite}\n" for suite, text in suites.items())
    return hashes + normal(messages(list(ours.values())), {})


def stored_digests(folder: str) -> dict[str, str]:
    """Return the digests that `digests.txt` holds for the runs in `folder`, by id."""
    pairs = (line.split("  ", 1) for line in FILE.read_text(encoding="utf-8").splitlines())
    return {name: digest for digest, name in pairs if name.startswith(f"{folder}/")}


@pytest.fixture(scope="module")
def offline() -> bool:
    """True if this machine allows a process without a network (`unshare --net`)."""
    return subprocess.run([*OFFLINE, "true"], capture_output=True, check=False).returncode == 0


def test_the_digests_of_all_scenarios_are_unchanged(offline: bool) -> None:
    lines = results(SCENARIOS, prefix=OFFLINE if offline else (), environment={"PYTHONHASHSEED": "4242"})
    assert digests(lines) == stored_digests(SCENARIOS)
    assert golden(lines) == GOLDEN.read_text(encoding="utf-8")


def test_the_digest_file_lists_exactly_the_cases_of_the_dialects() -> None:
    found = {
        f"{path.relative_to(ROOT).as_posix()}::{scenario.name} #{repeat}"
        for path in ROOT.joinpath(CASES).rglob(f"*{SUFFIXES[0]}")
        for scenario in load_file(path).scenarios
        for repeat in range(scenario.repeat)
    }
    assert found == stored_digests(CASES).keys()


def test_the_digest_file_has_no_other_lines() -> None:
    lines = FILE.read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(stored_digests(SCENARIOS)) + len(stored_digests(CASES))


def test_the_suites_ran_without_a_network(offline: bool) -> None:
    if not offline:
        pytest.skip(
            "this machine does not allow a process without a network (unshare --net): the suites had one"
        )


if __name__ == "__main__":
    run = results(SCENARIOS, CASES, environment={"PYTHONHASHSEED": "0"})
    found = [f"{digest}  {name}\n" for name, digest in digests(run).items()]
    FILE.write_text("".join(found), encoding="utf-8")
    GOLDEN.write_text(golden(run), encoding="utf-8")
