"""The view of a score: verdicts, the Pareto front, the matrix of scenarios, two conversations side by side."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.errors import FormatError
from harness.report.encoding import encode
from harness.report.html import page as module
from harness.report.html.page import write_page
from harness.report.reading import SCORE
from harness.report.results import line
from harness.scenario.outcome import CheckResult, Outcome
from tests.report.html.conftest import HOSTILE, MakeRun, outcome, run_events, write

PROMPT = "You are a clerk of a bakery. Answer the customer's question in one sentence."
KIND = PROMPT.replace("Answer", "Kindly answer")


def polite(passed: bool) -> CheckResult:
    return CheckResult(
        "output", passed, float(passed), 1.0, "Gladly", "No.", "" if passed else "says no\nand so on"
    )


def run(name: str, variant: str, *, passes: bool, prompt: str = PROMPT, **fields: Any) -> Outcome:
    events = run_events("Gladly." if passes else "No.")
    for event in events:
        if event["event"] == "shared" and event["value"].get("content") == "Answer it.":
            event["value"] = {"type": "system", "content": prompt}
    checks = [polite(passes), CheckResult("path", True, 1.0, 1.0, [], [], "")]
    verdict = "passed" if passes else "failed"
    return outcome(name, verdict, variant=variant, checks=checks, events=events, **fields)


def figures(
    name: str, fitness: float, difference: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "name": name,
        "runs": 3,
        "pass_rate": fitness,
        "fitness": fitness,
        "latency": {"p50": 0.2 + fitness, "p95": 1.0},
        "tokens": 1200,
        "cost": 0.01 * fitness,
        "answers": {"scripted": 3},
        "difference": difference,
        "note": None,
        **more,
    }


def between(fitness: float, verdict: str | None, low: float | None, high: float | None) -> dict[str, Any]:
    return {"fitness": fitness, "low": low, "high": high, "p": 0.04, "verdict": verdict, "scenarios": 3}


def changed(name: str, variant: str, before: float, after: float) -> dict[str, Any]:
    words = {1.0: "passed", 0.5: "failed"}
    return {
        "id": f"triage.scenario.yaml::{name}",
        "variant": variant,
        "before": before,
        "after": after,
        "verdicts": [words[before], words[after]],
        "checks": ["output: says no"],
    }


STOPPED = "stopped after 2 scenarios: beaten by kind (p 0.005)"
SAYS: dict[str, Any] = {
    "format": "harness-score/1",
    "baseline": "plain",
    "variants": [
        figures("plain", 0.5),
        figures("kind", 0.75, between(0.25, "better", 0.1, 0.5)),
        figures("terse", 0.4, between(-0.1, "no evidence", -0.2, 0.05), note="about 40 more scenarios would show it"),
        figures("same", 0.5, between(0.0, None, 0.0, 0.0), note="cannot differ: every answer came from stubs"),
        figures("slow", 0.5, between(0.0, "no evidence", None, None), stopped=STOPPED),
    ],
    "changed": [changed("b", "kind", 0.5, 1.0), changed("a", "terse", 1.0, 0.5)],
    "pareto": ["plain", "kind"],
}  # fmt: skip


def outcomes() -> list[Outcome]:
    """Return the outcomes of a score, anew for each use: writing them removes their events."""
    return [
        *(run("a", name, passes=name != "terse") for name in ("plain", "kind", "terse", "same", "slow")),
        run("b", "plain", passes=False, repeat=0),
        run("b", "plain", passes=True, repeat=1),
        run("b", "kind", passes=True, prompt=KIND, repeat=0),
        run("b", "kind", passes=True, prompt=KIND, repeat=1),
        run(HOSTILE, "plain", passes=True),
        run(HOSTILE, "kind", passes=True),
    ]


def scored(folder: Path, says: dict[str, Any] | None = None) -> Path:
    (folder / SCORE).write_text(json.dumps(SAYS if says is None else says))
    return write_page(folder)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    write(folder, outcomes())
    return scored(folder)


def verdicts(page: Any) -> dict[str, list[str]]:
    rows = page.locator("table.verdicts tbody tr").all()
    texts = [row.locator("th, td").all_inner_texts() for row in rows]
    return {cells[0].splitlines()[0]: [" ".join(cell.split()) for cell in cells] for cells in texts}


def matrix(page: Any) -> dict[str, list[str]]:
    """Return the names of the scenarios and the texts of their cells."""
    rows = page.locator("#rows tbody tr").all()
    return {
        row.locator("th b").inner_text(): [
            " ".join(cell.split()) for cell in row.locator("td").all_inner_texts()
        ]
        for row in rows
    }


def test_page_of_a_score_opens_with_the_verdicts(page: Any, report: Path) -> None:
    page.goto(report.as_uri())
    said = page.locator("h1").inner_text()
    assert said == (
        "kind is better than plain by 0.250; no evidence on terse; slow was stopped, beaten by another;"
        " no verdict on same."
    )
    found = verdicts(page)
    assert found["plain"][:3] == ["plain Pareto front", "the baseline", "–"]
    assert found["kind"][:3] == [
        "kind Pareto front",
        "better than plain p 0.040",
        "+0.250 (+0.100 to +0.500)",
    ]
    assert found["terse"][1] == "no evidence p 0.040 about 40 more scenarios would show it"
    assert found["same"][1] == "no verdict cannot differ: every answer came from stubs"
    assert found["slow"][1:3] == [
        f"no evidence p 0.040 {STOPPED}",
        "+0.000, no interval",
    ]
    assert found["kind"][-2:] == ["▲ 1 better output 1", "3 runs scripted"]
    assert found["terse"][-2] == "▼ 1 worse output 1"


def test_intervals_are_drawn_on_one_scale_with_0_in_its_middle(report: Path) -> None:
    drawn = re.findall(r'<svg class="interval".*?</svg>', report.read_text(), re.S)
    places = [float(re.findall(r'circle cx="([\d.]+)"', each)[0]) for each in drawn]
    assert places == [147.0, 81.2, 100.0, 100.0]  # of +0.25, -0.1, 0 and 0 where ±0.5 are 6 and 194
    assert ['class="bar"' in each for each in drawn] == [True, True, True, False]


def test_pareto_plot_has_a_text_alternative(page: Any, report: Path) -> None:
    page.goto(report.as_uri())
    said = page.locator("figure.plot svg").evaluate_all(
        "all => all.map(each => each.getAttribute('aria-label'))"
    )
    assert [each.split(".")[0] for each in said] == ["Fitness and latency (p50)", "Fitness and cost"]
    assert "kind: fitness 0.750, latency (p50) 950 ms, on the front" in said[0]
    assert page.locator("figure.plot").first.locator("circle.front").count() == 2
    assert "slow" not in said[0]  # it ran through fewer scenarios


def test_matrix_lists_changed_scenarios_first_and_filters_them(page: Any, report: Path) -> None:
    page.goto(report.as_uri())
    found = matrix(page)
    assert [*found] == ["a", "b", HOSTILE]
    assert found["a"][2] == "✗ failed 0.500 ▼ worse: output: says no"
    assert found["b"][:2] == ["✗ failed 0.750", "✓ passed 1.000 ▲ better: output: says no"]
    assert found["b"][2:] == ["–", "–", "–"]  # the variant does not apply to it
    page.select_option("#matrix-show", "better")
    assert [*matrix(page)] == ["b"]
    page.select_option("#matrix-as", "terse")
    assert [*matrix(page)] == []
    page.select_option("#matrix-show", "")
    page.fill("#search", "title")
    assert [*matrix(page)] == [HOSTILE]
    assert page.url.endswith("#variants&as=terse&q=title")


def test_scenarios_with_several_variants_are_counted_once(page: Any, report: Path) -> None:
    page.goto(f"{report.as_uri()}#scenarios")
    assert page.get_by_role("link", name="Scenarios 3").is_visible()
    assert "rows (3 scenarios as variants)" in page.locator("#view .count").inner_text()


def test_cell_opens_both_conversations_at_their_first_difference(page: Any, report: Path) -> None:
    page.goto(report.as_uri())
    page.locator("#rows tbody tr", has_text="▲ better").get_by_role("link", name="passed").click()
    page.locator(".beside .apart").first.wait_for()
    assert page.locator(".beside h3").all_inner_texts() == ["plain", "kind"]
    first = page.locator(".beside .apart").all_inner_texts()
    assert ["differs from here" in each for each in first] == [True, True]
    assert ["No." in first[0], "Gladly." in first[1]] == [True, True]
    assert "5 steps before, the same in both" in page.locator("#view").inner_text()
    assert page.locator("section[aria-label='Checks that differ'] tbody th").all_inner_texts() == ["output"]


def test_prompts_that_differ_are_shown_word_by_word(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + "#pair=triage.scenario.yaml%3A%3Ab&variant=kind")
    shown = page.locator("section[aria-label='Prompts that differ'] pre")
    shown.wait_for()
    assert shown.locator("del").all_inner_texts() == ["Answer"]
    assert shown.locator("ins").all_inner_texts() == ["Kindly answer"]
    assert shown.inner_text().endswith("the customer's question in one sentence.")


def test_pair_links_to_its_other_repeats(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + "#pair=triage.scenario.yaml%3A%3Ab&variant=kind")
    page.get_by_role("link", name="✓✓ 2").click()
    page.get_by_text("Checks that differ: 0 of 2").wait_for()


def test_equal_pair_has_a_note(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + "#pair=triage.scenario.yaml%3A%3Aa&variant=same")
    page.get_by_text("Both conversations are the same").wait_for()
    page.get_by_text("Both sent the same prompts.").wait_for()


def test_verdicts_and_changed_scenarios_are_tables_without_javascript(browser: Any, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert verdicts(page)["kind"][1] == "better than plain p 0.040"
    assert "0.500 → 1.000, failed → passed" in page.locator("#scored").inner_text()
    context.close()


def test_five_variants_of_two_thousand_scenarios_open_quickly(page: Any, tmp_path: Path) -> None:
    names = ["plain", "kind", "terse", "same", "slow"]
    lines = {
        (verdict, name): encode(line(outcome("number N", verdict, variant=name)))
        for verdict in ("passed", "failed")
        for name in names
    }
    written = (
        lines["failed" if at % 7 == place else "passed", name].replace("number N", f"number {at}")
        for at in range(2000)
        for place, name in enumerate(names)
    )
    (tmp_path / "results.jsonl").write_text("\n".join(written) + "\n", encoding="utf-8")
    page.goto(scored(tmp_path).as_uri())
    page.locator("#rows tbody th").first.wait_for()
    assert page.locator("#rows tbody tr").count() < 120  # of 2,000: those in sight
    page.select_option("#matrix-show", "worse")
    assert page.locator("#view .count").inner_text() == "1,144 of 2,000 scenarios"
    assert (
        page.evaluate("performance.getEntriesByType('navigation')[0].domComplete") < 10_000
    )  # one or two seconds on a quiet machine


def test_changed_scenarios_have_priority_in_a_bounded_page(
    write_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(*outcomes())
    monkeypatch.setattr(module, "MAX_ROWS", 5)
    text = scored(folder, SAYS | {"changed": [changed("b", "kind", 0.5, 1.0)]}).read_text()
    [data] = re.findall(r'id="data">(.*?)</script>', text, re.S)
    assert [(row["name"], row["variant"]) for row in json.loads(data)["rows"][:2]] == [
        ("b", "plain"),
        ("b", "kind"),
    ]
    assert "4 scenarios that did not change, as one of the variants" in text


def test_conversations_are_side_by_side_where_the_details_were_left_out(
    page: Any, write_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(*outcomes())
    monkeypatch.setattr(module, "MAX_DETAILS", 10)
    page.goto(scored(folder).as_uri() + "#pair=triage.scenario.yaml%3A%3Ab&variant=kind")
    page.locator(".beside .apart").first.wait_for()
    assert "line 6 (plain) and line 8 (kind) of results.jsonl" in page.locator("#view").inner_text()


def test_conversations_that_were_left_out_are_read_from_a_folder_that_is_chosen(
    page: Any, write_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(*outcomes())
    monkeypatch.setattr(module, "MAX_TRACES", 10)
    page.goto(scored(folder).as_uri() + "#pair=triage.scenario.yaml%3A%3Ab&variant=kind")
    page.locator("#trace-folder").set_input_files(folder / "traces")
    page.locator(".beside .apart").first.wait_for()


def test_run_without_embedded_data_shows_the_command_that_prints_it(
    page: Any, write_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(*outcomes())
    monkeypatch.setattr(module, "MAX_TRACES", 10)
    monkeypatch.setattr(module, "MAX_DETAILS", 10)
    page.goto(scored(folder).as_uri() + "#pair=triage.scenario.yaml%3A%3Ab&variant=kind&run=1")
    command = page.locator("#view .rerun code")
    command.wait_for()
    said = "harness trace 'triage.scenario.yaml::b' --repeat 1 --variant 'plain'"
    assert command.inner_text().startswith(said)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "score.json:1:1: not JSON: ''"),
        ('{\n "format": nothing', "score.json:2:16: not JSON: 'ing'"),
        ('{"format": 2}', "score.json:1:1: not the format harness-score/1: found 2"),
        (json.dumps(SAYS | {"pareto": 3}), "not a score: pareto must be a list, found 3"),
        (json.dumps({key: SAYS[key] for key in SAYS if key != "changed"}), "it has no 'changed'"),
        ("[" * 10_000, "not JSON"),
    ],
)
def test_damaged_score_is_an_error_with_its_location_and_the_value_found(
    write_run: MakeRun, content: str, said: str
) -> None:
    folder = write_run(outcome("a"))
    (folder / SCORE).write_text(content)
    with pytest.raises(FormatError) as raised:
        write_page(folder)
    assert said in str(raised.value)


def test_later_run_removes_the_score_of_an_earlier_one(write_run: MakeRun) -> None:
    scored(write_run(outcome("a", variant="plain")))
    assert not (write_run(outcome("a")) / SCORE).exists()
