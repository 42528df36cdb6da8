import os
from pathlib import Path

import pytest

from tests.recording.project import Project


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """It guards against a loss of power, which no test shows, and costs milliseconds a file."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project of its own, in which we are."""
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, monkeypatch)
