"""Completeness of dependencies: every project file that a run opens is among its scenario's inputs."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.scenario.load import load_file
from harness.scenario.run import outcomes
from harness.selection.changes import Changes
from harness.selection.inputs import InputFinder
from harness.settings import Projects

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SUITES = [
    *sorted((SCENARIOS / "tutorial").glob("*.scenario.yaml")),
    SCENARIOS / "sherma/skills.scenario.yaml",
]
Opened = set[Path]


@pytest.fixture(scope="module")
def opened() -> Opened:
    """Return the set of scenario files that this process opens; module-scoped, as audit hooks cannot be removed."""
    found: Opened = set()

    def record_open(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(args[0], str) and args[0].startswith(str(SCENARIOS)):
            path = Path(os.path.realpath(args[0]))
            if path.parent.name == "__pycache__":
                path = path.parent.parent / f"{path.name.partition('.')[0]}.py"
            found.add(path)

    sys.addaudithook(record_open)
    return found


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.stem.partition(".")[0])
def test_every_file_that_a_run_opens_is_an_input(
    suite: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(suite.parent)
    # Only a warning needs it: the search for unknown names also reads code that the run does not use.
    monkeypatch.setattr("harness.scenario.run.unknown_names", lambda *_: [])
    # What runs may patch is looked for in all files beside them, whether they are imported or not.
    monkeypatch.setattr("harness.source.module_state._source", lambda _: "")
    projects = Projects()
    finder = InputFinder(projects, Changes("HEAD", frozenset()))
    for scenario in load_file(suite).scenarios:
        inputs = finder.inputs(scenario)
        opened.clear()
        list(outcomes(scenario, projects.of(suite)))
        assert [path for path in sorted(opened) if not inputs.contains(path)] == [], scenario.name
