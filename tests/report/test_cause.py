"""Causes of failures are shown, and their consequences are only named."""

from typing import Any

import pytest

from harness.report.cause import fault, reasons
from harness.report.failure import failure_text
from harness.report.formatting import path_text
from tests.report.fixtures import MakeCheck, MakeOutcome

UNSCRIPTED = {"type": "UnscriptedCall", "code": "unscripted-call", "message": "nothing answers", "node": "b"}
BROKEN_CODE: dict[str, Any] = {
    "type": "KeyError",
    "code": None,
    "message": "'C3'",
    "node": "unpack",
    "where": "flow.yaml:3:5",
    "traceback": [
        {"file": "mine.py", "line": 4, "function": "unpack", "source": "table[x]", "raised": "KeyError"}
    ],
}


def names(checks: Any) -> list[str]:
    return [check.name for check in checks]


def test_error_that_ends_the_run_is_the_cause_of_failed_checks(
    outcome: MakeOutcome, failed_check: MakeCheck
) -> None:
    checks = [failed_check("status"), failed_check("state"), failed_check("calls")]
    failed = outcome("error", status="failed", error=UNSCRIPTED, checks=checks)
    shown = failure_text(failed)
    assert shown.index("UnscriptedCall (unscripted-call) in b") < shown.index(
        "  and 3 checks that follow from it: status, state, calls\n"
    )
    assert "expected b, was c" not in shown


def test_forbidden_node_is_no_consequence_of_an_error(outcome: MakeOutcome, failed_check: MakeCheck) -> None:
    checks = [failed_check("status"), failed_check("never"), failed_check("usage"), failed_check("output")]
    why = reasons(outcome("failed", status="failed", error=BROKEN_CODE, checks=checks))
    assert (why.is_error, names(why.checks), names(why.consequences)) == (
        True,
        ["never", "usage"],
        ["status", "output"],
    )


@pytest.mark.parametrize(
    ("ran", "follows"), [(["a", "b"], True), (["a", ["c", "b"]], True), (["a", "x"], False)]
)
def test_path_that_matched_until_the_error_is_a_consequence(
    outcome: MakeOutcome, failed_check: MakeCheck, ran: list[Any], follows: bool
) -> None:
    expected = ["a", ["b", "c"], "d"] if isinstance(ran[1], list) else ["a", "b", "d"]
    checks = [failed_check("status"), failed_check("path", expected=expected, actual=ran)]
    why = reasons(outcome("failed", status="failed", error=BROKEN_CODE, checks=checks))
    assert ("path" in names(why.consequences)) is follows


def test_path_of_a_loop_is_a_consequence_and_its_cycle_is_shown_once(
    outcome: MakeOutcome, failed_check: MakeCheck
) -> None:
    loop = {
        "type": "EndlessLoop",
        "code": "endless-loop",
        "message": "it went round",
        "where": "flow.yaml:9:5",
    }
    path = ["offer", *["refuse"] * 27]
    checks = [failed_check("status"), failed_check("path", expected=["offer", "pay"], actual=path)]
    shown = failure_text(outcome("failed", status="failed", error=loop, path=path, checks=checks))
    assert "    at flow.yaml:9:5\n" in shown
    assert "and 2 checks that follow from it: status, path\n" in shown
    assert "  path   offer → refuse → refuse × 26\n" in shown


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ([], "(no node ran)"),
        (["a", "a"], "a → a"),
        (["a", "b", "c", "b", "c", "b", "c", "d"], "a → (b → c → b) × 2 → c → d"),
        ([["a", "b"], ["a", "b"], ["a", "b"], "c"], "[a, b] → [a, b] × 2 → c"),
        (["a", "a", "a", "b", "b", "b"], "a → a × 2 → b → b × 2"),
    ],
)
def test_path_shows_a_cycle_once(path: list[Any], shown: str) -> None:
    assert path_text(path) == shown


def test_failed_checks_of_earlier_turns_are_causes(outcome: MakeOutcome, failed_check: MakeCheck) -> None:
    checks = [failed_check("turn 1: state"), failed_check("turn 2: status"), failed_check("turn 2: state")]
    why = reasons(outcome("failed", status="failed", error=BROKEN_CODE, checks=checks))
    assert names(why.checks) == ["turn 1: state"]


def test_turn_that_did_not_pause_is_the_cause_if_the_next_cannot_resume(
    outcome: MakeOutcome, failed_check: MakeCheck
) -> None:
    error = {"type": "NotInterrupted", "code": "not-interrupted", "message": "nothing to resume"}
    checks = [failed_check(name) for name in ("turn 1: status", "turn 2: status", "turn 2: output", "status")]
    why = reasons(outcome("failed", status="failed", error=error, checks=checks))
    assert (why.is_error, names(why.checks)) == (False, ["turn 1: status"])


def test_unexpected_pause_is_a_cause(outcome: MakeOutcome, failed_check: MakeCheck) -> None:
    checks = [failed_check("status", "expected completed, was interrupted"), failed_check("output")]
    shown = failure_text(outcome("failed", status="interrupted", checks=checks))
    assert "expected completed, was interrupted\n  and 1 check that follows from it: output\n" in shown


def test_checks_that_restate_a_wrong_path_are_consequences(
    outcome: MakeOutcome, failed_check: MakeCheck
) -> None:
    checks = [failed_check("unused"), failed_check("path"), failed_check("routes"), failed_check("state")]
    why = reasons(outcome("failed", checks=checks))
    assert (names(why.checks), names(why.consequences)) == (["path", "state"], ["routes", "unused"])


def test_checks_that_could_not_be_evaluated_come_first(outcome: MakeOutcome, failed_check: MakeCheck) -> None:
    checks = [failed_check("state"), failed_check("mine", "cannot be evaluated: no key x", broken=True)]
    assert names(reasons(outcome("error", checks=checks)).checks) == ["mine", "state"]


def test_full_detail_lists_every_check(outcome: MakeOutcome, failed_check: MakeCheck) -> None:
    frames = [BROKEN_CODE["traceback"][0] | {"file": "langgraph/pregel.py", "own": False}]
    failed = outcome(
        "failed", status="failed", error=BROKEN_CODE, frames=frames, checks=[failed_check("status")]
    )
    assert "langgraph/pregel.py:4 in unpack" in failure_text(failed, "full")
    assert "    expected b, was c" in failure_text(failed, "full")
    usual = failure_text(failed)
    assert "    mine.py:4 in unpack\n      table[x]\n" in usual
    assert "langgraph" not in usual


def test_runs_with_the_same_error_have_the_same_fault(outcome: MakeOutcome) -> None:
    missing = UNSCRIPTED | {
        "code": "world",
        "message": "no module 'no', record a double charge",
        "where": "a:1:1",
    }
    one = outcome("error", status="failed", error=missing)
    other = outcome(
        "error",
        status="failed",
        scenario="another",
        error=missing | {"message": "no module 'no', record another", "where": "b:2:1"},
    )
    assert fault(one) == fault(other) != ""
    assert fault(one) != fault(
        outcome("error", status="failed", error=missing | {"message": "no module 'so'"})
    )


def test_run_with_causes_of_its_own_has_no_fault(outcome: MakeOutcome, failed_check: MakeCheck) -> None:
    assert fault(outcome("failed", checks=[failed_check("state")])) == ""
    assert fault(outcome("failed", status="failed", error=BROKEN_CODE, checks=[failed_check("never")])) == ""
    assert fault(outcome("passed", status="failed", error=BROKEN_CODE)) == ""
