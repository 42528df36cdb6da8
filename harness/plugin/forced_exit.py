"""Immediate exit from pytest if a run past its real time limit has left threads, for which Python would wait."""

from __future__ import annotations

import os
import sys

import pytest

_session_key = pytest.StashKey[pytest.Session]()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep the session, as its exit status may still change."""
    session.config.stash[_session_key] = session


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Exit at once if threads are left. Workers of xdist are ended by their controller."""
    limit = sys.modules.get("harness.scenario.real_limit")
    session = config.stash.get(_session_key, None)
    if (
        limit is None
        or session is None
        or hasattr(config, "workerinput")
        or not limit.has_abandoned_threads()
    ):
        return
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        terminal.flush()
    os._exit(session.exitstatus)
