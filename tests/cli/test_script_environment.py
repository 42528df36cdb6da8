"""What scripts and tools are given of the environment, and where its values never appear."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from tests.cli.fixtures import Invoke, WriteFile

GRAPH = """\
start: look
variables:
  - {name: pier-token, description: d, default: tok-4f9a72c1d8}
nodes:
  look: {type: script, script: look.sh, next: ask}
  ask: {type: llm, prompt: "{{told}}", tools: [tell], state_updates: {said: "{{output}}"}, next: done}
  done: {type: end, output: "{{told}} {{said}}"}
"""
LOOK = """\
printf '{"told": "%s %s %s %s"}' "$API_KEY" "$LLM_AGENT_VAR_PIER_TOKEN" "$SHORE" "$OF_PROCESS"
"""
TOOLS = """\
import os

def tell():
    print(os.environ["API_KEY"])
    return os.environ["LLM_AGENT_VAR_PIER_TOKEN"] + os.environ["SHORE"]
"""
SUITE = """\
harness: 1
dialect: loki
manifest: agents/desk/graph.yaml
env: {API_KEY: key-58b1c07e93, SHORE: shingle and sand}
env_passthrough: [OF_PROCESS]
scenarios:
  - name: looks
    input: go
    llm:
      ask: [{tool_calls: [{name: tell, args: {}}]}, {reply: so, when: "request.prompt.endsWith('shingle and sand')"}]
    tools: {tell: tools.tell}
    expect: {output: {$contains: so}, state: {told: {$contains: shingle and sand}}}
"""
HIDDEN = ("key-58b1c07e93", "tok-4f9a72c1d8", "passed-on-6d2e0b")


@pytest.fixture(autouse=True)
def _project(write: WriteFile, monkeypatch: pytest.MonkeyPatch) -> None:
    write("pyproject.toml", "")
    write("agents/desk/graph.yaml", GRAPH)
    write("agents/desk/look.sh", LOOK)
    write("agents/desk/tools.py", TOOLS)
    write("a.scenario.yaml", SUITE)
    monkeypatch.setenv("OF_PROCESS", HIDDEN[2])


def test_secret_values_that_scripts_and_tools_are_given_appear_nowhere(invoke: Invoke) -> None:
    done = invoke("run", "a.scenario.yaml", "--report", "out", "--traces", "all", "--narrate")
    assert done.exit_code == 0, done.output
    files = [path.read_bytes() for path in Path("out").rglob("*") if path.is_file()]
    texts = [gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data for data in files]
    texts.append(done.output.encode())
    assert not [text for text in texts for value in HIDDEN if value.encode() in text]
    assert any(b"shingle and sand" in text for text in texts), "the name SHORE is not that of a secret"


def test_variables_are_gone_after_the_tool_that_was_given_them(invoke: Invoke) -> None:
    assert invoke("run", "a.scenario.yaml").exit_code == 0
    assert not {"API_KEY", "SHORE", "LLM_AGENT_VAR_PIER_TOKEN"} & os.environ.keys()


def test_the_env_of_one_scenario_is_no_secret_of_the_next(invoke: Invoke, write: WriteFile) -> None:
    says = "name: says, input: go, llm: {ask: [shingle and sand]}, scripts: {look: {return: {told: a}}}"
    write("a.scenario.yaml", f"{SUITE}  - {{{says}, env: {{SHORE: b}}}}\n")
    invoke("run", "a.scenario.yaml", "--report", "out")
    assert "a shingle and sand" in Path("out/results.jsonl").read_text(encoding="utf-8")
