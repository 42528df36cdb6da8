"""report.html as a file: its figures equal summary.json, and data of a run is escaped."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.report.html import page as module
from harness.report.html.overview import Baseline
from harness.report.html.page import page
from harness.report.summary import summary_of
from harness.scenario.outcome import Outcome
from tests.report.html.conftest import HOSTILE, TURNED, MakeRun, outcome, wrong_path


def text_of(run: Path) -> str:
    return (run / "report.html").read_text(encoding="utf-8")


def data_of(text: str, name: str = "data") -> dict:  # type: ignore[type-arg]
    [found] = re.findall(rf'<script type="application/json" id="{name}">(.*?)</script>', text, re.S)
    return json.loads(found)  # type: ignore[no-any-return]


def tiles(text: str) -> dict[str, str]:
    return dict(re.findall(r"<dt>(.*?)</dt><dd><b>(.*?)</b>", text))


def test_page_shows_the_figures_of_summary_json(write_run: MakeRun, mixed_outcomes: list[Outcome]) -> None:
    run = write_run(*mixed_outcomes)
    summary = json.loads((run / "summary.json").read_text())
    total = summary["total"]
    data = data_of(text_of(run))
    assert data["summary"]["total"] == total
    assert tiles(text_of(run))["fitness"] == f"{total['fitness']:.3f}"
    assert tiles(text_of(run))["pass rate"] == f"{total['pass_rate']:.1%}".replace("%", " %")
    assert {each["name"]: each["coverage"] for each in data["manifests"] if each["coverage"]} == summary[
        "coverage"
    ]
    assert len(data["rows"]) == total["scenarios"]
    assert sum(len(row["runs"]) for row in data["rows"]) == total["runs"]


def test_headline_states_the_failures(write_run: MakeRun, mixed_outcomes: list[Outcome]) -> None:
    assert '<h1 class="failed">3 of 6 scenarios fail and 1 could not be judged; 1 skipped.</h1>' in text_of(
        write_run(*mixed_outcomes)
    )
    assert '<h1 class="passed">All 2 scenarios pass.</h1>' in text_of(write_run(outcome("a"), outcome("b")))


def test_changes_since_a_baseline_are_shown(write_run: MakeRun) -> None:
    before = write_run(outcome("a"), outcome("b", "failed"), outcome("c"), outcome("gone"), folder="before")
    now = write_run(
        outcome("a", "failed", checks=[wrong_path()]),
        outcome("b"),
        outcome("c", path=["classify"]),
        outcome("d"),
    )
    text = page(now, summary_of(now), Baseline.read(before))
    data = data_of(text)
    assert {row["name"]: row["change"] for row in data["rows"]} == {
        "a": "new",
        "b": "fixed",
        "c": "moved",
        "d": "added",
    }
    assert data["removed"] == ["triage.scenario.yaml::gone"]
    assert data["rows"][2]["before"]["path"] == ["classify", "answer"]
    assert "1 of 4 scenarios fails, and it is new; 1 scenario fixed." in text


def test_scenarios_with_the_same_fault_are_one_cause(write_run: MakeRun) -> None:
    error = {
        "type": "ManifestError",
        "code": "no-file",
        "message": "no such file",
        "node": None,
        "where": "a.yaml:2:1",
    }
    run = write_run(*(outcome(f"number {n}", "error", error=error, status="invalid") for n in range(8)))
    text = text_of(run)
    assert text.count('<details class="cause') == 1
    assert "affects 8" in text


def test_page_of_an_incomplete_run_has_a_note(write_run: MakeRun) -> None:
    assert "<b>Not a whole run:</b> interrupted after 1 of 5 runs." in text_of(
        write_run(outcome("a"), incomplete="interrupted after 1 of 5 runs")
    )


def test_embedded_data_cannot_end_a_script_or_change_the_text_direction(write_run: MakeRun) -> None:
    run = write_run(
        outcome(
            HOSTILE,
            "failed",
            output=HOSTILE + TURNED,
            tags=[HOSTILE],
            checks=[wrong_path()],
            warnings=[HOSTILE],
        )
    )
    text = text_of(run)
    assert "<img" not in text
    assert text.count("</script>") == 3  # the data, one run, our own
    assert "\u2028" not in text
    assert "‮" not in re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert data_of(text)["rows"][0]["name"] == HOSTILE
    assert data_of(text, "run-0")["output"] == HOSTILE + TURNED


def test_policy_allows_only_the_hashes_of_our_script_and_style(write_run: MakeRun) -> None:
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', text_of(write_run(outcome("a"))))
    assert policy is not None
    rules = policy[1].replace("&#39;", "'").split("; ")
    assert rules[0] == "default-src 'none'"
    assert [rule.split()[0] for rule in rules if "sha256-" in rule] == ["script-src", "style-src"]
    assert not [rule for rule in rules if "unsafe" in rule or "http" in rule or "*" in rule]


def test_page_is_bounded_and_lists_what_it_left_out(
    write_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(
        *(outcome(f"number {n}", output="long " * 1000) for n in range(20)),
        outcome("last", "failed", checks=[wrong_path()]),
    )
    monkeypatch.setattr(module, "MAX_DETAILS", 30_000)
    text = page(run, summary_of(run))
    kept = re.findall(r'id="run-(\d+)"', text)
    assert "20" in kept  # that did not pass comes first
    assert f"the details of {21 - len(kept)} runs" in text
    monkeypatch.setattr(module, "MAX_ROWS", 5)
    text = page(run, summary_of(run))
    assert "16 scenarios that passed" in text
    assert data_of(text)["rows"][0]["name"] == "last"


def test_untaken_branches_have_their_location(write_run: MakeRun, mixed_outcomes: list[Outcome]) -> None:
    [manifest] = [
        each for each in data_of(text_of(write_run(*mixed_outcomes)))["manifests"] if each["coverage"]
    ]
    assert manifest["coverage"]["branches"]["missing"] == [
        'classify -> open_ticket [state.intent == "billing"]'
    ]
    assert manifest["lines"]['classify -> open_ticket [state.intent == "billing"]'] == "more.yaml:19"
    assert manifest["lines"]["classify -> answer"] == "triage.yaml:20"


def test_latency_of_nodes_equals_the_summary(write_run: MakeRun, mixed_outcomes: list[Outcome]) -> None:
    run = write_run(*mixed_outcomes)
    [manifest] = [each for each in data_of(text_of(run))["manifests"] if each["coverage"]]
    summary = json.loads((run / "summary.json").read_text())["latency_by_node"]["triage.yaml"]
    latencies = ("runs", "p50", "p90", "p95", "p99", "max")
    shown = {each["node"]: {name: each["all"][name] for name in latencies} for each in manifest["nodes"]}
    assert shown == summary


def test_page_of_old_results_without_causes_and_locations(
    write_run: MakeRun, mixed_outcomes: list[Outcome]
) -> None:
    run = write_run(*mixed_outcomes)
    lines = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    for line in lines:
        del line["cause"], line["where"], line["shape"]
        for check in line["checks"]:
            del check["where"]
    (run / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run / "summary.json").unlink()
    assert "3 of 6 scenarios fail" in page(run, summary_of(run))


def test_long_cause_is_folded_with_the_number_of_hidden_characters(write_run: MakeRun) -> None:
    error = {"type": "E", "code": None, "message": "m" * 5000, "node": None, "where": None}
    text = text_of(write_run(outcome("a", "error", status="failed", error=error)))
    assert f"{'m' * 1500} … 3,500 more characters</pre>" in text


def test_no_change_of_cost_is_shown_if_a_model_has_no_price(write_run: MakeRun) -> None:
    def usage(cost: float | None) -> dict[str, Any]:
        counts = {"llm_calls": 1, "input_tokens": 10, "output_tokens": 1, "cost": cost}
        return {**counts, "cost": cost or 0.0, "by_model": {"m": counts}, "by_node": {"answer": counts}}

    before, now = (
        write_run(outcome("a", usage=usage(0.5)), folder="before"),
        write_run(outcome("a", usage=usage(None))),
    )
    text = page(now, summary_of(now), Baseline.read(before))
    assert "no price of m" in text
    assert "cheaper" not in text.split("</header>")[0]
