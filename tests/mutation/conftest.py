"""A project with a small agent and its scenarios, and functions that mutate it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli.main import cli

AGENT = """\
manifest_version: 1
llms: [{id: fast, version: "1", provider: openai, model_name: gpt-4o}]
default_llm: {id: fast}
agents:
  desk:
    state:
      fields:
        - {name: messages, type: list, default: []}
        - {name: intent, type: str, default: ""}
    graph:
      entry_point: classify
      nodes:
        - name: classify
          type: call_llm
          args:
            prompt: [{role: messages, content: state.messages}]
            state_updates: {intent: llm_response.content}
          on_error: {fallback: apologize}
        - name: answer
          type: set_state
          args: {values: {messages: '[{"role": "ai", "content": "Here is the answer."}]'}}
        - name: ticket
          type: set_state
          args: {values: {messages: '[{"role": "ai", "content": "A ticket is open."}]'}}
        - name: apologize
          type: set_state
          args: {values: {messages: '[{"role": "ai", "content": "Sorry."}]'}}
      edges:
        - source: classify
          branches: [{condition: 'state.intent == "billing"', target: ticket}]
          default: answer
"""
SUITE = """\
harness: 1
manifest: desk.yaml
scenarios:
  - name: billing
    input: I was charged twice
    llm: {classify: [billing]}
    expect: {path: [classify, ticket]}
  - name: question
    input: When do you open?
    llm: {classify: [question]}
    expect:
      output: Here is the answer.  # kept
"""

Invoke = Callable[..., Result]
Mutate = Callable[..., dict[str, Any]]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the project, which is the current one."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("HARNESS_")]:
        monkeypatch.delenv(name)
    (tmp_path / "pyproject.toml").write_text("[tool.harness]\n")
    (tmp_path / "desk.yaml").write_text(AGENT)
    (tmp_path / "desk.scenario.yaml").write_text(SUITE)
    return tmp_path


@pytest.fixture
def invoke() -> Invoke:
    """Run a command."""
    return lambda *args: CliRunner().invoke(cli, [*args])


@pytest.fixture
def mutate(invoke: Invoke) -> Mutate:
    """Run `harness mutate`, and return its JSON with the mutants by id."""

    def run(*args: str, code: int = 0) -> dict[str, Any]:
        done = invoke("mutate", *args, "--json", "mutation.out.json")
        assert done.exit_code == code, done.output
        found = json.loads(Path("mutation.out.json").read_text())
        return {**found, "by_id": {each["id"]: each for each in found["mutants"]}, "output": done.output}

    return run
