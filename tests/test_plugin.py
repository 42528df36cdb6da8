"""The pytest plugin, run through pytest's command line in a project folder."""

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

import pytest

import tests.preloaded  # noqa: F401
from harness.secrets import environment
from tests import forked

MANIFEST = """\
manifest_version: 1
default_llm: {id: m}
llms: [{id: m, version: "1.0.0", provider: openai, model_name: gpt-4o}]
agents:
  desk:
    state:
      fields:
        - {name: messages, type: list, default: []}
        - {name: tries, type: int, default: 0}
    graph:
      entry_point: answer
      nodes:
        - name: answer
          type: call_llm
          args:
            prompt: [{role: messages, content: state.messages}]
            state_updates: {messages: '[llm_response]', tries: state.tries + 1}
        - name: close
          type: set_state
          args: {values: {tries: state.tries * 10}}
      edges: [{source: answer, target: close}]
"""


def scenario(
    name: Any = "it answers", expect: Any = "{state: {tries: 10}}", llm: Any = "[hello]", more: Any = ""
) -> Any:
    return f"  - name: {name}\n    input: hi\n    llm: {{answer: {llm}}}\n    expect: {expect}\n{more}"


class RunSuite(Protocol):
    """A function that writes scenarios into an empty folder and runs pytest on it."""

    def __call__(self, *scenarios: str, options: Sequence[str] = ()) -> pytest.RunResult: ...


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> RunSuite:
    monkeypatch.setenv("COLUMNS", "200")  # pytest cuts lines at the width of the terminal

    def run(*scenarios: str, options: Sequence[str] = ()) -> pytest.RunResult:
        pytester.makefile(".yaml", desk=MANIFEST)
        text = "harness: 1\nmanifest: desk.yaml\nscenarios:\n" + "".join(scenarios)
        (pytester.path / "desk.scenario.yaml").write_text(text, encoding="utf-8")
        return pytester.runpytest("-p", "no:cacheprovider", *options)

    return run


def results(pytester: pytest.Pytester, folder: str = "reports/latest") -> list[dict[str, Any]]:
    lines = (pytester.path / folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_scenario_whose_expectations_hold_passes(suite: RunSuite) -> None:
    suite(scenario()).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("expect", "llm", "says"),
    [
        ("{state: {tries: 11}}", "[hello]", "*tries: expected 11, was 10*"),
        ("{state: {tries: ten}}", "[hello]", "*tries: expected 'ten', was 10*"),
        ("{path: [answer]}", "[hello]", "*expected*answer*"),
        ("{path: [answer, answer, close]}", "[hello]", "*step 2: expected answer, was close*"),
        ("{}", "[hello, again]", "*never used: llm: reply: 'again'*"),
        ("{}", "[]", "*nothing answers the call of model 'gpt-4o'*"),
        ("{never: [close]}", "[hello]", "*close*"),
        ("{never: [closee]}", "[hello]", "*desk.scenario.yaml:7:*never names 'closee'*"),
        ("{output: bye}", "[hello]", "*expected*bye*"),
        ("{state_schema: {properties: {tries: {type: string}}}}", "[hello]", "*is not of type 'string'*"),
    ],
    ids=[
        "value",
        "type",
        "path too short",
        "other node",
        "unused",
        "unanswered",
        "never",
        "no node",
        "output",
        "schema",
    ],
)
def test_a_scenario_whose_expectations_do_not_hold_fails_and_says_why(
    suite: RunSuite, expect: Any, llm: Any, says: Any
) -> None:
    result = suite(scenario(expect=expect, llm=llm))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([says])
    assert "Traceback" not in result.stdout.str()
    assert "plugin.py" not in result.stdout.str()


def test_a_score_below_pass_score_fails_and_one_equal_to_it_passes(suite: RunSuite) -> None:
    half = "{state: {tries: 10, messages: {$len: 9}}}"
    suite(scenario(expect=half, more="    pass_score: 0.6\n")).assert_outcomes(failed=1)
    suite(scenario(expect=half, more="    pass_score: 0.5\n")).assert_outcomes(passed=1)


