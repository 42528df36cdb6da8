"""Fixtures of the tests of isolation."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.isolation.project import write_project

Project = Callable[..., Path]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that writes a suite with one scenario per tool into the current folder."""
    monkeypatch.chdir(tmp_path)

    def write(tools: str, *names: str, settings: str = "", expect: str = "") -> Path:
        return write_project(tmp_path, tools, names, settings, expect)

    return write
