"""Options of the command line (`pytest --help`), and the settings made from them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from harness.errors import HarnessError

if TYPE_CHECKING:
    from harness.settings import Projects, RecordMode, Settings

OPTIONS: Final = {
    "report": "folder the results are written to (default: reports/latest, in the project)",
    "cassettes": "folder of the recordings (default: cassettes, in the project)",
    "pythonpath": f"folders Python modules are imported from, separated by {os.pathsep!r}",
    "history": "file the figures of each run are appended to, for `harness history`",
    "now": "instant at which virtual time begins in scenarios without `now`, such as 2026-03-01T09:00:00Z",
    "allow_paths": f"folders outside the project manifests may read, separated by {os.pathsep!r}",
}
TRACES: Final = ("all", "failed", "none")
RECORD_MODES: Final = ("none", "once", "new_episodes", "all", "rewrite")
PYTEST_RECORDING: Final = "pytest_recording.plugin"

_projects_key = pytest.StashKey["Projects"]()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the options. Each has an ini setting (`harness_report`) and a variable (`HARNESS_REPORT`) of the same name.

    If pytest-recording is active, `--record-mode` and `--disable-recording` are its own, with the same meaning.
    """
    group = parser.getgroup("harness", "scenarios of declarative agents (harness)")
    for key, text in OPTIONS.items():
        option, metavar = f"--harness-{key.replace('_', '-')}", "TIME" if key == "now" else "PATH"
        group.addoption(option, dest=f"harness_{key}", metavar=metavar, help=text)
        parser.addini(f"harness_{key}", text)
    text = (
        "hold the scenarios to the rules of [tool.harness.gate] at the end; a failed rule fails the session"
    )
    group.addoption("--harness-gate", action="store_true", help=text)
    text = "value of ${NAME} in manifests; overrides that of a scenario and of [tool.harness.env]"
    group.addoption(
        "--harness-env", dest="harness_env", action="append", default=[], metavar="NAME=VALUE", help=text
    )
    text = "keep the traces of all runs (the default), of those that failed, or none"
    group.addoption("--traces", dest="harness_traces", choices=TRACES, help=text)
    parser.addini("harness_traces", text)
    group.addoption(
        "--harness-variants",
        dest="harness_variants",
        metavar="FILE",
        help="run each scenario once as each variant of this file, name[terse]; see `harness score`",
    )
    group.addoption(
        "--harness-explore",
        dest="harness_explore",
        type=int,
        metavar="N",
        help="explore each scenario that has `explore:` in N runs, as an item of its own; see `harness explore`",
    )
    if not _has_pytest_recording(pluginmanager):
        group.addoption(
            "--record-mode",
            choices=RECORD_MODES,
            help="what to do with calls no stub answers, in scenarios with a cassette (default: none, replay only)",
        )
        group.addoption(
            "--disable-recording",
            action="store_true",
            default=False,
            help="call the real service where no stub answers; cassettes are neither read nor written",
        )


def _has_pytest_recording(pluginmanager: pytest.PytestPluginManager) -> bool:
    """True if pytest-recording is active, and adds these options before or after this plugin."""
    if pluginmanager.has_plugin("recording") or pluginmanager.has_plugin(PYTEST_RECORDING):
        return True
    if pluginmanager.is_blocked("recording") or os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        return False
    from importlib.metadata import entry_points

    return any(found.value == PYTEST_RECORDING for found in entry_points(group="pytest11", name="recording"))


def projects_of(config: pytest.Config) -> Projects:
    """Return the settings of all projects: `[tool.harness]`, then ini, the environment, the command line."""
    if _projects_key not in config.stash:
        from harness.settings import Projects, parse_variables

        keys = [*OPTIONS, "traces"]
        ini = {key: value for key in keys if (value := config.getini(f"harness_{key}"))}
        chosen = {key: value for key in keys if (value := config.getoption(f"harness_{key}"))}
        config.stash[_projects_key] = Projects(
            ini=ini,
            ini_folder=config.rootpath,
            chosen=chosen,
            record_mode=record_mode(config),
            given_env=parse_variables(config.getoption("harness_env")),
        )
    return config.stash[_projects_key]


def settings_of(config: pytest.Config, file: Path) -> Settings:
    """Return the settings of the project of a scenario file.

    Raises:
        pytest.UsageError: a setting is unknown, or its value is not allowed.
    """
    try:
        return projects_of(config).of(file)
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from None


def record_mode(config: pytest.Config) -> RecordMode:
    """Return the record mode that the command line asks for."""
    from harness.settings import RecordMode

    if config.getoption("disable_recording", False):
        return RecordMode.LIVE
    return RecordMode(config.getoption("record_mode", None) or "none")
