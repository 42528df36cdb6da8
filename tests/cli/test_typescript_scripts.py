"""A script in TypeScript runs for real if tsx is installed. spec: "Supported extensions and runtimes"."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.fixtures import Invoke, RunCommand, WriteFile

GRAPH = """\
start: add
nodes:
  add: {type: script, script: scripts/add.ts, fallback: failed, next: done}
  failed: {type: end, output: failed}
  done: {type: end, output: "{{sum}}"}
"""
SCRIPT = """\
import { readFileSync } from "node:fs";
const file = process.env.GRAPH_STATE_FILE;
const state: { terms: number[] } = JSON.parse(file ? readFileSync(file, "utf8") : process.env.GRAPH_STATE ?? "{}");
console.log(JSON.stringify({ sum: state.terms.reduce((a: number, b: number): number => a + b) }));
"""
SCENARIO = """\
harness: 1
dialect: loki
manifest: agents/sums
scenarios:
  - {name: adds, input: {terms: [1, 2, 4]}, expect: {output: "7"}}
"""


@pytest.fixture
def project(write: WriteFile) -> None:
    write("pyproject.toml", "")
    write("agents/sums/graph.yaml", GRAPH)
    write("agents/sums/scripts/add.ts", SCRIPT)
    write("sums.scenario.yaml", SCENARIO)


@pytest.mark.skipif(shutil.which("tsx") is None, reason="tsx is not installed (npm install --global tsx)")
@pytest.mark.usefixtures("project")
def test_a_typescript_script_runs(harness: RunCommand) -> None:
    done = harness("run", "sums.scenario.yaml")
    assert done.returncode == 0, done.stdout


@pytest.mark.usefixtures("project")
def test_without_tsx_a_run_cannot_be_judged_whatever_the_fallback(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "sh", "env", "unshare", "true"):
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(programs))
    done = invoke("run", "sums.scenario.yaml")
    assert done.exit_code == 3
    assert "ProgramMissing (program-missing)" in done.stdout
    assert "the script needs the program 'tsx', which is not on the PATH" in done.stdout
