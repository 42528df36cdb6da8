"""`harness gate` and `harness baseline save`, on runs of real scenarios and on results of the real writer."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fixtures import Invoke, WriteFile, WriteSuite
from tests.gate.runs import RunSpec, write_run

GOOD = "{name: counts, expect: {state: {count: 1}}}"
BAD = "{name: counts, expect: {state: {count: 2}}}"
OTHER = "{name: ends, expect: {status: completed}}"
MISSING = "{name: counts, manifest: nowhere.yaml, expect: {status: completed}}"


def verdict(file: str = "gate.json") -> dict[str, Any]:
    loaded = json.loads(Path(file).read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


@pytest.fixture
def run(suite: WriteSuite, invoke: Invoke) -> Any:
    """A function that runs these scenarios, with the results in `reports/latest`."""

    def ran(*scenarios: str, options: tuple[str, ...] = (), file: str = "a.scenario.yaml") -> None:
        for old in Path().glob("*.scenario.yaml"):
            old.unlink()
        suite(*scenarios, file=file)
        assert invoke("run", ".", "-q", *options).exit_code in (0, 1, 2, 3)

    return ran


def test_a_run_in_which_all_scenarios_pass_passes(run: Any, invoke: Invoke) -> None:
    run(GOOD)

    done = invoke("gate", "--json", "gate.json")

    assert done.exit_code == 0
    assert "passed  min_pass_rate  100 %  at least 100 %" in done.output
    assert verdict()["format"] == "harness-gate/1"
    assert verdict()["passed"] is True


def test_a_regression_fails_with_the_scenario_and_the_check_that_changed(run: Any, invoke: Invoke) -> None:
    run(GOOD, OTHER)
    invoke("baseline", "save", "base.json")
    run(BAD, OTHER)

    done = invoke("gate", "--baseline", "base.json", "--json", "gate.json", "--markdown", "gate.md")

    assert done.exit_code == 1
    assert "failed  no_new_failures  1 new failure  none\n" in done.output
    assert (
        "        a.scenario.yaml::counts: passed → failed\n          state: count: expected 2, was 1\n"
        in done.output
    )
    assert done.output.endswith("gate failed: 2 of 2 rules\n")
    [_, rule] = verdict()["rules"]
    assert rule == {
        "rule": "no_new_failures",
        "scope": None,
        "actual": 1,
        "bound": 0,
        "passed": False,
        "interval": None,
        "scenarios": [
            {
                "id": "a.scenario.yaml::counts",
                "before": "passed",
                "after": "failed",
                "checks": ["state: count: expected 2, was 1"],
            }
        ],
        "note": "",
        "details": [],
    }
    assert "| **failed** | `no_new_failures` | 1 new failure | none |" in Path("gate.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(
    "weaker",
    [
        "{name: counts, expect: {status: completed}}",
        "{name: counts, pass_score: 0.5, expect: {state: {count: 2}}}",
        "{name: counts, expect: {state: {count: 2}, weights: {state: 0}}}",
        "{name: counts, expect: {state: {count: 1}}}",
    ],
)
def test_a_scenario_with_weaker_expectations_is_named(run: Any, invoke: Invoke, weaker: str) -> None:
    run(BAD, OTHER)
    invoke("baseline", "save", "base.json")
    run(weaker, OTHER)

    done = invoke("gate", "--baseline", "base.json", "--json", "gate.json", "--markdown", "gate.md")

    note = "1 scenario with other expectations than in the baseline: a.scenario.yaml::counts"
    assert f"note: {note}" in done.output
    assert verdict()["changed_expectations"] == ["a.scenario.yaml::counts"]
    assert note in Path("gate.md").read_text(encoding="utf-8").replace("\\", "")


EXPECTS = (
    "{status: completed, path: [add], latency: {nodes: {add: 2}},"
    " state: {count: {$all: [{$lte: 3}, {$gte: 1}]}}}"
)


@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize(
    ("now", "less"),
    [
        (("path: [add], ", ""), "no check 'path'"),
        (
            ("status: completed, ", "status: completed, weights: {path: 0.5}, "),
            "the weight of 'path' 1 → 0.5",
        ),
        (("$lte: 3", "$lte: 30"), "state.count.$lte 3 → 30"),
        (("$gte: 1", "$gte: 0.5"), "state.count.$gte 1 → 0.5"),
        (("add: 2", "add: 5"), "latency.nodes.add 2 → 5"),
    ],
)
def test_a_scenario_that_passes_with_weaker_expectations_is_warned_of(
    run: Any, invoke: Invoke, saved: bool, now: tuple[str, str], less: str
) -> None:
    run(f"{{name: counts, expect: {EXPECTS}}}")
    invoke("baseline", "save", "base.json")
    Path("reports/latest").rename("first")
    run(f"{{name: counts, expect: {EXPECTS.replace(*now)}}}")

    done = invoke("gate", "--baseline", "base.json" if saved else "first", "--json", "gate.json")

    message = "1 scenario with weaker expectations than in the baseline: a.scenario.yaml::counts"
    assert f"warning: {message} ({less})\n" in done.output
    [warning] = verdict()["warnings"]
    assert (warning["code"], warning["scenarios"]) == ("weaker-expectations", ["a.scenario.yaml::counts"])
    assert done.exit_code == 0


@pytest.mark.parametrize(
    ("before", "after", "less"),
    [
        (
            "{name: counts, expect: {state: {count: 2}, path: [add]}}",
            "{name: counts, pass_score: 0.5, expect: {state: {count: 2}, path: [add]}}",
            "passes with a score of 0.50, and failed with 0.50",
        ),
        (
            "{name: counts, weight: 2, expect: {state: {count: 1}}}",
            "{name: counts, expect: {state: {count: 1}}}",
            "its weight 2 → 1",
        ),
    ],
)
def test_a_lower_pass_score_or_weight_of_a_scenario_is_weaker(
    run: Any, invoke: Invoke, before: str, after: str, less: str
) -> None:
    run(before, OTHER)
    invoke("baseline", "save", "base.json")
    run(after, OTHER)

    done = invoke("gate", "--baseline", "base.json")

    assert f"a.scenario.yaml::counts ({less})\n" in done.output


@pytest.mark.parametrize(
    "after",
    [
        EXPECTS.replace("add: 2", "add: 1.5"),
        EXPECTS.replace("{$all: [{$lte: 3}, {$gte: 1}]}", "1"),
        EXPECTS.replace("path: [add]", "max_visits: {add: 1}"),
        EXPECTS.replace("path: [add]", "path: [add], max_visits: {add: 1}"),
        EXPECTS.replace("path: [add], ", "").replace("$lte: 3", "$lte: 0"),
    ],
    ids=["lower bound", "a value for a bound", "another check", "one more", "it fails now"],
)
def test_other_expectations_that_are_not_weaker_are_no_warning(run: Any, invoke: Invoke, after: str) -> None:
    run(f"{{name: counts, expect: {EXPECTS}}}", OTHER)
    invoke("baseline", "save", "base.json")
    run(f"{{name: counts, expect: {after}}}", OTHER)

    invoke("gate", "--baseline", "base.json", "--json", "gate.json")

    assert verdict()["changed_expectations"] == ["a.scenario.yaml::counts"]
    assert verdict()["warnings"] == []


@pytest.mark.parametrize("file", ["a.scenario.yaml", "counter.yaml"])
def test_results_of_other_files_than_the_present_ones_are_warned_of(
    run: Any, invoke: Invoke, file: str
) -> None:
    run(GOOD)
    assert invoke("gate").exit_code == 0
    assert "warning" not in invoke("gate").output
    with Path(file).open("a", encoding="utf-8") as opened:
        opened.write("# changed\n")

    done = invoke("gate", "--json", "gate.json")

    message = (
        f"the results of reports/latest are not of the present files: 1 file changed after the run: {file}"
    )
    assert done.exit_code == 0
    assert f"warning: {message}\n" in done.output
    assert verdict()["warnings"] == [{"code": "files-changed", "message": message, "scenarios": []}]


def test_files_that_are_not_here_have_not_changed(run: Any, invoke: Invoke) -> None:
    run(GOOD)
    Path("counter.yaml").unlink()
    Path("a.scenario.yaml").unlink()

    assert "warning" not in invoke("gate").output


def test_equivalent_spellings_of_expectations_are_equal(run: Any, invoke: Invoke) -> None:
    run("{name: counts, expect: {status: completed, state: {count: 1}}}")
    invoke("baseline", "save", "base.json")
    run("{name: counts, description: Now with a comment, expect: {state: {count: 1}, status: completed}}")

    invoke("gate", "--baseline", "base.json", "--json", "gate.json")

    assert verdict()["changed_expectations"] == []


def test_a_baseline_without_expectations_does_not_differ(run: Any, invoke: Invoke) -> None:
    run(GOOD)
    invoke("baseline", "save", "base.json")
    saved = Path("base.json").read_text(encoding="utf-8")
    without = re.sub(r',"expectations":"[0-9a-f]{12}"', "", saved)
    assert without != saved
    Path("base.json").write_text(without, encoding="utf-8")

    done = invoke("gate", "--baseline", "base.json", "--json", "gate.json")

    assert done.exit_code == 0
    assert verdict()["changed_expectations"] == []


def test_the_policy_and_baseline_of_the_project_are_used(run: Any, invoke: Invoke, write: WriteFile) -> None:
    run(GOOD)
    invoke("baseline", "save", "base.json")
    run(BAD)
    write("pyproject.toml", '[tool.harness.gate]\nbaseline = "base.json"\nmax_fitness_drop = 1.0\n')

    assert invoke("gate").exit_code == 0
    write("strict.yaml", "gate: {min_fitness: 1.0}\n")
    assert invoke("gate", "--policy", "strict.yaml").exit_code == 1


def test_a_scenario_that_could_not_be_judged_has_its_own_exit_code(
    run: Any, invoke: Invoke, write: WriteFile
) -> None:
    run(MISSING, OTHER)

    assert invoke("gate").exit_code == 3
    write("gate.yaml", "gate: {max_errors: 1, min_pass_rate: 0.5}\n")
    assert invoke("gate", "--policy", "gate.yaml").exit_code == 0


def test_a_partial_run_is_refused_unless_it_is_allowed(run: Any, invoke: Invoke) -> None:
    run(GOOD, OTHER)
    invoke("baseline", "save", "base.json")
    run(GOOD, OTHER, options=("-k", "counts"))

    refused = invoke("gate", "--baseline", "base.json")
    allowed = invoke("gate", "--baseline", "base.json", "--partial")

    assert refused.exit_code == 2
    assert "reports/latest is not a whole run: 1 of 2 scenarios selected" in refused.output
    assert allowed.exit_code == 0
    assert "note: 1 scenario of the baseline not judged: a.scenario.yaml::ends" in allowed.output
    assert invoke("baseline", "save", "part.json").exit_code == 2
    assert not Path("part.json").exists()


def test_a_baseline_of_other_scenarios_is_refused_with_the_differences(run: Any, invoke: Invoke) -> None:
    run(GOOD, file="old.scenario.yaml")
    invoke("baseline", "save", "base.json")
    run(GOOD, OTHER, file="new.scenario.yaml")

    done = invoke("gate", "--baseline", "base.json")

    assert done.exit_code == 2
    assert "in the baseline only: old.scenario.yaml::counts" in done.output
    assert "in the run only: new.scenario.yaml::counts, new.scenario.yaml::ends" in done.output
    assert "'counts' is in both, in files of other names" in done.output


def test_a_run_of_variants_is_refused_as_a_baseline_of_a_plain_run(
    run: Any, invoke: Invoke, write: WriteFile
) -> None:
    run(GOOD)
    write("variants.yaml", "harness: 1\nvariants: [{name: formal, env: {TONE: formal}}]\n")
    invoke("score", ".", "--variants", "variants.yaml", "--report", "scored")

    refused = invoke("gate", "--baseline", "scored")

    assert refused.exit_code == 2
    assert "'a.scenario.yaml::counts' is in both, but not as the same variant" in refused.output


def test_a_gate_that_cannot_judge_replaces_the_earlier_verdict(run: Any, invoke: Invoke) -> None:
    run(GOOD)
    outputs = ("--json", "gate.json", "--markdown", "gate.md")
    assert invoke("gate", *outputs).exit_code == 0

    assert invoke("gate", "--baseline", "nowhere.json", *outputs).exit_code == 2

    assert verdict()["passed"] is False
    assert verdict()["rules"] == []
    assert [problem["code"] for problem in verdict()["problems"]] == ["baseline-missing"]
    assert "not judged" in Path("gate.md").read_text(encoding="utf-8")


def test_with_json_standard_output_holds_nothing_else(run: Any, invoke: Invoke) -> None:
    run(BAD)

    done = invoke("gate", "--json", "-")

    assert json.loads(done.stdout)["passed"] is False
    assert "gate failed" in done.stderr
    assert invoke("gate", "--json", "-", "--markdown", "-").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "cannot read the results nowhere"),
        (("--policy", "nowhere.yaml"), "nowhere.yaml: no such file"),
        (("--policy", "a.scenario.yaml"), "unknown key 'harness' in a policy file"),
        (("--baseline", "a.scenario.yaml"), "a.scenario.yaml:1:1 is not a baseline, or is damaged"),
        (("--json", "nowhere/gate.json"), "nowhere/gate.json cannot be written"),
    ],
)
def test_an_invalid_argument_is_an_error(
    run: Any, invoke: Invoke, arguments: tuple[str, ...], message: str
) -> None:
    run(GOOD)

    done = invoke("gate", *arguments)

    assert done.exit_code == 2
    assert message in done.output


def test_without_a_run_the_gate_cannot_judge(invoke: Invoke) -> None:
    assert invoke("gate").exit_code == 2
    assert invoke("baseline", "save", "base.json").exit_code == 2


def test_long_lists_are_cut_and_the_rest_is_counted(tmp_path: Path, invoke: Invoke) -> None:
    checks = {f"check {n}": "no" for n in range(5)}
    write_run(tmp_path / "run", {f"s{n:02}": RunSpec("failed", failed=checks) for n in range(30)})

    done = invoke("gate", "run", "--markdown", "gate.md", "--json", "gate.json")

    assert done.output.count("a.scenario.yaml::") == 10
    assert "… and 20 more scenarios" in done.output
    assert "… and 2 more checks" in done.output
    assert "… and 5 more scenarios" in Path("gate.md").read_text(encoding="utf-8")
    assert len(verdict()["rules"][0]["scenarios"]) == 30


def test_texts_of_a_run_are_escaped_in_the_output(tmp_path: Path, invoke: Invoke) -> None:
    harmful = {"path\x1b[31m": "<img src=x> | [a](http://b)\x1b]0;"}
    write_run(tmp_path / "run", {"x\x1b[2J<b>|": RunSpec("failed", failed=harmful)})

    done = invoke("gate", "run", "--markdown", "gate.md")

    page = Path("gate.md").read_text(encoding="utf-8")
    assert "\x1b" not in done.output + page
    assert "<img" not in page
    assert "<b>" not in page
