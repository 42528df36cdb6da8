"""A tool, a check or a node of an app that forks, whose child returns: it is ended, and writes nothing again."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.isolation.project import results, write_project

FORKS = """\
import os

def forks(*args, **named):
    process = os.getpid()
    os.fork()
    {ends}
    return True

def plain(**named):
    return 1
"""
EXITS = "if os.getpid() != process: raise SystemExit(3)"
APP = (
    "harness: 1\nmanifest: tools.py:forks\nscenarios: [{name: forks, input: hi}, {name: again, input: hi}]\n"
)
TOLD = "a process that was forked in a run came back from the code that forked it, and was ended"
COMMANDS = {
    "run": ["harness", "run", "calls.scenario.yaml"],
    "processes": ["harness", "run", "calls.scenario.yaml", "-j", "2"],
    "pytest": ["pytest", "-q", "-s", "-p", "no:cacheprovider", "calls.scenario.yaml"],
}


def run(command: str) -> str:
    """Return the output of a command once no process has it open any more."""
    name, *arguments = COMMANDS[command]
    program = [str(Path(sys.executable).with_name(name)), *arguments]
    done = subprocess.run(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("where", ["tool", "check", "app"])
@pytest.mark.parametrize(("command", "ends"), [*((command, "") for command in COMMANDS), ("run", EXITS)])
def test_a_fork_that_comes_back_is_ended_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, ends: str, where: str
) -> None:
    monkeypatch.chdir(tmp_path)
    tool, expect = ("forks", "") if where == "tool" else ("plain", "{custom: [{call: tools.forks}]}")
    write_project(tmp_path, FORKS.format(ends=ends), [tool, tool], "", expect)
    if where == "app":
        (tmp_path / "calls.scenario.yaml").write_text(APP)
    said = run(command)
    assert [line["verdict"] for line in results()] == ["passed", "passed"]
    assert said.count("(2 runs of 2 scenarios)") == 1
    assert said.count(TOLD) == 2


def test_a_fork_that_code_in_c_makes_is_ended_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    in_c = FORKS.format(ends="").replace("os.fork()", "__import__('ctypes').CDLL(None).fork()")
    write_project(tmp_path, in_c, ["forks"], "", "")
    assert run("run").count(TOLD) == 1
    assert [line["verdict"] for line in results()] == ["passed"]
