"""`harness run`: exit codes, output, JSON, selection of scenarios, repeats."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fixtures import Invoke, RunCommand, WriteFile, WriteSuite

PASSES = "{name: counts to one, tags: [quick], expect: {state: {count: 1}}}"
FAILS = "{name: counts to two, expect: {state: {count: 2}}}"
CANNOT_BE_JUDGED = "{name: nobody answers, manifest: asking.yaml, env: {MODEL: tiny}, input: hello}"
BROKEN = "harness: 1\nmanifest: counter.yaml\nscenarios:\n  - {name: x, expct: {}}\n"


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("scenarios", "code"),
    [
        ([PASSES], 0),
        ([PASSES, FAILS], 1),
        ([PASSES, FAILS, CANNOT_BE_JUDGED], 3),
        (["{name: later, skip: not yet}"], 0),
        (["{name: known, xfail: a bug, expect: {state: {count: 2}}}"], 0),
    ],
    ids=["passed", "one failed", "one could not be judged", "skipped", "expected to fail"],
)
def test_the_exit_code_is_that_of_the_worst_verdict(
    invoke: Invoke, suite: WriteSuite, scenarios: Any, code: Any
) -> None:
    suite(*scenarios)
    assert invoke("run", ".").exit_code == code


def test_the_installed_command_has_the_same_exit_code(harness: RunCommand, suite: WriteSuite) -> None:
    suite(PASSES, FAILS)
    done = harness("run", ".")
    assert done.returncode == 1
    assert "1 passed · 1 failed" in done.stdout


def test_a_failure_is_shown_with_the_line_of_its_expectation(invoke: Invoke, suite: WriteSuite) -> None:
    suite(FAILS)
    told = invoke("run", ".").output
    assert "a.scenario.yaml:4:" in told
    assert "count" in told
    assert "  rerun  harness run 'a.scenario.yaml::counts to two'  # seed 0\n" in told
    assert "results: reports/latest" in told.replace("\\", "/")


@pytest.mark.parametrize("env", [{"FORCE_COLOR": "1"}, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, {}])
def test_a_failure_is_emphasised_where_colours_are_wanted_and_never_in_files(
    harness: RunCommand, suite: WriteSuite, env: dict[str, str]
) -> None:
    suite(FAILS)
    told = harness("run", ".", GITHUB_ACTIONS="true", **env).stdout
    emphasised = "count: expected \x1b[32m2\x1b[0m, was \x1b[1;31m1\x1b[0m\n"
    assert (emphasised in told) is (env == {"FORCE_COLOR": "1"})
    assert ("\x1b" in told) is (env == {"FORCE_COLOR": "1"})
    assert not [line for line in told.splitlines() if "::error" in line and "\x1b" in line]
    for name in ("summary.md", "summary.json", "junit.xml", "results.jsonl"):
        written = Path("reports/latest", name).read_text(encoding="utf-8")
        assert "\x1b" not in written
        assert "u001b" not in written


def test_an_invalid_file_does_not_stop_others_and_exits_with_2(
    invoke: Invoke, suite: WriteSuite, write: WriteFile
) -> None:
    suite(PASSES, CANNOT_BE_JUDGED)
    write("b.scenario.yaml", BROKEN)
    result = invoke("run", ".")
    assert result.exit_code == 2
    assert "b.scenario.yaml:4:15: error: unknown key 'expct'" in result.stderr
    assert "did you mean 'expect'?" in result.stderr
    assert "1 passed" in result.stdout
    written = {line["id"]: line for line in lines(Path("reports/latest/results.jsonl").read_text())}
    assert written["a.scenario.yaml::counts to one"]["verdict"] == "passed"
    broken = written["b.scenario.yaml::x"]
    assert (broken["verdict"], broken["status"], broken["error"]["type"]) == (
        "error",
        "invalid",
        "FormatError",
    )
    assert broken["error"]["where"] == "b.scenario.yaml:4:15"


def test_all_scenarios_of_an_invalid_file_count(invoke: Invoke, suite: WriteSuite, write: WriteFile) -> None:
    suite(PASSES)
    write("b.scenario.yaml", BROKEN + "  - {name: y}\n  - {name: z}\n")
    write("c.scenario.yaml", "harness: [")
    assert "1 passed · 4 errors   (5 runs of 5 scenarios)" in invoke("run", ".").stdout
    assert "0 passed · 1 error   (1 run of 1 scenario)" in invoke("run", "b.scenario.yaml::y").stdout


PRINTS = """
import os, subprocess, sys
print("by print")
os.write(1, b"by C code\\n")
subprocess.run(["echo", "by a child"])
sys.__stdout__.write("by another stream\\n")
"""


@pytest.mark.parametrize(
    "command",
    [
        ["run", ".", "--json", "-"],
        ["run", ".", "--json", "-", "-j", "2"],
        ["score", ".", "--variants", "variants.yaml", "--json", "-"],
        ["score", ".", "--variants", "variants.yaml", "--json", "-", "-j", "2"],
        ["validate", ".", "--imports", "--json"],
    ],
    ids=" ".join,
)
def test_json_on_standard_output_is_free_of_output_of_user_code(
    command: list[str], harness: RunCommand, invoke: Invoke, write: WriteFile
) -> None:
    invoke("init")
    write("variants.yaml", "harness: 1\nvariants: [{name: cold, params: {temperature: 0}}]\n")
    tools = Path("agents/shop_tools.py")
    tools.write_text(tools.read_text() + PRINTS)
    done = harness(*command)
    json.loads(f"[{','.join(done.stdout.splitlines())}]" if command[0] == "run" else done.stdout)
    assert all(f"by {what}\n" in done.stderr for what in ("print", "C code", "a child", "another stream"))


@pytest.mark.parametrize("content", [b"", b"\x00\x01\xff", b"harness: [", b"\xff\xfe"], ids=repr)
def test_a_file_that_is_not_text_or_not_yaml_is_an_error(
    invoke: Invoke, tmp_path: Path, content: Any
) -> None:
    (tmp_path / "odd.scenario.yaml").write_bytes(content)
    result = invoke("run", "odd.scenario.yaml")
    assert result.exit_code == 2
    assert result.stderr.startswith("odd.scenario.yaml:1:")


def test_json_on_standard_output_equals_the_results_file(harness: RunCommand, invoke: Invoke) -> None:
    invoke("init")
    tools = Path("agents/shop_tools.py")
    tools.write_text(tools.read_text() + "\n\nprint('I am imported')\n")
    done = harness("run", ".", "--json", "-")
    assert done.stdout == Path("reports/latest/results.jsonl").read_text()
    assert [line["verdict"] for line in lines(done.stdout)] == ["passed", "passed"]
    assert "I am imported" in done.stderr
    assert "2 passed" in done.stderr


def test_json_may_be_written_to_a_file(invoke: Invoke, suite: WriteSuite) -> None:
    suite(PASSES)
    result = invoke("run", ".", "--json", "lines.jsonl", "--report", "elsewhere")
    assert result.exit_code == 0
    assert Path("lines.jsonl").read_bytes() == Path("elsewhere/results.jsonl").read_bytes()
    assert not Path("reports").exists()


@pytest.mark.parametrize("option", ["--json", "--report"])
def test_results_that_cannot_be_written_are_a_usage_error(
    invoke: Invoke, suite: WriteSuite, write: WriteFile, option: Any
) -> None:
    suite(PASSES)
    write("file", "")
    result = invoke("run", ".", option, "file/below")
    assert result.exit_code == 2
    assert "below" in result.stderr


@pytest.mark.parametrize(
    ("args", "ran"),
    [
        (["."], ["counts to one", "counts to two"]),
        ([".", "-k", "TO TWO"], ["counts to two"]),
        ([".", "-k", "a.scenario.yaml::counts to o"], ["counts to one"]),
        ([".", "-k", "quick or two"], ["counts to one", "counts to two"]),
        ([".", "-k", "counts and not (quick or mail)"], ["counts to two"]),
        ([".", "--shard", "1/2"], ["counts to one"]),
        ([".", "-k", "two", "--shard", "1/2"], ["counts to two"]),
        ([".", "--tag", "quick"], ["counts to one"]),
        ([".", "--tag", "quick", "--tag", "slow"], ["counts to one"]),
        (["a.scenario.yaml::counts to two"], ["counts to two"]),
        (["a.scenario.yaml::counts to two", "."], ["counts to one", "counts to two"]),
        ([".", "-k", "to one", "--repeat", "3"], ["counts to one"] * 3),
    ],
)
def test_scenarios_are_selected_by_words_tag_id_and_shard(
    invoke: Invoke, suite: WriteSuite, args: Any, ran: Any
) -> None:
    suite(PASSES, FAILS)
    invoke("run", *args, "--json", "lines.jsonl")
    assert [line["scenario"] for line in lines(Path("lines.jsonl").read_text())] == ran


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ([".", "-k", "counts to onne"], "did you mean 'counts to one'?"),
        ([".", "-k", "countts and not slow"], "did you mean 'counts'?"),
        ([".", "-k", "counts and (one"], "-k:1:12: error: this '(' is never closed"),
        ([".", "--shard", "3/2"], "the shards of 2 are 1/2 to 2/2"),
        ([".", "--tag", "quik"], "did you mean 'quick'?"),
        (["a.scenario.yaml::counts to onne"], "did you mean 'counts to one'?"),
        (["b.scenario.yaml"], "did you mean 'a.scenario.yaml'?"),
        (["empty"], "`harness init` writes an example"),
        (["counter.yaml"], "`harness new counter.yaml` writes a scenario"),
    ],
)
def test_an_empty_selection_is_a_usage_error_with_a_suggestion(
    invoke: Invoke, suite: WriteSuite, tmp_path: Path, args: Any, told: Any
) -> None:
    suite(PASSES)
    (tmp_path / "empty").mkdir()
    result = invoke("run", *args)
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_run_may_stop_at_the_first_scenario_that_does_not_pass(invoke: Invoke, suite: WriteSuite) -> None:
    suite(FAILS, PASSES)
    result = invoke("run", ".", "-x", "--json", "lines.jsonl")
    assert result.exit_code == 1
    assert [line["scenario"] for line in lines(Path("lines.jsonl").read_text())] == ["counts to two"]


def test_an_empty_shard_neither_fails_nor_reports_all_passed(invoke: Invoke, suite: WriteSuite) -> None:
    suite(PASSES, FAILS)
    result = invoke("run", ".", "--shard", "3/3", "-q")
    assert result.exit_code == 0
    assert result.stderr == "nothing to run: 0 of 2 scenarios selected (shard 3/3)\n"
    summary = json.loads(Path("reports/latest/summary.json").read_text())
    assert (summary["complete"], summary["total"]["runs"]) == (False, 0)


def test_quiet_prints_failures_and_counts(invoke: Invoke, suite: WriteSuite) -> None:
    suite(PASSES, FAILS)
    told = invoke("run", ".", "-q").stdout
    assert "counts to one" not in told
    assert "counts to two" in told
    assert "1 passed · 1 failed" in told


def test_verbose_prints_the_coverage_of_each_graph(invoke: Invoke, suite: WriteSuite) -> None:
    suite(PASSES)
    assert "coverage" not in invoke("run", ".").stdout
    assert "coverage" in invoke("run", ".", "-v").stdout


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_without_unicode_does_not_fail_the_command(
    harness: RunCommand, suite: WriteSuite, encoding: Any
) -> None:
    suite("{name: '日本語 → ok', expect: {state: {count: '→'}}}")
    done = harness("run", ".", PYTHONIOENCODING=encoding)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def totals() -> dict[str, Any]:
    total: dict[str, Any] = json.loads(Path("reports/latest/summary.json").read_text(encoding="utf-8"))[
        "total"
    ]
    return total


def test_repeats_that_cannot_differ_are_noted_and_count_once(invoke: Invoke, suite: WriteSuite) -> None:
    suite("{name: one, repeat: 5}", "{name: two}")
    shown = invoke("run", ".").stdout
    assert "distinct  2 of 6 runs; repeats with the same answers and nothing random count once" in shown
    assert "pass@5" not in shown
    assert (totals()["runs"], totals()["distinct_runs"]) == (6, 2)
    assert "- distinct: 2 of 6 runs;" in Path("reports/latest/summary.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "random",
    [
        "faults: [{effect: llm, rate: 0.5, error: rate_limit}]",
        "turns: [{input: hi, llm: [hello], faults: [{effect: llm, rate: 0.5, latency: 1}]}]",
    ],
)
def test_repeats_with_random_faults_each_count(invoke: Invoke, suite: WriteSuite, random: str) -> None:
    world = "" if "turns" in random else "input: hi, llm: [hello], allow_unused: true, "
    suite(f"{{name: one, manifest: asking.yaml, env: {{MODEL: m}}, repeat: 4, {world}{random}}}")
    shown = invoke("run", ".").stdout
    assert "distinct" not in shown
    assert (totals()["runs"], totals()["distinct_runs"]) == (4, 4)


def test_a_missing_hook_is_an_error_at_the_place_that_names_it(suite: WriteSuite, invoke: Invoke) -> None:
    suite("{name: one, hooks: [nowhere.Hook], expect: {state: {count: 1}}}")
    assert "ManifestError (import)\n    cannot import 'nowhere.Hook'" in (said := invoke("run", ".").stdout)
    assert "at a.scenario.yaml:4:25\n" in said


def test_an_empty_scenario_name_does_not_select_the_whole_file(suite: WriteSuite, invoke: Invoke) -> None:
    suite(PASSES, FAILS)
    refused = invoke("run", "a.scenario.yaml::")
    assert refused.exit_code == 2
    assert refused.stderr.splitlines() == [
        "error: 'a.scenario.yaml::' names no scenario [unknown-scenario]",
        "    a.scenario.yaml runs all of this file",
    ]


def test_of_many_scenarios_only_a_few_are_listed(suite: WriteSuite, invoke: Invoke) -> None:
    suite(*(f"{{name: number {number} of a long table, input: go}}" for number in range(9)))
    lines = invoke("run", "a.scenario.yaml::x").stderr.splitlines()
    assert lines[:2] == [
        "error: no scenario 'x' in a.scenario.yaml [unknown-scenario]",
        "    there are:",
    ]
    assert len(lines) == 8
    assert all(line.startswith("      number ") for line in lines[2:-1])
    assert lines[-1] == "      … and 4 more"


@pytest.mark.parametrize("manifest", ["counter", "asking"])
def test_an_unset_passthrough_variable_is_a_warning(
    manifest: str, suite: WriteSuite, write: WriteFile, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite()
    monkeypatch.setenv("MODEL_NAME", "gpt-4o")
    monkeypatch.delenv("MODEL", raising=False)
    write(
        "a.scenario.yaml",
        f"harness: 1\nmanifest: {manifest}.yaml\nenv: {{GIVEN: x}}\n"
        "env_passthrough: [MODEL_NAM, MODEL_NAME, GIVEN]\n"
        "scenarios: [{name: one, input: go, expect: {status: completed}}]\n",
    )
    said = invoke("run", "a.scenario.yaml").output
    assert "names MODEL_NAME," not in said
    assert "names GIVEN" not in said
    assert (
        "a.scenario.yaml:4:19: 'env_passthrough' names MODEL_NAM, which is not set in the environment "
        "(did you mean 'MODEL_NAME'?)"
    ) in " ".join(said.split())
    assert ("the environment variable MODEL is not set" in said) is (manifest == "asking")


@pytest.mark.parametrize("default", [":-tiny", ""])
def test_a_passthrough_variable_with_a_default_may_be_unset(
    default: str, write: WriteFile, invoke: Invoke, asking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MODEL", raising=False)
    write("asking.yaml", asking.replace("${MODEL}", f"${{MODEL{default}}}"))
    write(
        "a.scenario.yaml",
        "harness: 1\nmanifest: asking.yaml\nenv_passthrough: [MODEL]\n"
        "scenarios: [{name: one, input: go, llm: [a], expect: {output: a}}]\n",
    )
    said = invoke("run", "a.scenario.yaml").output
    assert ("'env_passthrough' names MODEL" in said) is (not default)
