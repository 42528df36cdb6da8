"""Projects in the documented layout (`configs/config.yaml`, `agency/`), written into a folder and run."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.dialects.load import load_graph
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem
from harness.graph.model import Graph
from harness.scenario.load import load_file
from harness.scenario.outcome import Outcome
from harness.scenario.run import run_scenario

MESH = """\
auto_discover: {directory: ./agency, pattern: "*_agent.py"}
entry_points: [{name: go, target: desk}]
agents:
  desk: {agent_type: programmatic}
"""
DESK = "def desk(first, input_data, context):\n    return {'said': input_data['message']}\n"


class Project:
    """A project whose mesh has one programmatic agent `desk` by default."""

    def __init__(self, folder: Path, mesh: str = MESH) -> None:
        self.folder = folder
        self.mesh = folder / "configs/config.yaml"
        self.write({"pyproject.toml": "", "configs/config.yaml": mesh})

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8")

    def load(self, *, imports: bool = True, **options: Any) -> Graph:
        return load_graph(LoadRequest((self.mesh,), agent="go", imports=imports, **options), "leafmesh")

    def problems(self, *, imports: bool = True) -> list[Problem]:
        """Return the problems of the mesh, which must be refused."""
        with pytest.raises(ManifestError) as refusal:
            self.load(imports=imports)
        return list(refusal.value.problems)

    def warnings(self, *, imports: bool = True) -> list[Problem]:
        return list(self.load(imports=imports).warnings)

    def run(self, world: str = "", given: Any = "hi") -> Outcome:
        """Run the entry point `go` once; `world` is the YAML of a scenario."""
        path = self.folder / "it.scenario.yaml"
        lines = [
            "harness: 1",
            "manifest: configs/config.yaml",
            "scenarios:",
            "- name: it",
            "  entry_point: go",
        ]
        path.write_text(
            "\n".join([*lines, f"  input: {given!r}", textwrap.indent(textwrap.dedent(world), "  ")])
        )
        (outcome,) = run_scenario(load_file(path).scenarios[0])
        return outcome

    def output(self, world: str = "", given: Any = "hi") -> Any:
        """Return the output of one run, which must not fail."""
        outcome = self.run(world, given)
        assert outcome.observed.error is None, outcome.observed.error
        return outcome.observed.output
