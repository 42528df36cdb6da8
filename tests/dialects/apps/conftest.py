"""Runs scenarios of apps that a test writes into its own folder."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from harness.scenario.app_process import close_apps
from harness.scenario.load import load_file
from harness.scenario.outcome import Outcome
from harness.scenario.run import run_scenario
from harness.settings import Settings

RunApp = Callable[..., dict[str, Outcome]]


@pytest.fixture
def run_app(tmp_path: Path) -> RunApp:
    """Return a function that writes files, runs the scenarios, and returns the outcomes by name (`name #repeat`)."""

    def run(scenarios: str, files: Mapping[str, str] | None = None, **settings: Any) -> dict[str, Outcome]:
        for name, text in (files or {}).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")
        path = tmp_path / "app.scenario.yaml"
        path.write_text(f"harness: 1\n{dedent(scenarios)}", encoding="utf-8")
        try:
            found = [
                outcome
                for scenario in load_file(path).scenarios
                for outcome in run_scenario(scenario, Settings(project=tmp_path, **settings))
            ]
        finally:
            close_apps()
        return {f"{one.scenario} #{one.repeat}" if one.repeat else one.scenario: one for one in found}

    return run


def error_of(outcome: Outcome) -> str:
    """Return the message of the error that ended a run."""
    assert outcome.observed.error is not None, outcome
    return str(outcome.observed.error["message"])


@pytest.fixture(autouse=True)
def forgotten(tmp_path: Path) -> Iterator[None]:
    """Forget the modules of a test's folder, if this process imported an app: the next test has one of that name."""
    yield
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(f"{tmp_path}{os.sep}"):
            del sys.modules[name]