def test_a_failure_shows_the_line_of_the_expectation_the_path_and_the_calls(suite: RunSuite) -> None:
    result = suite(scenario(expect="{state: {tries: 11}}"))
    result.stdout.fnmatch_lines(
        [
            "it answers — score 0.00, failed",
            "*desk.scenario.yaml:7:*",
            "*expect: {state: {tries: 11}}",
            "*^~*",
            "*path*answer → close",
            "*llm gpt-4o*in answer",
            "*rerun*pytest*desk.scenario.yaml::it answers*",
        ]
    )


def test_every_repeat_must_pass(suite: RunSuite, pytester: pytest.Pytester) -> None:
    suite(scenario(more="    repeat: 3\n")).assert_outcomes(passed=1)
    assert [(line["repeat"], line["seed"]) for line in results(pytester)] == [(0, 0), (1, 1), (2, 2)]


def test_skip_and_xfail_mean_what_they_mean_in_pytest(suite: RunSuite, pytester: pytest.Pytester) -> None:
    result = suite(
        scenario("skipped", more="    skip: not yet\n"),
        scenario("fails", expect="{output: bye}", more="    xfail: known\n"),
        scenario("passes", more="    xfail: fixed\n"),
    )
    result.assert_outcomes(skipped=1, xfailed=1, xpassed=1)
    assert [line["verdict"] for line in results(pytester)] == ["skipped", "skipped", "passed"]


def test_tags_are_marks_and_names_are_ids(suite: RunSuite) -> None:
    two = (scenario("one", more="    tags: [smoke]\n"), scenario("two", more="    tags: [slow-path]\n"))
    suite(*two, options=["-m", "smoke"]).assert_outcomes(passed=1, deselected=1)
    suite(*two, options=["-m", "not slow-path", "--strict-markers"]).assert_outcomes(passed=1, deselected=1)
    suite(*two, options=["-k", "two"]).assert_outcomes(passed=1, deselected=1)
    suite(*two, options=["desk.scenario.yaml::one"]).assert_outcomes(passed=1)


def test_a_tag_is_registered_once_however_many_scenarios_have_it(
    suite: RunSuite, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(
        "def pytest_collection_finish(session):\n"
        "    print([line for line in session.config.getini('markers') if 'a tag of' in line])"
    )
    three = [scenario(name, more="    tags: [smoke, slow]\n") for name in ("one", "two", "three")]
    result = suite(*three, options=["-s"])
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*[[]'smoke: a tag of scenarios', 'slow: a tag of scenarios'[]]*"])


def test_stopping_at_the_first_failure_works(suite: RunSuite) -> None:
    bad = [scenario(f"s{n}", expect="{output: bye}") for n in range(3)]
    suite(*bad, options=["-x"]).assert_outcomes(failed=1)


def test_an_invalid_file_is_one_error_with_all_its_problems_and_the_others_run(
    suite: RunSuite, pytester: pytest.Pytester
) -> None:
    (pytester.path / "bad.scenario.yaml").write_text(
        "harness: 1\nmanifest: x\nscenarios: [{nmae: a, inptu: b}]\n"
    )
    result = suite(scenario(), options=["--continue-on-collection-errors"])
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*unknown key 'nmae'*", "*did you mean 'name'*", "*did you mean 'input'*"])
    assert "Traceback" not in result.stdout.str()


@pytest.mark.parametrize("options", [[], forked.workers(2)], ids=["alone", "with workers"])
def test_the_scenarios_of_an_invalid_file_count_as_errors(
    suite: RunSuite, pytester: pytest.Pytester, options: list[str]
) -> None:
    (pytester.path / "bad.scenario.yaml").write_text(
        "harness: 1\nmanifest: x\nscenarios: [{name: a, inptu: b}, {name: b}]\n"
    )
    result = suite(scenario(), options=["--continue-on-collection-errors", *options])
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["1 passed · 2 errors   (3 runs of 3 scenarios)", "not whole  bad.scenario.yaml *"]
    )
    assert sorted(line["id"] for line in results(pytester)) == [
        "bad.scenario.yaml::a",
        "bad.scenario.yaml::b",
        "desk.scenario.yaml::it answers",
    ]


