"""A project for tests: agents, scenarios, and models to record, which exist only while they are served."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from harness.recording.human import Ask
from harness.scenario.load import load_file
from harness.scenario.model import Scenario
from harness.scenario.outcome import Outcome
from harness.scenario.run import run_scenario
from harness.serve import Serving, serving
from harness.settings import RecordMode, load_settings
from tests import forked

AGENTS = Path(__file__).with_name("agents")
SERVED = "http://served.test"
"""The placeholder in agents for the address of models and servers."""

KEY = "sk-planted-4711"
_ELSEWHERE = ("_API_KEY", "_BASE_URL", "_API_BASE", "_API_URL", "_proxy", "_PROXY")


class Project:
    """The folder of a project, which is the current folder. `environment` is set while recording, not on replay."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.cassettes = folder / "cassettes"
        self.environment: dict[str, str] = {}
        self._served = SERVED
        self._patch = monkeypatch
        for name in [name for name in os.environ if name.startswith("HARNESS_") or name == "CI"]:
            monkeypatch.delenv(name)
        for name in [name for name in os.environ if name.endswith(_ELSEWHERE)]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
        shutil.copytree(AGENTS, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        self.write("pyproject.toml", "")

    # ------------------------------------------------------------ files

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def replace(self, name: str, old: str, new: str) -> None:
        """Replace a text, which must be there, in a file."""
        text = (self.folder / name).read_text(encoding="utf-8")
        assert old in text
        self.write(name, text.replace(old, new))

    def read(self, name: str) -> str:
        """Read a file of the project."""
        return (self.folder / name).read_text(encoding="utf-8")

    def scenario(self, agent: str, keys: str, *, name: str = "it", cassette: str | None = "it") -> Scenario:
        """Write a scenario with these keys to `NAME.scenario.yaml`."""
        if agent == "archive":
            self._fork_server(agent, "harness", "serve", "served.scenario.yaml", "--stdio", "catalogue")
        head = f"harness: 1\nmanifest: {agent}.yaml\nscenarios:\n- name: {name}\n"
        head += f"  cassette: {cassette}\n" if cassette else ""
        # A real server may take long to start on a busy machine, and that counts while it is recorded.
        path = self.write(f"{name}.scenario.yaml", f"{head}{_indented(keys)}defaults: {{timeout: 600}}\n")
        return load_file(path).scenarios[0]

    def _fork_server(self, agent: str, *command: str) -> None:
        """Set the command of the MCP server in the manifest of an agent."""
        program, *args = forked.command(*command)
        self.write(
            f"{agent}.yaml",
            self.read(f"{agent}.yaml").replace("PROGRAM", program).replace("[ARGS]", json.dumps(args)),
        )

    def recorded_files(self) -> dict[str, bytes]:
        """Return the files of the cassettes by their relative paths, without those of unfinished recordings."""
        files = sorted(path for path in self.cassettes.rglob("*.yaml") if ".unfinished" not in path.parts)
        return {path.relative_to(self.cassettes).as_posix(): path.read_bytes() for path in files}

    # ------------------------------------------------------------ models

    @contextmanager
    def serving(self, world: str, *, port: int = 0) -> Iterator[Serving]:
        """Serve models, MCP servers and HTTP services from the stubs of a scenario, at the address in the agents."""
        head = "harness: 1\nmanifest: weather.yaml\nscenarios:\n- name: served\n"
        file = self.write("served.scenario.yaml", head + _indented(world))
        with serving(file, port=port) as server:
            self._point_agents_at(server.url)
            self.environment |= {
                "OPENAI_API_KEY": KEY,
                "ANTHROPIC_API_KEY": KEY,
                "OPENAI_BASE_URL": server.openai_url,
                "ANTHROPIC_BASE_URL": server.anthropic_url,
            }
            yield server

    def _point_agents_at(self, url: str) -> None:
        for path in self.folder.iterdir():
            text = path.read_text(encoding="utf-8") if path.suffix in (".yaml", ".py") else ""
            pointed = text.replace(self._served, url).replace(SERVED, url)
            if pointed != text:
                self.write(path.name, pointed)
        self._served = url

    # ------------------------------------------------------------ runs

    def run(self, scenario: Scenario, mode: RecordMode, *, ask: Ask | None = None) -> list[Outcome]:
        """Run all repeats of the scenario in this environment."""
        settings = replace(load_settings(), record_mode=mode)
        with self._patch.context() as patch:
            for name, value in self.environment.items():
                patch.setenv(name, value)
            return run_scenario(scenario, settings, ask=ask)

    def record(self, scenario: Scenario, *, ask: Ask | None = None) -> Outcome:
        """Run the only repeat of the scenario against the servers."""
        (outcome,) = self.run(scenario, RecordMode.REWRITE, ask=ask)
        return outcome

    def replay(self, scenario: Scenario) -> Outcome:
        """Replay the only repeat of the scenario, with an empty environment."""
        (outcome,) = self.replayed(scenario)
        return outcome

    def replayed(self, scenario: Scenario) -> list[Outcome]:
        """Replay all repeats of the scenario, with an empty environment."""
        settings = replace(load_settings(), record_mode=RecordMode.NONE)
        return run_scenario(scenario, settings)


def _indented(keys: str) -> str:
    return "".join(f"  {line}\n" for line in keys.strip("\n").splitlines())


def told(outcomes: Outcome | Sequence[Outcome]) -> Any:
    """Return outcomes without real durations, and without whether they were recorded or replayed."""
    if not isinstance(outcomes, Outcome):
        return [told(outcome) for outcome in outcomes]
    return {
        key: value
        for key, value in asdict(outcomes).items()
        if key not in ("wall", "recording", "recorded", "varies")
    }
