"""Errors of the operating system name the file, and are not reported as defects of the harness."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.fixtures import Invoke, WriteSuite
from tests.forked import run

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="the system has no device that is full")


@pytest.fixture(autouse=True)
def _one_scenario(suite: WriteSuite) -> None:
    suite("{name: counts}")


def test_results_that_cannot_be_written_are_an_error(invoke: Invoke) -> None:
    done = invoke("run", ".", "--json", "/dev/full")
    assert (done.exit_code, done.stderr) == (
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
def test_standard_output_that_cannot_be_written_is_an_error(more: list[str], said: str) -> None:
    command = ["harness", "run", ".", *more]
    with FULL.open("w") as full:
        done = run(command, stdout=full)
    assert (done.returncode, done.stderr) == (2, f"error: {said}\n")


def test_a_file_name_that_is_too_long_is_an_error(invoke: Invoke) -> None:
    name = "x" * 300 + ".scenario.yaml"
    done = invoke("run", name)
    assert (done.exit_code, done.stderr) == (2, f"error: {name}: File name too long [system]\n")


def test_a_pipe_without_a_reader_is_an_error(invoke: Invoke, tmp_path: Path) -> None:
    pipe = tmp_path / "lines"
    os.mkfifo(pipe)
    done = invoke("run", ".", "--json", str(pipe))
    assert (done.exit_code, done.stderr) == (
        2,
        f"error: {pipe} cannot be written: nobody reads from this pipe [cannot-write]\n",
    )


def test_a_pipe_with_a_reader_receives_the_results(invoke: Invoke, tmp_path: Path) -> None:
    pipe = tmp_path / "lines"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert invoke("run", ".", "--json", str(pipe)).exit_code == 0
        assert os.read(reading, 1 << 20).count(b"\n") == 1
    finally:
        os.close(reading)


@pytest.mark.parametrize("closed", [". >&-", ". -j 2 >&-", ". <&-", ". <&- >&- 2>&-"])
def test_closed_standard_streams_do_not_fail_a_run(installed: str, closed: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" run {closed}', installed],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
