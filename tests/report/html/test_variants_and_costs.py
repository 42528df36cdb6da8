"""Variants, and the cost of models and nodes in report.html; the figures equal summary.json."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.scenario.outcome import Outcome
from tests.report.html.conftest import outcome, write, wrong_path


def usage(model: str, node: str, tokens: int, cost: float | None) -> dict[str, Any]:
    """Return the usage of one call."""
    counts = {"llm_calls": 1, "input_tokens": tokens, "output_tokens": 10, "cost": cost}
    return {**counts, "cost": cost or 0.0, "by_model": {model: counts}, "by_node": {node: counts}}


def run(name: str, variant: str | None, verdict: str = "passed", **fields: Any) -> Outcome:
    return outcome(
        name, verdict, variant=variant, checks=[wrong_path()] if verdict == "failed" else [], **fields
    )


OUTCOMES = [
    run("a", "baseline", usage=usage("gpt-4o", "classify", 1000, 0.01)),
    run("b", "baseline", usage=usage("gpt-4o", "answer", 500, 0.005)),
    run("a", "terse", "failed", usage=usage("ours", "classify", 200, None)),
    run("b", "terse", usage=usage("gpt-4o", "answer", 100, 0.001)),
    run("c", None),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("run"), OUTCOMES)


def cells(page: Any, section: str) -> list[list[str]]:
    """Return the texts of a table, one list for each row."""
    rows = page.locator(f"section[aria-label='{section}'] tbody tr").all()
    return [row.locator("th, td").all_inner_texts() for row in rows]


def test_variants_are_side_by_side_with_the_figures_of_the_summary(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + "#variants")
    figures = {row[0]: row[1:] for row in cells(page, "Figures of the variants")}
    summary = json.loads((report.parent / "summary.json").read_text())["variants"]
    assert figures["runs"] == [str(summary[name]["runs"]) for name in ("baseline", "terse")]
    assert figures["fitness"] == ["1.000", "0.750\n▼ 0.250 worse"]
    assert figures["pass rate"] == ["100 %", "50.0 %\n▼ 50.0 points worse"]
    assert figures["tokens"][1].startswith(f"{summary['terse']['tokens']['total']:,}\n▼")
    assert figures["cost"] == ["$0.015", "$0.001 (no price of ours)"]  # no claim that it is cheaper
    assert "1 scenario ran without a variant" in page.locator("#view").inner_text()


def test_latency_and_cost_of_nodes_are_shown_for_each_variant(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + "#variants")
    nodes = {row[0].split()[0]: row[1:] for row in cells(page, "Latency and cost of nodes by variant")}
    assert nodes["classify"] == ["500 ms\n$0.01", "500 ms\nno price"]
    assert nodes["answer"] == ["1.00 s\n$0.005", "1.00 s\n$0.001"]


def test_tokens_and_cost_are_shown_by_model_and_by_node(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + "#latency")
    summary = json.loads((report.parent / "summary.json").read_text())
    models = summary["total"]["models"]
    assert cells(page, "Tokens and cost by model") == [
        ["gpt-4o", "3", f"{models['gpt-4o']['input_tokens']:,}", "30", "$0.016"],
        ["ours", "1", f"{models['ours']['input_tokens']:,}", "10", "no price"],
    ]
    nodes = cells(page, "Latency, tokens and cost by node")
    assert [[*row[:2], row[-1]] for row in nodes] == [
        ["classify", "triage.yaml", "at least $0.01"],
        ["answer", "triage.yaml", "$0.006"],
    ]
    assert [row[2] for row in nodes] == [
        str(summary["latency_by_node"]["triage.yaml"][name]["runs"]) for name in ("classify", "answer")
    ]


def test_the_distributions_count_every_run(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + "#latency")
    assert page.locator("svg[aria-label^='Latency of runs: 5 at 1.50 s']").count() == 1
    scores = page.locator("svg[aria-label^='Score of runs']").get_attribute("aria-label")
    assert scores == "Score of runs: 1 at 0.50 to 0.54, 4 at 0.96 to 1.00"
