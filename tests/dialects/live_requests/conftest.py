from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.scenario.load import load_file
from harness.scenario.run import run_scenario
from harness.settings import RecordMode, load_settings
from tests.dialects.live_requests.answers import (
    Live,
)
from tests.world.loopback import CannedReply, ReceivedRequest, loopback

KEY = "sk-live-test"
_ELSEWHERE = ("_API_KEY", "_BASE_URL", "_API_BASE", "_API_URL", "_proxy", "_PROXY")


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Live:
    """Runs a scenario with these keys, live, against a server with these answers: what that was asked.

    `SERVER` in a file stands for where the server is.
    """
    for name in [name for name in os.environ if name.endswith(_ELSEWHERE) or name.startswith("HARNESS_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(files: Mapping[str, str], answers: Sequence[CannedReply], **keys: Any) -> list[ReceivedRequest]:
        with loopback(*answers) as server:
            for name, text in files.items():
                (tmp_path / name).write_text(text.replace("SERVER", server.url), encoding="utf-8")
            for provider, url in {"OPENAI": f"{server.url}/v1", "ANTHROPIC": server.url}.items():
                monkeypatch.setenv(f"{provider}_API_KEY", KEY)
                monkeypatch.setenv(f"{provider}_BASE_URL", url)
            scenario = {"name": "it", "manifest": next(iter(files)), "input": "hello", **keys}
            path = tmp_path / "it.scenario.yaml"
            path.write_text(json.dumps({"harness": 1, "scenarios": [scenario]}), encoding="utf-8")
            settings = replace(load_settings(), record_mode=RecordMode.LIVE)
            (outcome,) = run_scenario(load_file(path).scenarios[0], settings)
            assert outcome.observed.status == "completed", outcome.observed.error
            return server.asked

    return run
