"""Fixtures of the tests of commands: manifests, suites, and functions that run commands."""

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli.main import cli
from tests.cli.fixtures import Invoke, RunCommand, WriteFile, WriteSuite
from tests.forked import BIN, run
from tests.manifests import ASKING, COUNTER

COMMAND = str(BIN / "harness")


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("HARNESS_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def counter() -> str:
    """A manifest with one node that adds 1 to a counter."""
    return COUNTER


@pytest.fixture
def two_agents() -> str:
    """A manifest with two agents, `counter` and `other`."""
    return COUNTER + COUNTER.partition("agents:\n")[2].replace("counter:", "other:")


@pytest.fixture
def asking() -> str:
    """A manifest with one node that calls the model `${MODEL}`."""
    return ASKING


@pytest.fixture
def write(tmp_path: Path) -> WriteFile:
    def write_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


@pytest.fixture
def suite(write: WriteFile) -> WriteSuite:
    def write_suite(*scenarios: str, file: str = "a.scenario.yaml") -> None:
        write("counter.yaml", COUNTER)
        write("asking.yaml", ASKING)
        listed = "".join(f"\n  - {scenario}" for scenario in scenarios)
        write(file, f"harness: 1\nmanifest: counter.yaml\nscenarios:{listed}\n")

    return write_suite


@pytest.fixture
def invoke() -> Invoke:
    def invoke_command(*args: str) -> Result:
        return CliRunner().invoke(cli, args, prog_name="harness")

    return invoke_command


@pytest.fixture
def installed() -> str:
    """The path of the installed command."""
    return COMMAND


@pytest.fixture
def harness() -> RunCommand:
    def run_command(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return run(["harness", *args], errors="replace", env={**os.environ, **env})

    return run_command
