"""The agent `desk`, without the developer's own client settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dialects.loki.knowledge.desk import Desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    made = Desk(tmp_path)
    monkeypatch.chdir(made.project)
    return made
