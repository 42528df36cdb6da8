"""Cost of runs: the project's prices, the price list, and models in neither."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from tests.manifests import ASKING


def run(folder: Path, model: str, settings: str = "", expect: str = "{}") -> tuple[int, str]:
    """Return exit code and output of a run whose model reports 1,000,000 input and 500,000 output tokens."""
    (folder / "pyproject.toml").write_text(f"[tool.harness.prices]\n{settings}\n")
    (folder / "ask.yaml").write_text(ASKING.replace("${MODEL}", model))
    reply = "{reply: hi, usage: {input_tokens: 1000000, output_tokens: 500000}}"
    (folder / "a.scenario.yaml").write_text(
        f"harness: 1\nmanifest: ask.yaml\nscenarios: [{{name: x, llm: {{'*': [{reply}]}}, expect: {expect}}}]\n"
    )
    result = CliRunner().invoke(cli, ["run", "a.scenario.yaml"])
    return result.exit_code, result.output


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HARNESS_PRICES", raising=False)


def line(folder: Path) -> Any:
    return json.loads((folder / "reports/latest/results.jsonl").read_text())


def total(folder: Path) -> Any:
    return json.loads((folder / "reports/latest/summary.json").read_text())["total"]


def test_a_project_sets_the_price_of_a_model(tmp_path: Path) -> None:
    code, said = run(tmp_path, "ours", "ours = {input = 2, output = 6}", "{usage: {cost: 5}}")
    assert code == 0
    usage = line(tmp_path)["usage"]
    assert (usage["cost"], usage["by_model"]["ours"]["cost"]) == (5.0, 5.0)
    assert (total(tmp_path)["cost"], total(tmp_path)["models"]["ours"]["cost"]) == (5.0, 5.0)
    assert "1,000,000 in · 500,000 out · cost 5.00\n" in said


def test_an_exceeded_bound_on_the_cost_fails(tmp_path: Path) -> None:
    assert run(tmp_path, "ours", "ours = {input = 2, output = 6}", "{usage: {cost: 4.99}}")[0] == 1
    assert "cost: expected at most 4.99, was 5" in str(line(tmp_path)["checks"])


def test_prices_of_the_project_override_the_built_in_list(tmp_path: Path) -> None:
    pytest.importorskip("genai_prices")
    assert run(tmp_path, "gpt-4o-mini")[0] == 0
    assert line(tmp_path)["usage"]["cost"] == pytest.approx(0.15 + 0.3)
    assert run(tmp_path, "gpt-4o-mini", "gpt-4o-mini = {input = 1, output = 0}")[0] == 0
    assert line(tmp_path)["usage"]["cost"] == 1.0


def test_a_model_without_a_price_is_named_beside_the_cost(tmp_path: Path) -> None:
    code, said = run(tmp_path, "ours")
    assert code == 0
    assert line(tmp_path)["usage"]["by_model"]["ours"]["cost"] is None
    assert "cost 0 (no price of ours)" in said
    assert "cost 0 (no price of ours)" in (tmp_path / "reports/latest/summary.md").read_text()
    assert "no price of ours" in (tmp_path / "reports/latest/report.html").read_text()


def test_a_bound_on_the_cost_without_any_price_is_an_error(tmp_path: Path) -> None:
    assert run(tmp_path, "ours", expect="{usage: {cost: 1}}")[0] != 0
    assert line(tmp_path)["verdict"] == "error"
    assert "no price is known of 'ours'; add it to [tool.harness.prices]" in str(line(tmp_path)["checks"])


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("ours = 2", "expected {input, output} for model 'ours', found 2"),
        ("ours = {inptu = 2}", "unknown key 'inptu' in the price of model 'ours' (did you mean 'input'?)"),
        ("ours = {input = 2}", "the price of model 'ours' lacks 'output'"),
        ("ours = {input = -1, output = 1}", "in 'input' of model 'ours', found -1"),
        ("ours = {input = true, output = 1}", "in 'input' of model 'ours', found True"),
        ("ours = {input = nan, output = 1}", "in 'input' of model 'ours', found nan"),
    ],
)
def test_an_invalid_price_is_an_error(tmp_path: Path, settings: str, told: str) -> None:
    code, output = run(tmp_path, "ours", settings)
    said = " ".join(output.split())
    assert code == 2
    assert told in said
    assert "'prices' in [tool.harness] in pyproject.toml" in said
