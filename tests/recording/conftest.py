import os
from pathlib import Path

import pytest

from tests.recording.project import Project


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable fsync: it protects against power failures, which no test simulates, and costs milliseconds a file."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A separate project, which is the current folder."""
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, monkeypatch)
