import html
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from harness.report.markdown import code, escape, markdown
from harness.report.results import ResultsWriter, line
from harness.report.summary import summarise
from harness.source.display import printable
from tests.report.fixtures import MakeCheck, MakeOutcome


def _markdown(*outcomes: Any) -> Any:
    return markdown(summarise(line(outcome) for outcome in outcomes))


def test_page_has_totals_suites_and_failures(outcome: MakeOutcome, failed_check: MakeCheck) -> None:
    usage = {"llm_calls": 1, "input_tokens": 1200, "output_tokens": 34, "cost": 0.5, "by_model": {}}
    failed = outcome(
        "failed",
        suite="refund.scenario.yaml",
        score=0.25,
        repeat=1,
        checks=[failed_check("path", "expected\nb")],
    )
    assert _markdown(outcome(usage=usage, wall=0.25), failed) == (
        "## Scenarios: 1 passed, 1 failed\n"
        "\n"
        "- pass rate 50.0 % (95 % interval 9.5 % to 90.5 %)\n"
        "- fitness 0.625\n"
        "- virtual latency p50 500 ms, p95 500 ms\n"
        "- 1,234 tokens, cost 0.5\n"
        "- 250 ms of real time\n"
        "\n"
        "### Not passed\n"
        "\n"
        "- **`refund.scenario.yaml::a double charge [repeat 1]`** failed, score 0.25\n"
        "  - path: expected b\n"
        "\n"
        "| suite | runs | passed | failed | errors | fitness | p95 |\n"
        "|---|--:|--:|--:|--:|--:|--:|\n"
        "| `refund.scenario.yaml` | 1 | 0 | 1 | 0 | 0.250 | 500 ms |\n"
        "| `triage.scenario.yaml` | 1 | 1 | 0 | 0 | 1.000 | 500 ms |\n"
        "| **total** | 2 | 1 | 1 | 0 | 0.625 | 500 ms |\n"
    )


def test_warnings_are_counted_if_there_are_any(outcome: MakeOutcome) -> None:
    assert "- 2 warnings\n" in _markdown(outcome(warnings=["a"]), outcome(repeat=1, warnings=["a"]))
    assert "warning" not in _markdown(outcome())


def test_error_is_shown_by_its_message(outcome: MakeOutcome) -> None:
    page = _markdown(outcome("error", error={"type": "UnscriptedCall", "message": "nothing answers llm"}))
    assert "  - UnscriptedCall: nothing answers llm\n" in page


def test_coverage_is_a_table_by_graph(outcome: MakeOutcome) -> None:
    shape = {"nodes": ["a", "b"], "edges": [["a", "b"]], "branches": []}
    page = _markdown(outcome(shape=shape, coverage={"nodes": ["a"], "edges": [], "branches": []}))
    assert "| `triage.yaml` | 1 of 2 | 0 of 1 | 0 of 0 |" in page


def test_branches_that_no_scenario_took_are_named_by_graph(outcome: MakeOutcome) -> None:
    lines = {"nodes": [3], "edges": [], "branches": [5, 6]}
    shape = {"nodes": ["a"], "edges": [], "branches": ["a: yes", "a: x | y"], "lines": lines}
    page = _markdown(outcome(shape=shape, coverage={"nodes": ["a"], "edges": [], "branches": ["a: yes"]}))
    assert "### Branches that no scenario took\n\n- `triage.yaml`: <code>a: x \\| y</code> (line 6)\n" in page


def test_table_of_many_suites_has_the_worst(outcome: MakeOutcome) -> None:
    runs = [outcome(suite=f"{number:03}.scenario.yaml") for number in range(1_000)]
    page = _markdown(*runs, outcome("failed", suite="z.scenario.yaml"))
    assert page.index("| `z.scenario.yaml` | 1 | 0 | 1 |") < page.index("| `000.scenario.yaml` |")
    assert page.endswith("\n\n… and 951 more suites, none worse\n")


def test_page_fits_a_comment_with_failures_and_a_note_on_omissions(
    outcome: MakeOutcome, failed_check: MakeCheck
) -> None:
    checks = [failed_check(f"c{number}", "w|" * 400) for number in range(9)]
    losses = [outcome(score=0.5, scenario=f"{number}{'s' * 400}", checks=checks) for number in range(99)]
    page = _markdown(*losses, outcome("failed", scenario="broken"))
    assert 50_000 < len(page) < 65_536
    assert page.index("::broken`** failed") < 1_000
    assert page.endswith("\n\nThe rest is in report.html and summary.json.\n")


