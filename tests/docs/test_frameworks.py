"""The examples of frameworks that are not installed for development: their files, and where they run.

`make frameworks` runs them, each in an environment of its own. Source: docs/frameworks.md.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from harness.scenario.load import load_file
from harness.scenario.run import run_scenario

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(file.parent for file in (ROOT / "examples").glob("*/requirements.txt"))


def requirement(example: Path) -> Requirement:
    return Requirement((example / "requirements.txt").read_text().splitlines()[0])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_files_of_an_example_are_valid_and_name_what_exists(example: Path) -> None:
    (suite,) = example.glob("*.scenario.yaml")
    for scenario in load_file(suite).scenarios:
        file, _, name = scenario.manifests[0].name.partition(":")
        defined = ast.parse((example / file).read_text()).body
        assert name in {
            each.name for each in defined if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        }


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_passes_where_its_framework_is_installed(example: Path) -> None:
    needed = requirement(example)
    try:
        installed = version(needed.name)
    except PackageNotFoundError:
        pytest.skip(f"{needed.name} is not installed: `make framework-{example.name}` runs this example")
    assert installed in needed.specifier
    (suite,) = example.glob("*.scenario.yaml")
    for scenario in load_file(suite).scenarios:
        (outcome,) = run_scenario(scenario)
        assert outcome.passed, outcome


def test_the_document_names_each_example_with_the_version_that_it_was_tried_with() -> None:
    text = (ROOT / "docs/frameworks.md").read_text()
    for example in EXAMPLES:
        (row,) = re.findall(rf"^\| .* ([\d.]+) \| \[examples/{example.name}\]", text, re.M)
        assert row in str(requirement(example).specifier) or requirement(example).specifier.contains(row)


def test_the_app_in_typescript_passes_where_its_packages_are_installed() -> None:
    example = ROOT / "examples/langgraph_ts"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", str(example)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if "skipped" in done.stdout:
        pytest.skip(
            "its tests are skipped: node or its packages are not installed (make framework-langgraph_ts)"
        )
    assert "4 passed" in done.stdout, done.stdout + done.stderr
