"""What the system refuses is an error that names the file, and no defect of the harness."""

import subprocess
from pathlib import Path

import pytest

from tests.cli.fixtures import RunCommand, WriteSuite

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="the system has no device that is full")


@pytest.fixture(autouse=True)
def _one_scenario(suite: WriteSuite) -> None:
    suite("{name: counts}")


def test_lines_that_cannot_be_written(harness: RunCommand) -> None:
    done = harness("run", ".", "--json", "/dev/full")
    assert (done.returncode, done.stderr) == (
        2,
        "error: /dev/full cannot be written: No space left on device [cannot-write]\n",
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "standard output: No space left on device [system]"),
        (["--json", "-"], "standard output cannot be written: No space left on device [cannot-write]"),
    ],
    ids=["text", "json"],
)
def test_output_that_cannot_be_written(installed: str, more: list[str], said: str) -> None:
    command = [installed, "run", ".", *more]
    with FULL.open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert (done.returncode, done.stderr) == (2, f"error: {said}\n")


def test_a_name_that_is_too_long(harness: RunCommand) -> None:
    name = "x" * 300 + ".scenario.yaml"
    done = harness("run", name)
    assert (done.returncode, done.stderr) == (2, f"error: {name}: File name too long [system]\n")
