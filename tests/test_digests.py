"""The digest of every run in `scenarios/` and `tests/dialects/*/cases`, byte for byte.

`digests.txt` has a line a run: the digest (64 `-` for a run without a trace), then its id. A digest changes only when
what a run does, or what its trace says, is meant to change. `python -m tests.test_digests` writes the file anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_name("digests.txt")
SUITES = ("scenarios", "tests/dialects")


def digests(
    suites: Sequence[str] = SUITES, prefix: Sequence[str] = (), environment: Mapping[str, str] | None = None
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


def written(suites: Sequence[str] = SUITES) -> dict[str, str]:
    """What the file says of these suites."""
    pairs = (line.split("  ", 1) for line in FILE.read_text(encoding="utf-8").splitlines())
    return {name: digest for digest, name in pairs if name.startswith(tuple(f"{suite}/" for suite in suites))}


def test_no_run_of_the_suites_has_another_digest() -> None:
    assert digests(environment={"PYTHONHASHSEED": "4242"}) == written()


if __name__ == "__main__":
    lines = [f"{digest}  {name}\n" for name, digest in digests().items()]
    FILE.write_text("".join(lines), encoding="utf-8")
