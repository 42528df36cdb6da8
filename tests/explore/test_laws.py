"""The causes of failures: what counts as one finding, whatever was drawn."""

from typing import Any

from harness.explore.laws import failure
from harness.scenario.outcome import Observation


def key(type_: str, message: str, *, line: int | None = None, calls: tuple[tuple[str, str], ...] = ()) -> str:
    """Return the key of a failure of the node `ask`, in a line of the user's code if there is one."""
    frames = [{"file": "app.py", "line": line, "function": "ask", "source": "", "raised": ""}] if line else []
    error: dict[str, Any] = {
        "type": type_,
        "code": None,
        "message": message,
        "node": "ask",
        "where": "a.yaml:3:1",
    }
    observed = Observation(status="failed", error={**error, "traceback": frames})
    observed.calls = [{"kind": "llm", "node": node, "ok": False, "reason": reason} for node, reason in calls]
    return failure(observed).key


def test_values_that_a_message_found_do_not_split_a_finding() -> None:
    text = "output 'days': expected a value of type object, found "
    assert key("UnfitValue", f"{text}the number 5") == key("UnfitValue", f"{text}nothing (null)")


def test_a_hint_does_not_split_a_finding() -> None:
    assert key("NoRoute", "no edge has the label 'x'; did you mean 'y'?") == key(
        "NoRoute", "no edge has the label ''"
    )


def test_a_remark_does_not_split_a_finding() -> None:
    text = "'a' and 'b' wrote field {}, which has no reducer{}; declare it"
    assert key("InvalidUpdateError", text.format("'count'", "")) == key(
        "InvalidUpdateError", text.format("'weather'", " (nor has 'count')")
    )


def test_faults_of_a_node_are_one_finding_whatever_the_client_makes_of_them() -> None:
    limit = key(
        "OpenAIRateLimitError", "Error code: 429", line=7, calls=(("ask", "429 rate limit exceeded"),)
    )
    late = key("OpenAITimeoutError", "Request timed out.", line=9, calls=(("ask", "request timed out"),))
    tried = key("ModelCallError", "the call failed after 3 attempts: Connection refused")
    assert limit == late == tried


def test_a_failure_of_the_code_beside_a_fault_is_one_of_its_own() -> None:
    calls = (("ask", "request timed out"),)
    assert key("ValueError", "invalid literal", line=9, calls=calls) == key("ValueError", "invalid", line=9)
    assert key("SomeError", "no", line=9, calls=(("other", "request timed out"),)) == key(
        "SomeError", "", line=9
    )


def test_a_loop_is_one_finding_whatever_else_its_rounds_visit() -> None:
    error = {"type": "EndlessLoop", "code": "endless-loop", "message": "", "node": None, "where": None}

    def loop(*path: str) -> str:
        observed = Observation(status="failed", error={**error, "traceback": []}, visits={"start": 1})
        observed.visits.update(dict.fromkeys(path, 9))
        return failure(observed).key

    assert loop("ask", "answer") == loop("ask", "search", "answer") != loop("search", "answer")


def test_what_an_expression_reads_in_vain_is_one_finding_at_its_place() -> None:
    def at(message: str) -> str:
        error = {"type": "ExpressionError", "code": "expression", "message": message, "node": "ask"}
        return failure(
            Observation(status="failed", error={**error, "where": "a.yaml:3:9", "traceback": []})
        ).key

    assert at("no field 'm' in a value of type bool in b.m") == at("no such key: 'm' in b.m")


def test_a_limit_of_visits_is_a_run_without_an_end() -> None:
    error = {"type": "VisitLimit", "code": "visit-limit", "message": "", "node": "ask", "where": "g.yaml:3:1"}
    observed = Observation(status="failed", error={**error, "traceback": []}, visits={"ask": 3})
    assert (failure(observed).type, failure(observed).about) == ("endless", "ask")
