"""Runs whose code reads what no run can hold: `harness run` tells that they differ, and where first."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fixtures import Invoke, WriteFile

MANIFEST = """
version: "1.0"
start_at: look
end_at: [look]
nodes: [{id: look, handler: look}]
edges: []
params: {}
"""
SCENARIO = """
harness: 1
manifest: agent.yaml
scenarios:
  - {name: looks, handlers: {look: {real: code_of_agent.look}}, input: {}, expect: {path: [look]}}
  - {name: other, handlers: {look: {return: {seen: 0}}}, input: {}, expect: {path: [look]}}
"""
COUNTS = (
    "import itertools\nnumbers = itertools.count()\ndef look(state, params): return {'seen': next(numbers)}\n"
)
READS = """
def look(state, params):
    with open(FILE) as file:
        return {"seen": file.read()}
"""


@pytest.fixture
def project(write: WriteFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose only handler reads a file that lies outside of it."""
    monkeypatch.chdir(tmp_path)
    write("project/pyproject.toml", "")
    write("project/agent.yaml", MANIFEST)
    write("project/a.scenario.yaml", SCENARIO)
    write("outside.txt", "first")
    write("project/code_of_agent.py", READS.replace("FILE", repr(str(tmp_path / "outside.txt"))))
    monkeypatch.chdir("project")
    return tmp_path


def warnings(invoke: Invoke, *args: str) -> list[str]:
    """Run, and return the warnings of all runs that say so."""
    assert invoke("run", *(args or ("a.scenario.yaml",))).exit_code == 0
    lines = Path("reports/latest/results.jsonl").read_text(encoding="utf-8").splitlines()
    found: list[Any] = [text for line in lines for text in json.loads(line)["warnings"]]
    return [text for text in found if "not repeatable" in text]


def test_a_run_that_differs_from_the_run_before_is_told_with_its_first_difference(
    invoke: Invoke, project: Path
) -> None:
    assert not warnings(invoke)
    (project / "outside.txt").write_text("second", encoding="utf-8")
    [found] = warnings(invoke)
    assert found.startswith(
        "a.scenario.yaml:5:12: not repeatable: the result of look in look is another (seen"
    )
    assert "unlike the run before; no input has changed since" in found
    assert not warnings(invoke)


def test_pytest_tells_it_as_well(
    project: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "project")
    for content in ("first", "second"):
        (project / "outside.txt").write_text(content, encoding="utf-8")
        result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "a.scenario.yaml")
    result.stdout.fnmatch_lines(["*not repeatable: the result of look in look is another*"])


def test_a_run_of_a_part_is_compared_with_the_part_before(invoke: Invoke, project: Path) -> None:
    part = "a.scenario.yaml::looks"
    assert not warnings(invoke, part)
    (project / "outside.txt").write_text("second", encoding="utf-8")
    assert "seen" in warnings(invoke, part)[0]
    assert sorted(at.name for at in Path("reports/latest").iterdir() if at.name.startswith(".")) == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("code_of_agent.py", "def look(state, params): return {'seen': 1}\n"),
        ("agent.yaml", MANIFEST.replace("params: {}", "params: {more: 1}")),
        ("data.csv", "1,2\n"),
        ("a.scenario.yaml", SCENARIO.replace("input: {}, ", "input: {more: 1}, ")),
    ],
)
def test_a_changed_input_explains_the_difference(invoke: Invoke, project: Path, file: str, text: str) -> None:
    assert not warnings(invoke)
    (project / "outside.txt").write_text("second", encoding="utf-8")
    Path(file).write_text(text, encoding="utf-8")
    assert not warnings(invoke)


def test_a_changed_variable_explains_the_difference(
    invoke: Invoke, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not warnings(invoke)
    (project / "outside.txt").write_text("second", encoding="utf-8")
    monkeypatch.setenv("MODEL", "another")
    assert not warnings(invoke)


def test_a_file_that_a_run_writes_in_its_project_explains_nothing(invoke: Invoke, project: Path) -> None:
    code = (
        "def look(state, params):\n"
        "    with open('log.txt', 'a+') as file:\n"
        "        file.write('x')\n"
        "        return {'seen': file.tell()}\n"
    )
    Path("code_of_agent.py").write_text(code, encoding="utf-8")
    assert not warnings(invoke)
    assert len(warnings(invoke)) == 1


@pytest.mark.parametrize("workers", ["1", "2"])
def test_repeats_that_differ_although_they_draw_nothing_are_told(
    invoke: Invoke, project: Path, workers: str
) -> None:
    Path("code_of_agent.py").write_text(COUNTS, encoding="utf-8")
    first, second = warnings(invoke, "a.scenario.yaml", "--repeat", "3", "-j", workers)
    assert "(seen - 0 + 1), unlike another repeat; neither drew an id or a random number" in first
    assert "(seen - 0 + 2)" in second


def test_repeats_may_differ_by_what_they_draw(invoke: Invoke, project: Path) -> None:
    code = "import uuid\ndef look(state, params): return {'seen': str(uuid.uuid4())}\n"
    Path("code_of_agent.py").write_text(code, encoding="utf-8")
    assert not warnings(invoke, "a.scenario.yaml", "--repeat", "3")


def test_without_traces_the_difference_is_told_without_the_event(invoke: Invoke, project: Path) -> None:
    args = ("a.scenario.yaml", "--traces", "none")
    assert not warnings(invoke, *args)
    (project / "outside.txt").write_text("second", encoding="utf-8")
    assert (
        "its digest is another (traces, which would show more, were not kept)" in warnings(invoke, *args)[0]
    )


@pytest.mark.parametrize("damage", [b"", b"\x80\x00", b"[1]", b'{"began": 7, "ended": null}'])
def test_a_damaged_session_file_is_no_earlier_session(invoke: Invoke, project: Path, damage: bytes) -> None:
    assert not warnings(invoke)
    (project / "outside.txt").write_text("second", encoding="utf-8")
    Path("reports/latest/session.json").write_bytes(damage)
    assert not warnings(invoke)


def test_the_session_file_tells_no_value_of_the_environment(
    invoke: Invoke, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_API_KEY", "a-very-secret-key")
    assert not warnings(invoke)
    session = json.loads(Path("reports/latest/session.json").read_text(encoding="utf-8"))
    assert list(session) == ["format", "began", "ended", "complete", "environment"]
    assert len(session["environment"]) == 8
    assert os.environ["DESK_API_KEY"] not in json.dumps(session)
