from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.isolation.project import write_project

Project = Callable[..., Path]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a suite with a scenario for each of these tools, in the current folder."""
    monkeypatch.chdir(tmp_path)

    def written(tools: str, *names: str, settings: str = "", expect: str = "") -> Path:
        return write_project(tmp_path, tools, names, settings, expect)

    return written
