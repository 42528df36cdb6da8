from pathlib import Path

import pytest

from harness.errors import Span
from harness.report.failure import failed_checks, failure_text
from tests.report.fixtures import MakeCheck, MakeOutcome

SOURCE = """\
harness: 1
scenarios:
  - name: a double charge
    expect:
      path: [classify, billing]
"""


def test_failure_shows_checks_locations_path_and_rerun_command(
    tmp_path: Path, outcome: MakeOutcome, failed_check: MakeCheck
) -> None:
    file = tmp_path / "triage.scenario.yaml"
    file.write_text(SOURCE)
    checks = [
        failed_check("status", passed=True),
        failed_check("path", "expected billing\n  was tech", score=0.5, span=Span(str(file), 5, 13, 19)),
    ]
    call = {"kind": "tool", "name": "lookup", "node": "tech", "args": {"id": 7}, "ok": False, "latency": 0.25}
    failed = outcome(
        "failed",
        checks=checks,
        score=0.5,
        seed=3,
        repeat=1,
        variant="terse",
        span=Span(str(file), 3, 11),
        path=["classify", ["a", "b"], "tech"],
        calls=[call],
    )
    assert failure_text(failed) == (
        "a double charge [variant terse, repeat 1] — score 0.50, failed\n"
        f"  {file}:3:11\n"
        "\n"
        "  path (score 0.50)\n"
        "    expected billing\n"
        "      was tech\n"
        f"    {file}:5:13\n"
        "              path: [classify, billing]\n"
        "                    ^~~~~~~~~~~~~~~~~~~\n"
        "\n"
        "  path   classify → [a, b] → tech\n"
        "  calls  tool lookup  in tech  {id: 7}  250 ms  failed\n"
        "  rerun  pytest 'triage.scenario.yaml::a double charge'  # seed 3, repeat 1, variant terse"
    )


@pytest.mark.parametrize(
    ("command", "code", "shown"),
    [
        ("pytest", None, "pytest 'triage.scenario.yaml::a double charge'"),
        ("harness run --live", None, "harness run --live 'triage.scenario.yaml::a double charge'"),
        ("harness record", "key-missing", "harness record 'triage.scenario.yaml::a double charge'"),
        ("pytest", "cassette-missing", "harness record 'triage.scenario.yaml::a double charge'"),
    ],
)
def test_the_command_that_runs_it_again_is_the_one_that_ran_it_or_that_records(
    outcome: MakeOutcome, command: str, code: str | None, shown: str
) -> None:
    failed = outcome("error", error={"type": "Missing", "code": code, "message": "missing"})
    assert f"\n  rerun  {shown}  # seed 0" in failure_text(failed, command=command)


def test_check_without_a_message_shows_the_difference(outcome: MakeOutcome, failed_check: MakeCheck) -> None:
    check = failed_check("state", "", expected={"intent": "billing"}, actual={"intent": "refund"})
    assert "    intent: expected 'billing', was 'refund'\n" in failure_text(outcome("failed", checks=[check]))


def test_error_shows_code_node_and_location(outcome: MakeOutcome) -> None:
    error = {
        "type": "UnscriptedCall",
        "code": "unscripted-call",
        "message": "nothing answers llm\n  nearest stub: classify",
        "node": "answer",
        "where": "triage.yaml:12:3",
    }
    shown = failure_text(outcome("error", error=error, path=[]))
    assert (
        "  UnscriptedCall (unscripted-call) in answer\n"
        "    nothing answers llm\n"
        "      nearest stub: classify\n"
        "    at triage.yaml:12:3\n"
        "\n"
        "  path   (no node ran)\n"
    ) in shown


def test_reason_is_shown_without_an_error(outcome: MakeOutcome) -> None:
    assert "  reason the cassette is missing\n" in failure_text(
        outcome("error", reason="the cassette is missing")
    )


