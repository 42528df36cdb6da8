from pathlib import Path

import pytest

from tests.recording.project import Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project of its own, in which we are."""
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, monkeypatch)
