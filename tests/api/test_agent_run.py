"""The fixture `agent_run`: runs of plain tests stand in the same report, gate and history as scenarios."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.recording.safety import BIN, Model, parrots

AGENT = """\
def agent(input):
    return input.upper()
"""
TESTS = """\
from agent import agent


def test_passes(agent_run):
    run = agent_run("agent.py:agent", "hello")
    assert run.check(path=["agent"]).output == "HELLO"


def test_fails_in_its_check(agent_run):
    agent_run(agent, "hello").check(output="hello")


def test_fails_elsewhere(agent_run):
    assert agent_run(agent, "hello").output == "x"


def test_has_two_conversations(agent_run):
    assert agent_run(agent, "a").digest != agent_run(agent, "b").digest


def test_leaves_a_stub(agent_run):
    agent_run(agent, "hello", llm=["never asked"])


def test_of_something_else():
    pass
"""
SCENARIO = "harness: 1\nmanifest: agent.py:agent\nscenarios: [{name: one, input: hi, expect: {output: HI}}]\n"


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyprojecttoml("")
    pytester.makepyfile(agent=AGENT, test_agent=TESTS)
    pytester.makefile(".scenario.yaml", a=SCENARIO)
    return pytester


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "reports/latest/results.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["serial", "xdist"])
def test_tests_and_scenarios_are_in_one_report(project: pytest.Pytester, options: list[str]) -> None:
    done = project.runpytest_subprocess("-q", *options)
    done.assert_outcomes(passed=5, failed=2, errors=1)
    found = [(line["id"], line["verdict"]) for line in lines(project.path)]
    assert sorted(found) == [
        ("a.scenario.yaml::one", "passed"),
        ("test_agent.py::test_fails_elsewhere", "failed"),
        ("test_agent.py::test_fails_in_its_check", "failed"),
        ("test_agent.py::test_has_two_conversations", "passed"),
        ("test_agent.py::test_has_two_conversations (2)", "passed"),
        ("test_agent.py::test_leaves_a_stub", "failed"),
        ("test_agent.py::test_passes", "passed"),
    ]
    assert {line["manifest"] for line in lines(project.path)} == {"agent.py:agent"}  # also of the object
    said = done.stdout.str()
    assert "7 runs of 7 scenarios" in said
    assert (
        "stubs are left over (allow_unused=True allows that):\n  never used: llm: reply: 'never asked'"
        in said
    )
    assert "expected 'hello', was 'HELLO'" in said
    summary = json.loads((project.path / "reports/latest/summary.json").read_text())
    assert summary["complete"], summary


def test_what_a_test_expects_is_no_line_of_a_scenario(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("")
    pytester.makepyfile(
        agent=AGENT,
        test_wrong="""
            from agent import agent

            def test_a(agent_run):
                agent_run(agent, "a").check(output="b")

            def test_b(agent_run):
                agent_run(agent, "a", llm={"ask": [{"replay": 1}]})
        """,
    )
    shown = pytester.runpytest_subprocess("-q").stdout.str()
    assert "unknown key 'replay' in a stub" in shown
    assert "harness/api" not in shown  # the traceback is of the test alone
    [line] = lines(pytester.path)
    assert {line["where"], *(check["where"] for check in line["checks"])} == {None}
    accepted = pytester.run(BIN / "harness", "accept", "--dry-run")
    assert "test_a: expectations of a test are edited by hand" in accepted.stderr.str()


def test_what_is_skipped_or_expected_to_fail_has_no_results(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("")
    pytester.makepyfile(
        agent=AGENT,
        test_marks="""
            import pytest
            from agent import agent

            def test_skips(agent_run):
                agent_run(agent, "a")
                pytest.skip("no time")

            @pytest.mark.xfail
            def test_is_known_to_fail(agent_run):
                agent_run(agent, "a").check(output="b")

            @pytest.mark.xfail(strict=True)
            def test_should_have_failed(agent_run):
                agent_run(agent, "a").check(output="A")
        """,
    )
    done = pytester.runpytest_subprocess("-q")
    done.assert_outcomes(skipped=1, xfailed=1, failed=1)
    [line] = lines(pytester.path)
    assert (line["id"], line["verdict"]) == ("test_marks.py::test_should_have_failed", "failed")
    assert "XPASS(strict)" in line["reason"]


def test_its_run_is_recorded_under_the_name_of_the_test(tmp_path: Path) -> None:
    model = Model()
    with parrots(tmp_path, model) as project:
        project.parrot()
        project.write(
            "test_parrot.py", "def test_a(agent_run):\n    assert agent_run('parrot.yaml', 'x').output\n"
        )
        for mode in ("once", "none"):
            done = project.run(BIN / "pytest", "-q", "--record-mode", mode, "test_parrot.py")
            assert "1 passed" in done.out
        assert set(project.cassettes()) == {"test_a/http.yaml", "test_a/meta.yaml"}
    assert model.heard == ["x"]
