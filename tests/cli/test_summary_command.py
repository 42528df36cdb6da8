"""`harness summary`: one run, several runs, and files that are not runs."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fixtures import Invoke, WriteSuite

HOLDS = "{name: it counts, input: go, tags: [quick], expect: {state: {count: 1}}}"
FAILS = "{name: it does not count, input: go, expect: {state: {count: 2}}}"


@pytest.fixture
def two_runs(invoke: Invoke, suite: WriteSuite) -> None:
    """A run of two scenarios in `monday`, and of one of them, repeated three times, in `tuesday`."""
    suite(HOLDS, FAILS)
    assert invoke("run", "a.scenario.yaml", "--report", "monday").exit_code == 1
    suite(HOLDS)
    assert invoke("run", "a.scenario.yaml", "--repeat", "3", "--report", "tuesday").exit_code == 0


def _json(invoke: Invoke, *runs: str) -> Any:
    result = invoke("summary", *runs, "--json", "-")
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_the_summary_of_the_last_run_equals_its_own(invoke: Invoke, suite: WriteSuite) -> None:
    suite(HOLDS, FAILS)
    invoke("run", "a.scenario.yaml")
    result = invoke("summary")
    assert result.exit_code == 0
    assert "failed  a.scenario.yaml::it does not count  state\n" in result.stdout
    assert "1 passed · 1 failed   (2 runs of 2 scenarios)\n" in result.stdout
    assert _json(invoke) == json.loads(Path("reports/latest/summary.json").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("two_runs")
def test_the_same_scenario_in_several_runs_counts_as_repeats(invoke: Invoke) -> None:
    summary = _json(invoke, "monday", "tuesday")
    assert summary["runs"] == [
        {"name": "monday", "runs": 2, "complete": True, "reason": None},
        {"name": "tuesday", "runs": 3, "complete": True, "reason": None},
    ]
    total = summary["total"]
    assert (total["runs"], total["scenarios"], total["passed"]) == (5, 2, 4)
    assert total["distinct_runs"] == 2  # stubs gave equal answers in both runs, so repeats were equal
    assert [(failure["id"], failure["run"]) for failure in summary["failures"]] == [
        ("a.scenario.yaml::it does not count", "monday")
    ]
    assert summary["traces"] == {"kept": 5, "left_out": 0, "why": None}
    assert "runs  of 2 together: monday (2), tuesday (3)\n" in invoke("summary", "monday", "tuesday").stdout


def test_all_shards_together_are_a_complete_run(invoke: Invoke, suite: WriteSuite) -> None:
    suite(HOLDS, HOLDS.replace("it counts", "it counts too"))
    for number in "123":  # the last is empty
        invoke("run", ".", "--shard", f"{number}/3", "--report", f"shard-{number}")
    both, one = _json(invoke, "shard-1", "shard-2", "shard-3"), _json(invoke, "shard-1")
    assert (both["complete"], both["reason"], both["total"]["scenarios"]) == (True, None, 2)
    assert (one["complete"], one["reason"]) == (False, "1 of 2 scenarios selected (shard 1/3)")
    assert invoke("summary", "shard-3").exit_code == 2


@pytest.mark.usefixtures("two_runs")
def test_a_run_given_twice_or_copied_counts_once(invoke: Invoke) -> None:
    shutil.copytree("monday", "copy")
    result = invoke("summary", "monday", "monday/results.jsonl", "copy")
    assert "(2 runs of 2 scenarios)" in result.stdout
    assert result.stderr == (
        "warning: monday/results.jsonl is given twice, and counts once\n"
        "warning: copy is a copy of monday, and they count once\n"
    )


@pytest.mark.usefixtures("two_runs")
def test_a_summary_with_a_partial_run_is_partial(invoke: Invoke, suite: WriteSuite) -> None:
    suite(HOLDS, FAILS)
    invoke("run", "a.scenario.yaml", "-k", "does", "--report", "part")
    summary = _json(invoke, "tuesday", "part")
    assert not summary["complete"]
    assert summary["reason"] == "part: 1 of 2 scenarios selected (-k 'does')"


@pytest.mark.usefixtures("two_runs")
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda run: (run / "summary.json").unlink(), "there is no summary.json next to the results"),
        (
            lambda run: (run / "results.jsonl").write_bytes(
                (run / "results.jsonl").read_bytes().splitlines(keepends=True)[0]
            ),
            "the results have 1 run, and summary.json counts 3",
        ),
    ],
)
def test_a_possibly_incomplete_run_has_a_reason(damage: Any, reason: str, invoke: Invoke) -> None:
    damage(Path("tuesday"))
    summary = _json(invoke, "tuesday")
    assert (summary["complete"], summary["reason"]) == (False, reason)


@pytest.mark.usefixtures("two_runs")
def test_a_killed_run_is_summarized_up_to_its_last_complete_line(invoke: Invoke) -> None:
    results = Path("tuesday/results.jsonl")
    results.write_bytes(results.read_bytes()[:-100])
    result = invoke("summary", "tuesday")
    assert (result.exit_code, result.stderr) == (
        0,
        "warning: tuesday/results.jsonl:3: the last line was cut off and is left out\n",
    )
    assert "(2 runs of 1 scenario)" in result.stdout
    assert "not whole" in result.stdout


@pytest.mark.usefixtures("two_runs")
def test_groups_other_than_suites_can_be_shown(invoke: Invoke) -> None:
    assert "quick  1/1 passed" in invoke("summary", "monday", "--by", "tag").stdout
    assert "counter.yaml  1/2 passed" in invoke("summary", "monday", "--by", "manifest").stdout
    assert "no run has a variant" in invoke("summary", "monday", "--by", "variant").stdout
    assert "| tag | runs |" in invoke("summary", "monday", "--by", "tag", "--markdown").stdout
    assert "1 run in no group: no tag" in invoke("summary", "monday", "--by", "tag").stdout


@pytest.mark.usefixtures("two_runs")
def test_groups_of_several_keys_are_a_table_json_and_csv(invoke: Invoke) -> None:
    by = ("summary", "monday", "tuesday", "--by", "run,verdict")
    assert (
        "monday · failed  0/1 passed  pass rate 0 %  fitness 0.000\n"
        "monday · passed  1/1 passed  pass rate 100 %  fitness 1.000\n"
        "tuesday · passed  3/3 passed  pass rate 100 %  fitness 1.000\n"
    ) in invoke(*by).stdout
    groups = json.loads(invoke(*by, "--json", "-").stdout)["groups"]
    assert [(group["by"], group["runs"]) for group in groups] == [
        ({"run": "monday", "verdict": "failed"}, 1),
        ({"run": "monday", "verdict": "passed"}, 1),
        ({"run": "tuesday", "verdict": "passed"}, 3),
    ]
    head, *rows = invoke(*by, "--csv", "-").stdout.splitlines()
    assert head.startswith("run,verdict,runs,distinct_runs,scenarios,passed,failed,errors,skipped,pass_rate,")
    assert [row.split(",")[:3] for row in rows] == [
        ["monday", "failed", "1"],
        ["monday", "passed", "1"],
        ["tuesday", "passed", "3"],
    ]
    assert invoke("summary", "monday", "--csv", "suites.csv").stdout == ""
    assert Path("suites.csv").read_text().splitlines()[1].startswith("a.scenario.yaml,2,2,2,1,1,0,0,0.5,")


@pytest.mark.usefixtures("two_runs")
@pytest.mark.parametrize(
    ("by", "hint"), [("tga", "did you mean 'tag'?"), ("tag,", "known: suite, scenario, tag, model,")]
)
def test_an_unknown_key_of_groups_is_named(invoke: Invoke, by: str, hint: str) -> None:
    result = invoke("summary", "monday", "--by", by)
    assert result.exit_code == 2
    assert "runs cannot be grouped by" in result.stderr
    assert hint in result.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "error: cannot read the results run.jsonl: No such file or directory [results-missing]"),
        (b"", "error: nothing ran: run.jsonl is empty [no-runs]"),
        (b"\x00\xff\n", "run.jsonl:1:1: error: not a line of JSON: "),
        (b'{"a": 1}\n', "run.jsonl:1:1: error: not a line of the format harness-results/1: found null"),
    ],
)  # fmt: skip
def test_an_invalid_results_file_is_an_error_with_its_place(
    content: bytes | None, said: str, invoke: Invoke
) -> None:
    if content is not None:
        Path("run.jsonl").write_bytes(content)
    result = invoke("summary", "run.jsonl")
    assert result.exit_code == 2
    assert result.stderr.startswith(said)


@pytest.mark.usefixtures("two_runs")
def test_a_manually_edited_line_is_refused_by_every_command(invoke: Invoke) -> None:
    results = Path("monday/results.jsonl")
    line = json.loads(results.read_bytes().splitlines()[0])
    results.write_text(json.dumps({**line, "checks": None}) + "\n", encoding="utf-8")
    for command in ("summary", "report"):
        result = invoke(command, "monday")
        assert result.exit_code == 2
        said = "monday/results.jsonl:1:1: error: not a line of results: checks must be a list, found null"
        assert result.stderr.startswith(said)