def test_failed_call_shows_its_reason_unless_the_error_of_the_run_does(outcome: MakeOutcome) -> None:
    trace = (
        "exited with code 1: Traceback (most recent call last):\n"
        + '  File "a.py", line 1\n' * 9
        + "KeyError: 'x'"
    )
    calls = [
        {"kind": "script", "name": name, "ok": False, "reason": why}
        for name, why in (("a", trace), ("b", "late"))
    ]
    shown = failure_text(outcome("failed", calls=calls, error={"type": "Late", "message": "it was late"}))
    assert (
        "script a  failed: exited with code 1: Traceback (most recent call last): … KeyError: 'x'\n" in shown
    )
    assert "script b  failed\n" in shown


def test_only_the_last_five_calls_are_shown(outcome: MakeOutcome) -> None:
    calls = [{"kind": "tool", "name": f"t{i}", "args": {}, "ok": True, "latency": 0.0} for i in range(7)]
    shown = failure_text(outcome("failed", calls=calls))
    assert "  calls  … 2 earlier\n         tool t2\n" in shown
    assert "tool t1" not in shown


def test_the_last_five_distinct_warnings_are_shown(outcome: MakeOutcome) -> None:
    warnings = ["at load:\n    known: a", *(f"input {i} is dropped" for i in range(6)), "input 5 is dropped"]
    shown = failure_text(outcome("failed", warnings=warnings))
    assert (
        "  warned … 2 earlier\n"
        "         input 1 is dropped\n"
        "         input 2 is dropped\n"
        "         input 3 is dropped\n"
        "         input 4 is dropped\n"
        "         input 5 is dropped\n"
        "  path   "
    ) in shown
    assert "  warned at load: known: a\n" in failure_text(outcome("failed", warnings=warnings[:1]))


def test_long_names_are_cut(outcome: MakeOutcome, failed_check: MakeCheck) -> None:
    node = "n" * 10_000
    error = {"type": "KeyError", "message": f"no node 'x' (known: {node}, b)", "node": node}
    calls = [{"kind": "tool", "name": node, "node": f"{node}/inner", "args": {node: 1}}]
    for verdict in ("failed", "error"):
        checks = [failed_check(node, f"expected b, was {node} and then c")]
        failed = outcome(verdict, checks=checks, error=error, path=[node, [node, "b"]], calls=calls)
        shown = failure_text(failed)
        assert max(map(len, shown.splitlines())) < 300
        assert f"path   {'n' * 59}… → [{'n' * 59}…, b]\n" in shown
        assert "… and then c\n" in shown
        assert len(failed_checks(failed)) < 300


def test_run_that_only_exceeded_its_latency_names_it(outcome: MakeOutcome) -> None:
    assert failed_checks(outcome("failed", latency_penalty=0.04)) == "latency.total"


def test_only_the_end_of_a_long_path_is_shown(outcome: MakeOutcome) -> None:
    shown = failure_text(outcome("failed", path=[f"n{i}" for i in range(100)]))
    assert "  path   … 70 steps → n70 → n71 →" in shown
    assert shown.count("→") == 30


def test_no_control_character_reaches_the_terminal(outcome: MakeOutcome, failed_check: MakeCheck) -> None:
    evil = "\x1b]0;owned\x07"
    failed = outcome(
        "failed",
        scenario=evil,
        checks=[failed_check(evil, evil)],
        error={"type": evil, "message": evil, "node": evil},
        path=[evil],
        calls=[{"kind": evil, "name": evil, "node": evil, "args": {evil: evil}}],
    )
    shown = failure_text(failed)
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\\x1b]0;owned" in shown


def test_location_of_an_invalid_file_is_shown_once(outcome: MakeOutcome) -> None:
    place = "a.scenario.yaml:9:15"
    error = {
        "type": "FormatError",
        "code": "unknown-name",
        "message": f"{place}: never names 'payy', but 'x' has no such node",
        "where": place,
    }
    shown = failure_text(outcome("error", error=error, path=[]))
    assert "    never names 'payy', but 'x' has no such node\n    at a.scenario.yaml:9:15\n" in shown
    assert shown.count(place) == 1


@pytest.mark.parametrize("code", ["real-timeout", "worker-died"])
def test_path_of_a_killed_run_is_unknown(outcome: MakeOutcome, code: str) -> None:
    error = {"type": "RealTimeExceeded", "code": code, "message": "…", "node": "n"}
    assert "  path   (not known)\n" in failure_text(outcome("error", error=error, path=[]))
