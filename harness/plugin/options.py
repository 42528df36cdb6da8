"""Options of the command line and the settings they give (docs/configuration of pytest: `pytest --help`)."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from harness.settings import RecordMode, Settings

OPTIONS: Final = {
    "report": "folder the results are written to (default: reports/latest)",
    "cassettes": "folder of the recordings (default: cassettes, in the project)",
    "pythonpath": f"folders Python modules are imported from, separated by {os.pathsep!r}",
    "allow_paths": f"folders outside the project manifests may read, separated by {os.pathsep!r}",
}
RECORD_MODES: Final = ("none", "once", "new_episodes", "all", "rewrite")
PYTEST_RECORDING: Final = "pytest_recording.plugin"

_settings_key = pytest.StashKey["Settings"]()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Options, each with the same key as ini setting (`harness_report`) and variable (`HARNESS_REPORT`).

    `--record-mode` and `--disable-recording` are pytest-recording's where that is active, with the same meaning.
    """
    group = parser.getgroup("harness", "scenarios of declarative agents (harness)")
    for key, text in OPTIONS.items():
        group.addoption(
            f"--harness-{key.replace('_', '-')}", dest=f"harness_{key}", metavar="PATH", help=text
        )
        parser.addini(f"harness_{key}", text)
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
    """True if pytest-recording adds these options itself, before or after this plugin."""
    if pluginmanager.has_plugin("recording") or pluginmanager.has_plugin(PYTEST_RECORDING):
        return True
    if pluginmanager.is_blocked("recording") or os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        return False
    from importlib.metadata import entry_points

    return any(found.value == PYTEST_RECORDING for found in entry_points(group="pytest11", name="recording"))


def settings_of(config: pytest.Config) -> Settings:
    """The settings of the session: `[tool.harness]`, then ini, then the environment, then the command line.

    Raises:
        pytest.UsageError: a setting is unknown, or its value is not allowed.
    """
    if _settings_key not in config.stash:
        from harness.errors import HarnessError
        from harness.settings import load_settings

        ini = {key: value for key in OPTIONS if (value := config.getini(f"harness_{key}"))}
        chosen = {key: value for key in OPTIONS if (value := config.getoption(f"harness_{key}"))}
        try:
            settings = load_settings(config.rootpath, ini=ini, chosen=chosen)
            config.stash[_settings_key] = replace(settings, record_mode=record_mode(config))
        except HarnessError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[_settings_key]


def record_mode(config: pytest.Config) -> RecordMode:
    """The record mode that the command line asks for."""
    from harness.settings import RecordMode

    if config.getoption("disable_recording", False):
        return RecordMode.LIVE
    return RecordMode(config.getoption("record_mode", None) or "none")