def test_failure_lists_some_checks_and_counts_the_others(
    outcome: MakeOutcome, failed_check: MakeCheck
) -> None:
    page = _markdown(outcome("failed", checks=[failed_check(f"c{n}") for n in range(8)]))
    assert "  - c4: expected b, was c\n  - … and 3 more checks\n" in page


def test_flaky_scenarios_are_named(outcome: MakeOutcome) -> None:
    page = _markdown(outcome(), outcome("failed", repeat=1))
    assert "Flaky: `triage.scenario.yaml::a double charge` (1 of 2 passed)" in page


def test_number_of_listed_failures_is_bounded(outcome: MakeOutcome) -> None:
    page = _markdown(*(outcome("failed", scenario=f"s{i:02}") for i in range(30)))
    assert page.count("failed, score") == 25
    assert "- … and 5 more runs" in page


def test_empty_run_has_a_page() -> None:
    assert "pass rate –" in _markdown()


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a|b", r"a\|b"),
        ("<script>&", "&lt;script&gt;&amp;"),
        ("**bold** `code`", r"\*\*bold\*\* \`code\`"),
        ("never_calls __init__ _x_", r"never_calls \_\_init\_\_ \_x\_"),
        ("[text](https://e.vil)", r"\[text\](https\://e.vil)"),
        ("two\nlines\x1b[0m", r"two lines\\x1b\[0m"),
        ("~~gone~~ $x$", r"\~\~gone\~\~ \$x\$"),
        ("ask @octocat about #12", "ask @&#8203;octocat about #&#8203;12"),
        ("o/r#1, GH-1, a@b.c", "o/r#&#8203;1, GH-&#8203;1, a@&#8203;b.c"),
        ("# title", r"\# title"),
        ("12. item - x", r"12\. item - x"),
    ],
)
def test_text_of_scenarios_is_escaped(text: Any, escaped: Any) -> None:
    assert escape(text) == escaped


TEXT = st.text() | st.text("`|*_~<&@#1$[](\\\\)- .a\n")


@given(TEXT)
def test_any_text_stays_in_its_table_cell_and_is_shown_literally(text: str) -> None:
    for shown in (escape(text), code(text)):
        assert "\n" not in shown
        cells = _rendered(f"| a | b |\n|---|---|\n| x{shown}x | y |\n")
        assert (
            cells.replace("\u200b", "").split() == f"a b x{printable(text)}x y".replace("\u200b", "").split()
        )


@given(TEXT)
def test_no_text_makes_a_heading_or_a_list(text: str) -> None:
    tags = {token.tag for token in MARKDOWN.parse(f"- {escape(text)}\n")}
    assert tags <= {"ul", "li", "p", ""}


@given(TEXT)
def test_no_text_notifies_or_links_anybody(text: str) -> None:
    prose = _rendered(escape(text))
    assert not re.search(r"@\w|#\d", prose)
    assert re.fullmatch(r"`[^`]*`|<code>(\\`|[^`])*</code>", code(text))


MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def _rendered(text: str) -> str:
    """Return the visible text, without tags."""
    return html.unescape(re.sub(r"<[^>]*>", "", MARKDOWN.render(text)))


def test_page_lists_failures_since_the_last_complete_run(tmp_path: Path, outcome: MakeOutcome) -> None:
    def page(*outcomes: Any, incomplete: str = "") -> str:
        with ResultsWriter(tmp_path) as results:
            for each in outcomes:
                results.add(each)
            results.finish(incomplete)
        return (tmp_path / "summary.md").read_text(encoding="utf-8")

    assert "Since the last whole run" not in page(outcome(scenario="a"), outcome("failed", scenario="b"))
    assert "- 0 new failures\n\n" in page(outcome(scenario="a"), incomplete="1 of 2 scenarios selected")
    assert (
        "### Since the last whole run\n\n- 1 new failure: `triage.scenario.yaml::a`\n"
        "- 1 no longer failing: `triage.scenario.yaml::b`\n\n"
    ) in page(outcome("failed", scenario="a"), outcome(scenario="b"))
