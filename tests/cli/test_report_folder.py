"""The folder of a report: new, empty, or with a report. Any other is refused before anything runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.fixtures import Invoke, WriteFile, WriteSuite

MARKS = "{name: marks, expect: {custom: [{call: marking.mark}]}}"
TOLD = "cannot write the report: {} has files and no report of the harness ({})"


@pytest.fixture(autouse=True)
def marking(suite: WriteSuite, write: WriteFile) -> None:
    """Write a scenario that leaves the file `ran` when it runs."""
    write(
        "marking.py", "import pathlib\n\ndef mark(run):\n    pathlib.Path('ran').touch()\n    return True\n"
    )
    suite(MARKS)


def contents(folder: str) -> dict[Path, bytes]:
    return {each: each.read_bytes() for each in Path(folder).rglob("*") if each.is_file()}


@pytest.mark.parametrize(
    "name",
    [
        "index.html",
        "summary.md",
        "results.jsonl",
        "traces/1.jsonl.gz",
        ".git/HEAD",
        "report.html",
        "summary.json",
    ],
)
def test_a_folder_of_other_files_is_refused_before_anything_runs(
    invoke: Invoke, write: WriteFile, name: str
) -> None:
    write(f"mine/{name}", '{"mine": true}\n')
    before = contents("mine")
    done = invoke("run", ".", "--report", "mine")
    assert (done.exit_code, Path("ran").exists()) == (2, False)
    assert TOLD.format("mine", name.partition("/")[0]) in done.stderr
    assert contents("mine") == before


@pytest.mark.parametrize("folder", [".", "/", "~"])
def test_the_working_directory_the_root_and_the_home_are_refused(
    invoke: Invoke, write: WriteFile, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(write("home/.profile", "umask 077\n").parent))
    done = invoke("run", ".", "--report", str(Path(folder).expanduser()))
    assert (done.exit_code, Path("ran").exists()) == (2, False)
    assert "has files and no report of the harness" in done.stderr


@pytest.mark.parametrize("processes", ["-n0", "-n1"])
def test_pytest_refuses_it_too(write: WriteFile, processes: str) -> None:
    write("mine/index.html", "mine")
    write("pytest.ini", "[pytest]\nharness_report = mine\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", processes, "a.scenario.yaml"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, Path("ran").exists()) == (4, False)
    assert TOLD.format("mine", "index.html") in done.stdout + done.stderr
    assert [*contents("mine")] == [Path("mine/index.html")]


def test_score_refuses_it_too(invoke: Invoke, write: WriteFile) -> None:
    write("mine/summary.md", "mine")
    write("variants.yaml", "harness: 1\nvariants: [{name: other, model: tiny}]\n")
    done = invoke("score", ".", "--variants", "variants.yaml", "--report", "mine")
    assert done.exit_code == 2
    assert [*contents("mine")] == [Path("mine/summary.md")]


def test_an_empty_folder_and_one_with_a_report_are_written(invoke: Invoke, write: WriteFile) -> None:
    write("out/.gitignore", "*\n")
    history = ("--history", "out/history.jsonl", "--json", "out/lines.jsonl")
    assert invoke("run", ".", "--report", "elsewhere", *history).exit_code == 0
    assert invoke("run", ".", "--report", "out", *history).exit_code == 0
    write("out/notes.txt", "beside it")
    assert invoke("run", ".", "--report", "out").exit_code == 0
    assert Path("out/notes.txt").is_file()
    Path("out/notes.txt").unlink()
    for each in (*Path("out").glob("*.json"), *Path("out").glob("*.html")):
        each.unlink()
    Path("out/results.jsonl").write_bytes(b"")  # as a run leaves it that is killed before its first result
    for name in ("summary.md", "junit.xml"):
        Path("out", name).unlink()
    assert invoke("run", ".", "--report", "out").exit_code == 0
