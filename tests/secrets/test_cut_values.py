"""Secrets that were cut before they were replaced."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.main import cli
from harness.secrets import Secrets
from harness.source.display import clip
from tests.manifests import ASKING

KEY = "sk-live-4f9a8b7c6d5e4f3a2b1c0d9e"
MANIFEST = (
    ASKING.replace("${MODEL}", "gpt-4o")
    .replace("default: []}", 'default: []}, {name: said, type: str, default: ""}')
    .replace("'[llm_response]'}", "'[llm_response]', said: llm_response.content}")
)
"""The agent stores the model's reply in `said`."""


def _known() -> Secrets:
    return Secrets({"MY_API_KEY": KEY})


@given(st.text("ab …"), st.text("ab …"), st.integers(1, 80))
def test_a_truncated_text_contains_no_part_of_a_secret(before: str, after: str, limit: int) -> None:
    cut = clip(f"{before}{KEY}{after}", limit)
    shown = _known().data([cut])[0]
    assert KEY[:6] not in shown


@given(st.integers(0, len(KEY)))
def test_a_text_without_its_beginning_contains_no_part_of_a_secret(at: int) -> None:
    shown = _known().text(f"…{KEY[at:]} and more")
    assert KEY[-6:] not in shown


@given(st.recursive(st.text("ab…"), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_a_value_without_a_part_of_a_secret_is_returned_unchanged(value: object) -> None:
    assert _known().data(value) is value


@pytest.mark.parametrize("size", [80, 95, 480, 495])
def test_output_and_files_of_a_run_contain_no_part_of_a_secret(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_API_KEY", KEY)
    text = f"{'x' * size} {KEY} {'and more ' * 100}"
    scenarios = [
        {"name": "a reply", "llm": {"ask": [text]}},
        {"name": "an error", "llm": {"ask": [{"error": {"kind": "invalid_request", "message": text}}]}},
    ]
    scenarios = [{"input": "hi", "expect": {"state": {"said": "x"}}} | scenario for scenario in scenarios]
    Path("asking.yaml").write_text(MANIFEST, encoding="utf-8")
    document = {"harness": 1, "manifest": "asking.yaml", "scenarios": scenarios}
    Path("a.scenario.yaml").write_text(json.dumps(document), encoding="utf-8")
    shown = CliRunner().invoke(cli, ["run", ".", "--narrate"], prog_name="harness").output
    written = [file.read_text(encoding="utf-8") for file in Path("reports/latest").glob("*.*")]
    assert "2 failed" in shown
    assert [text for text in [shown, *written] if KEY[:6] in text] == []
