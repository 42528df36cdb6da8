"""Fixtures of the tests of the world."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.scenario.load import load_file
from harness.scenario.outcome import RunResult
from harness.scenario.run import run_once
from harness.settings import Settings
from tests.world.tool_runs import HANDLERS, HEAD, MANIFEST, Run, function_of


@pytest.fixture
def run_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run a scenario with these keys, whose only node calls a tool with this body with `state` as its argument."""
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def outcome(body: str, keys: str, manifest: str = MANIFEST) -> RunResult:
        (tmp_path / "agent.yaml").write_text(manifest, encoding="utf-8")
        (tmp_path / "real_tool.py").write_text(function_of(body), encoding="utf-8")
        lines = "".join(f"  {line}\n" for line in keys.strip("\n").splitlines())
        lines += "" if "handlers:" in keys else HANDLERS
        (tmp_path / "it.scenario.yaml").write_text(HEAD + lines, encoding="utf-8")
        sys.modules.pop("real_tool", None)
        return run_once(load_file(tmp_path / "it.scenario.yaml").scenarios[0], Settings(), seed=0)

    yield outcome
    sys.modules.pop("real_tool", None)
