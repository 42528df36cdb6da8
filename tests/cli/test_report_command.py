"""`harness report`: the page of a run, and the comment on a pull request."""

from pathlib import Path

import pytest

from tests.cli.fixtures import Invoke, WriteSuite


def test_the_page_is_written_by_each_run_and_on_request_with_a_baseline(
    invoke: Invoke, suite: WriteSuite
) -> None:
    suite("{name: it counts, input: go, expect: {state: {count: 1}}}")
    assert invoke("run", "a.scenario.yaml", "--report", "before").exit_code == 0
    assert "The scenario passes." in Path("before/report.html").read_text(encoding="utf-8")
    suite("{name: it counts, input: go, expect: {state: {count: 2}}}")
    assert invoke("run", "a.scenario.yaml").exit_code == 1
    assert "1 of 1 scenario fails." in Path("reports/latest/report.html").read_text(encoding="utf-8")
    result = invoke("report", "--baseline", "before", "-o", "page.html")
    assert (result.exit_code, result.stdout) == (0, "page.html\n")
    page = Path("page.html").read_text(encoding="utf-8")
    assert "1 of 1 scenario fails, and it is new." in page
    assert "against before" in page


def test_a_killed_run_has_a_page_with_a_note_on_what_is_missing(invoke: Invoke, suite: WriteSuite) -> None:
    suite(
        "{name: one, input: go, expect: {state: {count: 1}}}", "{name: two, input: go, expect: {output: 1}}"
    )
    invoke("run", "a.scenario.yaml")
    results = Path("reports/latest/results.jsonl")
    results.write_text(results.read_text(encoding="utf-8")[:-100], encoding="utf-8")
    Path("reports/latest/summary.json").unlink()
    result = invoke("report")
    assert result.exit_code == 0
    assert result.stderr.count("the last line was cut off and is left out") == 1
    page = Path("reports/latest/report.html").read_text(encoding="utf-8")
    assert "<b>Not a whole run:</b> there is no summary.json next to the results." in page


def test_a_folder_that_is_not_a_run_is_an_error(invoke: Invoke) -> None:
    result = invoke("report", "nowhere")
    assert (result.exit_code, result.stderr) == (
        2, "error: cannot read the results nowhere: No such file or directory [results-missing]\n"
        "    `harness run` writes them: in reports/latest, or where --report says\n",
    )  # fmt: skip


@pytest.mark.parametrize("content", ["", "\n"])
def test_a_run_killed_before_its_first_scenario_has_no_page(content: str, invoke: Invoke) -> None:
    Path("killed").mkdir()
    Path("killed/results.jsonl").write_text(content, encoding="utf-8")
    for run in ("killed", "killed/results.jsonl"):
        result = invoke("report", run)
        assert (result.exit_code, result.stdout, result.stderr) == (
            2, "", "error: nothing ran: killed/results.jsonl is empty [no-runs]\n",
        )  # fmt: skip
    assert not Path("killed/report.html").exists()


def test_a_run_with_an_empty_selection_has_a_page(invoke: Invoke, suite: WriteSuite) -> None:
    suite("{name: one, input: go, expect: {state: {count: 1}}}")
    assert invoke("run", ".", "--shard", "2/2").exit_code == 0
    assert invoke("report").exit_code == 0
    page = Path("reports/latest/report.html").read_text(encoding="utf-8")
    assert "<b>Not a whole run:</b> 0 of 1 scenario selected (shard 2/2)" in page


def _named(*scenarios: tuple[str, int]) -> list[str]:
    return [
        f"{{name: {name}, input: go, expect: {{state: {{count: {count}}}}}}}" for name, count in scenarios
    ]


def test_a_comment_lists_the_differences_from_a_baseline(invoke: Invoke, suite: WriteSuite) -> None:
    suite(*_named(("breaks", 1), ("mended", 2), ("goes", 1), ("stays", 1)))
    invoke("run", ".", "--report", "before")
    suite(*_named(("breaks", 2), ("mended", 1), ("comes", 2), ("stays", 1)))
    invoke("run", ".")
    result = invoke("report", "--baseline", "before", "--markdown", "-")
    assert (result.exit_code, result.stderr) == (0, "reports/latest/report.html\n")
    assert (
        "### Against `before`\n"
        "\n"
        "- **1 got worse**: `a.scenario.yaml::breaks` (passed → failed)\n"
        "- **1 gone**: `a.scenario.yaml::goes`\n"
        "- 1 new: `a.scenario.yaml::comes` (failed)\n"
        "- 1 got better: `a.scenario.yaml::mended` (failed → passed)\n"
        "\n"
        "| | baseline | this run |\n"
        "|---|--:|--:|\n"
        "| pass rate | 75.0 % | 50.0 % |\n"
        "| fitness | 0.750 | 0.500 |\n"
    ) in result.stdout


def test_scenarios_that_a_partial_run_leaves_out_are_not_gone(invoke: Invoke, suite: WriteSuite) -> None:
    suite(*_named(("one", 1), ("two", 1)))
    invoke("run", ".", "--report", "before")
    invoke("run", ".", "-k", "one")
    told = invoke("report", "--baseline", "before", "--markdown", "-").stdout
    assert "- **1 not in this run, which is not whole**: `a.scenario.yaml::two`\n" in told


def test_a_comment_says_that_nothing_changed(invoke: Invoke, suite: WriteSuite) -> None:
    suite(*_named(("one", 1)))
    invoke("run", ".", "--report", "before")
    invoke("run", ".")
    assert invoke("report", "--baseline", "before", "--markdown", "c.md").exit_code == 0
    assert "### Against `before`\n\n- every scenario did the same\n" in Path("c.md").read_text(
        encoding="utf-8"
    )


def test_without_a_baseline_a_comment_is_the_summary_of_the_run(invoke: Invoke, suite: WriteSuite) -> None:
    suite(*_named(("one", 2)))
    invoke("run", ".")
    written = Path("reports/latest/summary.md").read_text(encoding="utf-8")
    assert invoke("report", "--markdown", "-").stdout == written


def test_a_baseline_file_is_refused_for_a_page(invoke: Invoke, suite: WriteSuite) -> None:
    suite("{name: counts, expect: {state: {count: 1}}}")
    invoke("run", ".", "-q")
    invoke("baseline", "save", "base.json")

    refused = invoke("report", "--baseline", "base.json")

    assert refused.exit_code == 2
    assert "`harness gate` and `harness compare` take this file" in refused.output