def test_a_report_has_a_line_per_result_and_a_summary(suite: RunSuite, pytester: pytest.Pytester) -> None:
    result = suite(scenario("a"), scenario("b", expect="{output: bye}"), options=["--harness-report=out"])
    assert [line["scenario"] for line in results(pytester, "out")] == ["a", "b"]
    summary = json.loads((pytester.path / "out/summary.json").read_text())
    assert summary["total"]["pass_rate"] == 0.5
    assert "desk.scenario.yaml::b" in (pytester.path / "out/summary.md").read_text()
    result.stdout.fnmatch_lines(
        ["*1 passed*1 failed*", "*pass rate*50*", "*fitness*", "*real time*", "results: *out"]
    )


def test_results_of_all_workers_are_in_one_report_in_the_order_of_the_file(
    suite: RunSuite, pytester: pytest.Pytester
) -> None:
    result = suite(*(scenario(f"s{n}") for n in range(6)), options=forked.workers(2))
    result.assert_outcomes(passed=6)
    assert [line["scenario"] for line in results(pytester)] == [f"s{n}" for n in range(6)]


def test_a_worker_that_dies_is_an_error_of_the_scenario_that_it_ran(
    suite: RunSuite, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(
        "import os\ndef pytest_runtest_call(item):\n    if item.name == 'killed':\n        os._exit(7)\n"
    )
    result = suite(scenario("before"), scenario("killed", more="    repeat: 2\n"), options=forked.workers(1))
    result.stdout.fnmatch_lines(["*WorkerDied (worker-died)*", "*1 passed*2 errors*"])
    assert [(line["scenario"], line["repeat"], line["verdict"]) for line in results(pytester)] == [
        ("before", 0, "passed"),
        ("killed", 0, "error"),
        ("killed", 1, "error"),
    ]


@pytest.mark.parametrize("workers", [False, True], ids=["one process", "workers"])
def test_an_error_that_many_scenarios_share_is_shown_once(
    suite: RunSuite, pytester: pytest.Pytester, workers: bool
) -> None:
    broken = "    manifest: broken.yaml\n"
    pytester.makefile(".yaml", broken=MANIFEST.replace("target: close", "target: clsoe"))
    names = [f"s{n}" for n in range(4)]
    options = ["--junitxml=junit.xml", *(forked.workers(1) if workers else ())]
    result = suite(*(scenario(name, more=broken) for name in names), options=options)
    shown = result.stdout.str()
    assert shown.count("did you mean 'close'?") == 1
    others = (
        "  same   desk.scenario.yaml::s1\n         desk.scenario.yaml::s2\n         desk.scenario.yaml::s3\n"
    )
    assert f"{others}  rerun  pytest desk.scenario.yaml::s0" in shown
    result.assert_outcomes(failed=4)
    assert len([line for line in result.outlines if line.startswith("FAILED")]) == 4
    assert (pytester.path / "junit.xml").read_text().count("did you mean") == 4
    summary = (pytester.path / "reports/latest/summary.md").read_text()
    assert summary.count("did you mean") == 1
    assert "**4 scenarios** error, for the same reason" in summary
    assert all(f"desk.scenario.yaml::{name}" in summary for name in names)
    assert len({line["fault"] for line in results(pytester)}) == 1


@pytest.mark.parametrize(
    ("style", "shown", "hidden"),
    [
        ("short", "state: expected", "path   answer"),
        ("line", "desk.scenario.yaml:4: score", "rerun"),
        ("no", "1 failed", "score 0.5"),
    ],
)
def test_the_tb_option_sets_how_much_of_a_failure_is_shown(
    suite: RunSuite, style: str, shown: str, hidden: str
) -> None:
    result = suite(scenario(expect="{path: [answer], state: {tries: 10}}"), options=[f"--tb={style}", "-rN"])
    assert shown.replace("state: ", "") in result.stdout.str()
    assert hidden not in result.stdout.str()


@pytest.mark.parametrize(
    ("variable", "option", "colours"),
    [
        ("FORCE_COLOR", "--color=auto", True),
        ("NO_COLOR", "--color=auto", False),
        ("COLUMNS", "--color=auto", False),
        ("COLUMNS", "--color=yes", True),
    ],
)
def test_failures_are_emphasised_where_pytest_has_colours_and_never_in_files(
    suite: RunSuite,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    option: str,
    colours: bool,
) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv(variable, "200")
    result = suite(scenario(expect="{state: {tries: '1'}}"), options=[option, "--junitxml=pytest.xml"])
    shown = result.stdout.str()
    assert ("\x1b[1mit answers — score 0.00, failed\x1b[0m\n" in shown) is colours
    assert ("expected \x1b[32m'1'\x1b[0m, was \x1b[1m\x1b[31m10\x1b[0m\n" in shown) is colours
    assert [line for line in shown.splitlines() if line.startswith("::error ")]
    assert not [line for line in shown.splitlines() if "::error" in line and "\x1b" in line]
    written = [path for path in pytester.path.rglob("*") if path.suffix in {".md", ".xml", ".json", ".jsonl"}]
    assert {path.name for path in written} >= {"pytest.xml", "junit.xml", "summary.md", "results.jsonl"}
    assert not [path for path in written if re.search(r"\x1b|\\u001b|\[32m", path.read_text())]


@pytest.mark.parametrize("way", ["toml", "ini", "environment"])
def test_settings_come_from_pyproject_ini_or_environment(
    suite: RunSuite, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, way: Any
) -> None:
    if way == "toml":
        pytester.makepyprojecttoml('[tool.harness]\nreport = "there"\n')
    elif way == "ini":
        pytester.makeini("[pytest]\nharness_report = there\n")
    else:
        monkeypatch.setenv("HARNESS_REPORT", "there")
    suite(scenario()).assert_outcomes(passed=1)
    assert len(results(pytester, "there")) == 1


def test_an_unknown_setting_is_refused_with_a_suggestion(suite: RunSuite, pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml('[tool.harness]\nreprot = "there"\n')
    result = suite(scenario())
    assert result.ret != 0
    assert "did you mean 'report'" in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize("processes", ["-n0", "-n1"])
def test_a_misspelt_variable_is_one_warning_with_a_suggestion(
    suite: RunSuite, monkeypatch: pytest.MonkeyPatch, processes: str
) -> None:
    monkeypatch.setenv("HARNESS_REPROT", "there")
    monkeypatch.setenv("HARNESS_BUILD_ID", "1")  # set by the CI product Harness
    said = suite(scenario(), options=[processes]).stdout.str()
    assert said.count("warning: the variable HARNESS_") == 1
    assert "warning: the variable HARNESS_REPROT is not read: did you mean HARNESS_REPORT?" in said


@pytest.mark.parametrize("scenarios", [["  - nam: x\n"], [scenario("left out")]], ids=["faulty", "left out"])
def test_a_misspelt_variable_is_a_warning_even_if_no_scenario_runs(
    suite: RunSuite, monkeypatch: pytest.MonkeyPatch, scenarios: list[str]
) -> None:
    monkeypatch.setenv("HARNESS_REPROT", "there")
    said = suite(*scenarios, options=["-k", "nothing of the kind"]).stdout.str()
    assert said.count("warning: the variable HARNESS_REPROT is not read: did you mean HARNESS_REPORT?") == 1


@pytest.fixture
def own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let other tests not know the variables that a test sets: a secret stays known until its process ends."""
    read = environment._variables_of_process.__wrapped__
    monkeypatch.setattr(environment, "_variables_of_process", cache(read))
    monkeypatch.setattr(environment, "_watched", [])


@pytest.mark.usefixtures("own_variables")
@pytest.mark.parametrize("processes", ["-n0", "-n2"])
def test_a_value_too_short_to_be_kept_secret_is_one_warning(
    suite: RunSuite, monkeypatch: pytest.MonkeyPatch, processes: str
) -> None:
    monkeypatch.setenv("DESK_API_KEY", "abc")
    said = suite(scenario(), options=[processes]).stdout.str()
    assert (
        said.count("warning: the value of DESK_API_KEY is too short, or too common a word, to be kept secret")
        == 1
    )


@pytest.mark.parametrize(
    ("options", "ran", "reason"),
    [
        (["--harness-shard", "2/2"], ["b"], "1 of 3 scenarios selected (shard 2/2)"),
        (["--harness-shard", "1/1"], ["a", "b", "c"], None),
        (["-k", "desk.scenario.yaml::a"], ["a"], "1 of 3 scenarios selected (-k 'desk.scenario.yaml::a')"),
    ],
)
def test_a_selection_runs_and_the_summary_gives_its_reason(
    suite: RunSuite, pytester: pytest.Pytester, options: list[str], ran: list[str], reason: str | None
) -> None:
    suite(*map(scenario, "abc"), options=options).assert_outcomes(passed=len(ran), deselected=3 - len(ran))
    assert [line["scenario"] for line in results(pytester)] == ran
    assert json.loads((pytester.path / "reports/latest/summary.json").read_text())["reason"] == reason


def test_changed_selects_affected_scenarios_and_keeps_other_tests(
    suite: RunSuite, pytester: pytest.Pytester
) -> None:
    pytester.makefile(".yaml", other=MANIFEST)
    text = "harness: 1\nmanifest: other.yaml\nscenarios:\n" + scenario("elsewhere")
    (pytester.path / "other.scenario.yaml").write_text(text, encoding="utf-8")
    pytester.makepyfile("def test_plain(): pass")
    (pytester.path / ".gitignore").write_text("reports\n")
    pytester.run("git", "init", "-q")
    pytester.run("git", "add", "-A")
    pytester.run("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "one")
    result = suite(scenario("here"), options=["--harness-changed", "-v"])  # this writes desk.scenario.yaml
    result.assert_outcomes(passed=2, deselected=1)
    result.stdout.fnmatch_lines(
        [
            "1 scenario touched by what has changed since HEAD",
            "desk.scenario.yaml::here: desk.scenario.yaml changed",
            "not whole  1 of 2 scenarios selected (changed since HEAD)",
        ]
    )


def test_changed_since_an_unknown_commit_is_a_usage_error(suite: RunSuite, pytester: pytest.Pytester) -> None:
    pytester.run("git", "init", "-q")
    result = suite(scenario(), options=["--harness-changed=main"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*the repository has no commit yet*"])


def test_an_invalid_shard_is_a_usage_error(suite: RunSuite) -> None:
    result = suite(scenario(), options=["--harness-shard", "2-5"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--harness-shard: '2-5' is not NUMBER/COUNT; did you mean 2/5?*"])


def test_a_project_without_scenarios_gets_no_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_nothing(): pass")
    pytester.runpytest().assert_outcomes(passed=1)
    assert not (pytester.path / "reports").exists()


MESH = """\
entry_points: [{name: go, target: clerk}]
agents: {clerk: {agent_type: human}}
evolution:
  test_scenarios:
    - {name: as it came, entry_point: go, expected_outcome: {message: Test scenario input}}
    - {name: half, entry_point: go, input: hi, expected_outcome: {message: hi, human_decision: yes}, weight: 3}
"""


@pytest.mark.parametrize(
    ("named", "passed", "failed"), [("config.yaml", 1, 1), ("config.yaml::as it came", 1, 0), (".", 0, 0)]
)
def test_scenarios_in_a_manifest_run_if_the_manifest_is_named(
    pytester: pytest.Pytester, named: str, passed: int, failed: int
) -> None:
    pytester.makefile(".yaml", config=MESH)
    done = pytester.runpytest("-p", "no:cacheprovider", named)
    done.assert_outcomes(passed=passed, failed=failed)
    if failed:
        done.stdout.fnmatch_lines(["fitness  0.625"])  # (1 x 1 + 3 x 0.5) / (1 + 3)
        assert json.loads((pytester.path / "reports/latest/summary.json").read_text())["complete"] is True


def test_a_session_is_appended_to_the_history(suite: RunSuite, pytester: pytest.Pytester) -> None:
    suite(scenario(), options=["--harness-history", "history.jsonl"])
    record = json.loads((pytester.path / "history.jsonl").read_text())
    assert record["scenarios"] == {"desk.scenario.yaml::it answers": ["passed", 1.0]}
