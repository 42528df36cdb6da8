"""The same graph, input, world and seed give the same trace: across processes, hash seeds, and a cut network."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SUITES = Path(__file__).parents[1] / "scenarios"


def digests(folder: Any, hash_seed: Any, *, prefix: Any = ()) -> Any:
    report = folder / f"report-{hash_seed}"
    command = [
        *prefix,
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--harness-report={report}",
    ]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    run = subprocess.run(
        [*command, str(SUITES)], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    lines = map(json.loads, (report / "results.jsonl").read_text(encoding="utf-8").splitlines())
    return {line["id"]: {**line, "wall": 0} for line in lines}


def test_every_field_but_the_wall_time_is_the_same_under_three_hash_seeds(tmp_path: Path) -> None:
    first, *others = [digests(tmp_path, seed) for seed in (0, 1, 4242)]
    assert len(first) >= 263
    assert all(other == first for other in others)
    assert all(len(line["digest"]) == 64 for line in first.values() if line["status"] != "invalid")


def test_the_suites_pass_with_the_network_cut(tmp_path: Path) -> None:
    prefix = ("unshare", "--map-root-user", "--net")
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let a process leave the network (unshare --net)")
    digests(tmp_path, 0, prefix=prefix)
