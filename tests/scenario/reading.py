"""Scenarios that are read and not run, and what their reader warns of."""

from pathlib import Path

from harness.scenario.load import load_file
from harness.scenario.model import Scenario
from tests.manifests import COUNTER


def read(folder: Path, keys: str, first: str = "") -> Scenario:
    """A scenario with these keys, which begin at column 1 of line 5; those of `first` stand in line 3."""
    (folder / "counter.yaml").write_text(COUNTER)
    file = folder / "a.scenario.yaml"
    file.write_text(f"harness: 1\nmanifest: counter.yaml\nscenarios: [{{name: x,{first}\n\n{keys}}}]\n")
    return load_file(file).scenarios[0]


def warning(scenario: Scenario) -> tuple[str, str]:
    """The code of the only warning, and its text behind its line and column."""
    (problem,) = scenario.warnings
    assert problem.span is not None
    assert problem.severity == "warning"
    return problem.code, f"{problem.span.line}:{problem.span.column} {problem.message}"
