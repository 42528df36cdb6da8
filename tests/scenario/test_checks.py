"""Each row of the table "Expectations" of docs/scenario-format.md: when it holds, and its score when not."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Span
from harness.scenario.checks import CHECKS, Gate, run_checks
from harness.scenario.model import Expectations
from harness.scenario.outcome import Judged, Observed

FORMAT = Path(__file__).parents[2] / "docs" / "scenario-format.md"


def call(kind: Any, name: Any, node: Any = "agent", args: Any = None, ok: Any = True) -> Any:
    return {"kind": kind, "name": name, "node": node, "args": args or {}, "ok": ok, "latency": 0.0}


WEATHER = [
    call("llm", "gpt-4o-mini"),
    call("tool", "get_weather", args={"city": "Paris", "days": 3}),
    call("tool", "get_weather", node="outer/agent", args={"city": "London"}, ok=False),
    call("llm", "gpt-4o-mini"),
]

REFUSED = {
    **call("tool", "get_weather", node="tools", args={"days": "many"}, ok=False),
    "reason": "days: not a number",
    "refused": True,
}


def ran(*path: Any, **more: Any) -> Any:
    return Observed(path=list(path), **more)


def checked(key: Any, expected: Any, observed: Any, **options: Any) -> Any:
    """The one result of one key."""
    results = run_checks(Expectations({key: expected, **options}), observed, default_status=observed.status)
    (result,) = [one for one in results if one.name.partition("[")[0] == key]
    return result


# key, expected, observed, score
ROWS = [
    ("status", "failed", Observed(status="failed"), 1),
    ("status", {"$in": ["failed", "timeout"]}, Observed(status="timeout"), 1),
    ("status", "completed", Observed(status="interrupted"), 0),
    ("unused", [], Observed(), 1),
    ("unused", [], Observed(unused=["llm stub of answer (a.yaml:3:5)"]), 0),
    # the way
    ("path", ["a", "b"], ran("a", "b"), 1),
    ("path", [], ran(), 1),
    ("path", ["a", ["c", "b"], "d"], ran("a", ["b", "c"], "d"), 1),
    ("path", ["a", ["b", "b"]], ran("a", ["b", "b"]), 1),
    ("path", [["a"], "b"], ran("a", "b"), 1),
    ("path", ["a", "b"], ran("b", "a"), 1 / 2),
    ("path", ["a", "b", "c"], ran("a", "c"), 2 / 3),
    ("path", ["a", "c"], ran("a", "b", "c", "d"), 2 / 4),
    ("path", ["a", "b", "c", "d"], ran("a", ["b", "c"], "d"), 2 / 4),
    ("path", ["a", ["b", "c"], "d"], ran("a", "b", "c", "d"), 2 / 4),
    ("path", ["a", ["b", "b"]], ran("a", ["b", "c"]), 1 / 2),
    ("path", [], ran("a"), 0),
    ("path", ["a"], ran(), 0),
    ("path_includes", ["a", "c"], ran("a", "b", "c"), 1),
    ("path_includes", ["a", "c"], ran("a", ["b", "c"]), 1),
    ("path_includes", [], ran("a"), 1),
    ("path_includes", ["c", "a"], ran("a", "b", "c"), 1 / 2),
    ("path_includes", ["a", "x", "y"], ran("a", "b"), 1 / 3),
    ("visits", {"a": 2, "x": 0}, ran(visits={"a": 2}), 1),
    ("visits", {"a": {"$gte": 2}}, ran(visits={"a": 3}), 1),
    ("visits", {"a": 2, "b": 1}, ran(visits={"a": 1, "b": 1}), 1 / 2),
    ("max_visits", {"a": 2, "x": 0}, ran(visits={"a": 1}), 1),
    ("max_visits", {"a": 2, "b": 2, "c": 2}, ran(visits={"a": 3, "b": 2}), 2 / 3),
    ("never", ["x"], ran("a", ["b", "c"]), 1),
    ("never", ["x", "c"], ran("a", ["b", "c"]), 0),
    ("routes", [{"from": "a", "to": "__end__"}], ran(routes=[["a", "b"], ["a", "__end__"]]), 1),
    ("routes", [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}], ran(routes=[["a", "b"]]), 1 / 2),
    # what it produced
    ("state", {"intent": "billing"}, Observed(state={"intent": "billing", "n": 1}), 1),
    ("state", {"intent": "billing", "n": {"$gt": 0}}, Observed(state={"intent": "refund", "n": 1}), 1 / 2),
    ("state", {"intent": "billing"}, Observed(state=None), 0),
    ("output", "done", Observed(output="done"), 1),
    ("output", None, Observed(), 1),
    ("output", {"a": {"b": 1, "c": 2}, "d": 3}, Observed(output={"a": {"b": 1}, "d": 4}), 1 / 3),
    ("state_schema", {"required": ["a"]}, Observed(state={"a": 1}), 1),
    ("state_schema", {"required": ["a"]}, Observed(state={}), 0),
    ("output_schema", {"type": "string", "minLength": 2}, Observed(output="ab"), 1),
    ("output_schema", {"type": "string", "minLength": 2}, Observed(output="a"), 0),
    # what it asked of the world
    ("calls", [{"llm": "gpt-*"}, {"tool": "get_weather", "args": {"city": "London"}}], Observed(calls=WEATHER), 1),
    ("calls", [{"tool": "*", "ok": False, "node": "agent"}], Observed(calls=WEATHER), 1),
    ("calls", [{"tool": "*", "node": "outer/*"}], Observed(calls=WEATHER), 1),
    ("calls", [{"tool": "*", "args": {"days": {"$gt": 2}}}], Observed(calls=WEATHER), 1),
    ("calls", [{"mcp": "get_weather"}], Observed(calls=WEATHER), 0),
    ("calls", [{"tool": "*", "node": "other/agent"}], Observed(calls=WEATHER), 0),
    ("calls", [{"tool": "*", "args": {"city": "Rome"}}, {"llm": "*"}], Observed(calls=WEATHER), 1 / 2),
    ("calls", [{"tool": "*", "args": {"city": c}} for c in ("London", "Paris")], Observed(calls=WEATHER), 1 / 2),
    ("calls", [{"llm": "gpt"}] * 3, Observed(calls=[call("llm", "openai/gpt")] * 2), 2 / 3),
    ("calls", [{"http": "https://x.org/*"}], Observed(calls=[call("http", "https://x.org/a/b?c=1")]), 1),
    ("calls", [{"http": "https://x.org/a?c=[1]"}], Observed(calls=[call("http", "https://x.org/a?c=[1]")]), 1),
    ("calls", [{"human": "ask"}], Observed(calls=[call("human", "outer/ask", node="outer/ask")]), 1),
    ("never_calls", [{"mcp": "*"}, {"tool": "get_weather", "args": {"city": "Rome"}}], Observed(calls=WEATHER), 1),
    ("never_calls", [{"mcp": "*"}, {"tool": "*", "args": {"city": "Paris"}}], Observed(calls=WEATHER), 0),
    ("calls", [{"tool": "get_weather", "ok": False, "args": {"days": "many"}}], Observed(calls=[REFUSED]), 1),
    ("calls", [{"tool": "get_weather"}], Observed(calls=[REFUSED]), 0),
    ("never_calls", [{"tool": "get_weather"}], Observed(calls=[REFUSED]), 0),
    ("never_calls", [{"tool": "get_weather", "ok": True}], Observed(calls=[REFUSED]), 1),
    ("call_counts", {"tool": 0}, Observed(calls=[REFUSED]), 1),
    ("call_counts", {"llm": 2, "tool:get_*": 2, "tool:x": 0, "mcp": 0}, Observed(calls=WEATHER), 1),
    ("call_counts", {"llm": {"$lte": 3}}, Observed(calls=WEATHER), 1),
    ("call_counts", {"llm": 3, "tool:get_weather": 2}, Observed(calls=WEATHER), 1 / 2),
    # how it ended
    ("error", {"type": "ValueError", "node": "b"}, Observed(error={"type": "ValueError", "node": "a/b"}), 1),
    ("error", {"message": {"$contains": "bad"}}, Observed(error={"type": "E", "message": "a bad day"}), 1),
    ("error", {"message": "bad"}, Observed(error={"type": "E", "message": "a bad day"}), 0),
    ("error", {"type": "E", "message": "x", "node": "y"}, Observed(error={"type": "E", "message": "x"}), 2 / 3),
    ("error", {"type": "E"}, Observed(), 0),
    ("error", {}, Observed(), 0),
    ("error", {}, Observed(error={"type": "E"}), 1),
    ("error", None, Observed(), 1),
    ("interrupt", "approve?", Observed(interrupts=["approve?"]), 1),
    ("interrupt", {"question": {"$contains": "sure"}}, Observed(interrupts=[{"question": "sure?", "id": 1}]), 1),
    ("interrupt", ["a", "b"], Observed(interrupts=["a", "b"]), 1),
    ("interrupt", ["a", "b"], Observed(interrupts=[["a", "b"]]), 1),
    ("interrupt", ["a", "b"], Observed(interrupts=["a"]), 1 / 2),
    ("interrupt", "a", Observed(interrupts=["a", "b"]), 1 / 2),
    ("interrupt", "a", Observed(), 0),
    ("warnings", ["careful", {"$contains": "slow"}], Observed(warnings=["careful", "a slow node"]), 1),
    ("warnings", ["care", {"$contains": "slow"}], Observed(warnings=["careful", "a slow node"]), 1 / 2),
    ("never_warnings", [{"$contains": "fast"}], Observed(warnings=["a slow node"]), 1),
    ("never_warnings", [{"$contains": "slow"}, "x"], Observed(warnings=["a slow node"]), 0),
    # what it cost
    ("latency", {"nodes": {"a": 0.3, "x": 0}}, Observed(latency={"total": 9.0, "nodes": {"a": 0.1 + 0.2}}), 1),
    ("latency", {"nodes": {"a": 1, "b": 1}}, Observed(latency={"total": 3.0, "nodes": {"a": 1, "b": 2}}), 1 / 2),
    ("usage", {"input_tokens": 10, "cost": 0.3}, Observed(usage={"input_tokens": 10, "cost": 0.1 + 0.2}), 1),
    ("usage", {"llm_calls": 1, "output_tokens": 5}, Observed(usage={"llm_calls": 2, "output_tokens": 5}), 1 / 2),
    # in words of its own
    ("checks", [{"that": "state.count > 2"}], Observed(state={"count": 3}), 1),
    ("checks", [{"that": "state.count > 2"}], Observed(state={"count": 2}), 0),
    ("checks", [{"that": "latency.total < 2.5"}], Observed(latency={"total": 2, "nodes": {}}), 1),
    ("checks", [{"that": "latency.nodes.a == 2.0"}], Observed(latency={"total": 2, "nodes": {"a": 2}}), 1),
    ("checks", [{"that": "path[0] == 'a' && visits.a == 1"}], ran("a", visits={"a": 1}), 1),
    ("checks", [{"that": "calls.filter(c, c.kind == 'llm').size() == 2"}], Observed(calls=WEATHER), 1),
    ("checks", [{"that": "usage.llm_calls == 0 && usage.cost < 0.5 && output == 'x'"}], Observed(output="x"), 1),
    ("checks", [{"that": "error == null"}], Observed(), 1),
    ("checks", [{"that": "error.type == 'E'"}], Observed(error={"type": "E"}), 1),
    ("judge", [{"rubric": "r", "model": "m"}], Observed(grades={"0": (0.5, "fine")}), 1),
    ("judge", [{"rubric": "r", "model": "m"}], Observed(grades={"0": (0.4, "thin")}), 0.4),
    ("judge", [{"rubric": "r", "model": "m", "threshold": 0.9}], Observed(grades={"0": (0.8, "good")}), 0.8),
    ("judge", [{"rubric": "r", "model": "m"}], Observed(grades={"0": (7, "")}), 1),
    ("judge", [{"rubric": "r", "model": "m"}], Observed(grades={"0": (float("nan"), "")}), 0),
    ("judge", [{"rubric": "r", "model": "m"}], Observed(), 0),
    ("custom", [{"call": "own.check"}], Observed(judged=[Judged(1)]), 1),
    ("custom", [{"call": "own.check"}], Observed(judged=[Judged(0.3, "thin")]), 0.3),
    ("custom", [{"call": "own.check"}], Observed(judged=[Judged(0)]), 0),
    ("custom", [{"call": "own.check"}], Observed(), 0),
]  # fmt: skip


@pytest.mark.parametrize(("key", "expected", "observed", "score"), ROWS)
def test_a_row_scores(key: Any, expected: Any, observed: Any, score: Any) -> None:
    result = checked(key, expected, observed)

    assert result.score == pytest.approx(score)
    assert result.passed == (score == 1)
    assert bool(result.message) == (not result.passed)


def test_no_row_is_untried() -> None:
    assert {key for key, *_ in ROWS} == set(CHECKS)
    assert {key for key, *_, score in ROWS if score == 1} == set(CHECKS)
    assert {key for key, *_, score in ROWS if score < 1} == set(CHECKS)


def test_the_checks_are_those_of_the_format() -> None:
    section = FORMAT.read_text().partition("## Expectations")[2].partition("### Value matchers")[0]
    rows = re.findall(r"^\| `(\w+)`(?:, `(\w+)`)? \|", section, flags=re.MULTILINE)
    named = {key for row in rows for key in row if key}

    assert len(named) > 15
    assert named | {"max_visits", "never_warnings"} == set(CHECKS)


PARIS, LONDON, MODEL = (
    {"tool": "*", "args": {"city": "Paris"}},
    {"tool": "*", "args": {"city": "London"}},
    {"llm": "*"},
)


@pytest.mark.parametrize(
    ("order", "expected", "score"),
    [
        ("in_order", [PARIS, LONDON], 1),
        ("in_order", [LONDON, PARIS], 1 / 2),
        ("any", [LONDON, PARIS], 1),
        ("any", [LONDON, LONDON], 1 / 2),
        ("any", [{"tool": "*"}, PARIS], 1),  # the glob must leave Paris to the other
        ("exact", [MODEL, PARIS, LONDON, MODEL], 1),
        ("exact", [MODEL, LONDON, PARIS, MODEL], 2 * 3 / (4 + 4)),
        ("exact", [PARIS, LONDON], 2 * 2 / (2 + 4)),
        ("exact", [MODEL, PARIS, LONDON, MODEL, MODEL], 2 * 4 / (5 + 4)),
        ("exact", [], 0),
        ("in_order", [], 1),
    ],
)
def test_calls_order(order: Any, expected: Any, score: Any) -> None:
    result = checked("calls", expected, Observed(calls=WEATHER), calls_order=order)

    assert result.score == pytest.approx(score)


def test_exact_calls_of_a_run_without_calls() -> None:
    assert checked("calls", [], Observed(), calls_order="exact").passed


# --- gates, weights, names ---------------------------------------------------------------------------------


def test_status_and_unused_are_checked_though_not_written() -> None:
    results = run_checks(Expectations(), Observed())

    assert [(one.name, one.passed, one.weight) for one in results] == [
        ("status", True, 0),
        ("unused", True, 0),
    ]
    assert all(isinstance(one, Gate) for one in results)


def test_the_expected_status_has_a_default() -> None:
    (result, _) = run_checks(Expectations(), Observed(status="interrupted"), default_status="interrupted")

    assert (result.passed, result.expected) == (True, "interrupted")


def test_leftover_stubs_may_be_allowed() -> None:
    results = run_checks(Expectations(), Observed(unused=["a stub"]), allow_unused=True)

    assert [one.name for one in results] == ["status"]


@pytest.mark.parametrize("weight", [0, 2])
def test_a_gate_with_a_weight_is_an_ordinary_check(weight: Any) -> None:
    expect = Expectations(weights={"status": weight})

    (status, unused) = run_checks(expect, Observed(status="failed"))

    assert (status.weight, isinstance(status, Gate), status.passed) == (weight, False, False)
    assert isinstance(unused, Gate)


def test_items_of_checks_are_checks_of_their_own() -> None:
    span = Span("a.yaml", 3, 5)
    items = [{"that": "true", "name": "yes", "weight": 3}, {"that": "false"}]
    expect = Expectations(
        {"checks": items}, {"checks": 2}, {"checks": span, "checks[1]": Span("a.yaml", 4, 5)}
    )

    results = run_checks(expect, Observed())[2:]

    assert [(one.name, one.weight, one.passed) for one in results] == [
        ("yes", 3, True),
        ("checks[1]", 2, False),
    ]
    assert [one.span and one.span.line for one in results] == [3, 4]


def test_each_judge_has_its_own_grade() -> None:
    items = [{"rubric": "kind", "model": "m"}, {"rubric": "short", "model": "m"}]

    results = run_checks(
        Expectations({"judge": items}), Observed(grades={"0": (1, "yes"), "1": (0.2, "long")})
    )

    assert [one.score for one in results[2:]] == [1, 0.2]
    assert results[3].message == "grade 0.2 is below 0.5: long"
    assert results[3].actual == {"grade": 0.2, "reason": "long"}


def test_a_total_latency_is_no_check() -> None:
    results = run_checks(Expectations({"latency": {"total": 1}}), Observed(latency={"total": 9, "nodes": {}}))

    assert [one.name for one in results] == ["status", "unused"]


def test_results_come_in_the_order_of_the_table_however_they_are_written() -> None:
    keys = ["state", "path", "output"]

    results = run_checks(Expectations(dict.fromkeys(keys)), Observed())

    assert [one.name for one in results] == ["status", "unused", "path", "state", "output"]


# --- what goes wrong with a check --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "expected", "message"),
    [
        ("state", {"a": {"$regex": "("}}, "$regex wants a regular expression"),
        ("state_schema", {"type": "text"}, "not a JSON Schema"),
        ("visits", 3, "check broke: "),
        ("routes", ["a"], "check broke: "),
        ("pathh", ["a"], "there is no check pathh"),
    ],
)
def test_a_check_that_breaks_is_a_failed_check(key: Any, expected: Any, message: Any) -> None:
    result = checked(key, expected, Observed(state={"a": "x"}))

    assert (result.passed, result.score) == (False, 0)
    assert result.message.startswith(message)


@pytest.mark.parametrize(
    ("key", "expected", "message"),
    [
        ("checks", [{"that": "state.count"}], "state.count is 2, neither true nor false"),
        ("checks", [{"that": "state.other > 2"}], "state.other > 2: no such key: 'other' in state.other"),
        ("checks", [{"that": "state.count == 'x'.foo"}], "state.count == 'x'.foo: no field 'foo'"),
        ("state", {"count": {"$cel": "value.x > 1"}}, "count: $cel: value.x > 1: no field 'x'"),
        ("state", {"count": {"$not": {"$cel": "value.x > 1"}}}, "count: $cel: value.x > 1: no field 'x'"),
        ("never_calls", [{"tool": "*", "args": {"days": {"$cel": "value.x"}}}], "days: $cel: value.x"),
        ("calls", [{"tool": "*", "args": {"days": {"$cel": "value.x"}}}], "days: $cel: value.x"),
    ],
)
def test_a_check_that_says_nothing_of_the_run_is_broken(key: Any, expected: Any, message: Any) -> None:
    result = checked(key, expected, Observed(state={"count": 2}, calls=WEATHER))

    assert (result.broken, result.passed, result.score) == (True, False, 0)
    assert result.message.startswith(f"cannot be evaluated: {message}")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("checks", [{"that": "has(state.other) ? state.other > 2 : true"}]),
        ("state", {"other": {"$missing": True}}),
        ("calls", [{"tool": "*", "args": {"city": {"$cel": "value == 'Paris'"}}}]),
    ],
)
def test_what_may_be_absent_is_asked_for(key: Any, expected: Any) -> None:
    assert checked(key, expected, Observed(state={"count": 2}, calls=WEATHER)).passed


def test_an_unknown_order_of_calls_is_a_failed_check() -> None:
    assert checked("calls", [], Observed(), calls_order="strict").message.startswith("check broke: ")


# --- what is told ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "expected", "observed", "message"),
    [
        (
            "status",
            "completed",
            Observed(status="failed", error={"type": "ValueError", "message": "no", "node": "b"}),
            "expected completed, was failed: ValueError: no (node b)",
        ),
        (
            "status",
            "completed",
            ran("a", "b", status="interrupted", interrupts=["first", {"question": "Why?", "options": ["x"]}]),
            "expected completed, was interrupted: paused in b, asking: {question: 'Why?', options: [x]}\n"
            "  answer under `human: {b: …}`, or in a turn with `resume`",
        ),
        (
            "status",
            "completed",
            ran(latency={"nodes": {"a": 1, "b": 2}}, routes=[["a", "c"]], status="interrupted", interrupts=["b"]),
            "expected completed, was interrupted: paused in b\n"
            "  answer under `human: {b: …}`, or in a turn with `resume`",
        ),
        (
            "status",
            "completed",
            ran("a", "b", ["a", "c"], routes=[["a", "b"], ["b", "a"], ["b", "c"], ["c", "d"]],
                status="interrupted", interrupts=[1]),
            "expected completed, was interrupted: paused in a, asking: 1\n"
            "  answer under `human: {a: …}`, or in a turn with `resume`",
        ),
        (
            "status",
            "completed",
            ran("n" * 10_000, status="interrupted", interrupts=["v" * 10_000]),
            f"expected completed, was interrupted: paused in {'n' * 59}…, asking: {'v' * 99}…\n"
            f"  answer under `human: {{{'n' * 59}…: …}}`, or in a turn with `resume`",
        ),
        (
            "path",
            ["a", "b", "d"],
            ran("a", ["b", "c"], "d"),
            "step 2: expected b, was [b, c]\n  expected  a → b → d\n  ran       a → [b, c] → d",
        ),
        ("path", ["a"], ran("a", "b"), "step 2: expected the end, was b\n  expected  a\n  ran       a → b"),
        ("path", ["a"], ran(), "step 1: expected a, was the end\n  expected  a\n  ran       nothing"),
        ("path_includes", ["b", "x"], ran("a", "b"), "not found in this order: x\n  ran  a → b"),
        ("visits", {"a": 2}, ran(visits={"a": 1}), "a: expected 2, was 1"),
        ("max_visits", {"a": 2}, ran(visits={"a": 3}), "a: expected at most 2, was 3"),
        ("never", ["a", "b"], ran("a", "c"), "ran: a"),
        ("routes", [{"from": "a", "to": "b"}], ran(routes=[["a", "c"]]), "a → b was not taken; it led to c"),
        ("state", {"a": 1, "b": 2}, Observed(state={"a": 2}), "a: expected 1, was 2\nb: expected 2, was nothing"),
        (
            "calls",
            [{"tool": "get_*", "args": {"city": "Rome"}}],
            Observed(calls=WEATHER[:2]),
            "not found: {tool: get_*, args: {city: Rome}}\n"
            "  nearest: tool get_weather from agent {city: Paris, days: 3}\n"
            "    args.city: expected Rome, was Paris",
        ),
        (
            "calls",
            [{"tool": "get_weather", "args": {"city": "Rome"}}],
            Observed(calls=[REFUSED, call("tool", "get_wether", args={"city": "Rome"}), call("llm", "m")]),
            "not found: {tool: get_weather, args: {city: Rome}}\n"
            "  nearest: tool get_weather from tools {days: many}\n"
            "    it was refused: days: not a number\n"
            "    args.city: expected Rome, was nothing",
        ),
        (
            "calls",
            [{"tool": "get_weather", "args": {"city": "Rome"}}],
            Observed(calls=[call("tool", "get_wether", args={"city": "Oslo"}), call("tool", "x")]),
            "not found: {tool: get_weather, args: {city: Rome}}\n"
            "  nearest: tool get_wether from agent {city: Oslo}\n"
            "    tool: expected get_weather, was get_wether\n"
            "    args.city: expected Rome, was Oslo",
        ),
        (
            "calls",
            [{"tool": "ask"}],
            Observed(calls=[call("mcp", "ask")]),
            "not found: {tool: ask}\n  nearest: mcp ask from agent {}\n    expected a call of kind tool, was mcp",
        ),
        (
            "calls",
            [{"tool": "a", "args": {"n": n}} for n in (1, 2)],
            Observed(calls=[call("tool", "a", args={"n": 1}), call("tool", "a", args={"n": 3, "m": 2})]),
            "not found: {tool: a, args: {n: 2}}\n"
            "  nearest: tool a from agent {n: 3, m: 2}\n"
            "    args.n: expected 2, was 3",
        ),
        ("calls", [{"tool": "a"}], Observed(calls=[call("llm", "m")]), "not found: {tool: a}"),
        (
            "never_calls",
            [{"tool": "get_weather"}],
            Observed(calls=[REFUSED]),
            "was asked for, and refused: tool get_weather from tools {days: many}",
        ),
        ("call_counts", {"tool:x": 1}, Observed(), "tool:x: expected 1, was 0"),
        ("interrupt", ["a", "b"], Observed(interrupts=["a"]), "pause 2: expected b, was nothing"),
        ("warnings", ["b"], Observed(warnings=["ab"]), "no warning b\n  raised: ab"),
        ("usage", {"input_tokens": 123456789}, Observed(usage={"input_tokens": 123456790}),
         "input_tokens: expected at most 123456789, was 123456790"),
        ("latency", {"nodes": {"a": 1}}, Observed(latency={"nodes": {"a": 1.5}}),
         "a: expected at most 1 s, was 1.5 s"),
        (
            "checks",
            [{"that": "state.count > 2"}],
            Observed(state={"count": 1}),
            "state.count > 2 is false\n  state.count = 1",
        ),
    ],
)  # fmt: skip
def test_a_failed_check_says(key: Any, expected: Any, observed: Any, message: Any) -> None:
    assert checked(key, expected, observed).message == message


def test_a_long_path_is_shown_around_its_first_difference() -> None:
    expected = [f"n{i}" for i in range(40)]

    message = checked("path", expected, ran(*expected[:20], "x", *expected[21:])).message

    assert message.startswith("step 21: expected n20, was x\n")
    assert "… → n12 → " in message
    assert " → n19 → x → n21 → " in message
    assert " → n28 → …" in message


def test_actual_values_are_those_asked_for_and_cut() -> None:
    state = {"long": "x" * 9000, "list": list(range(900)), "other": 1}

    actual = checked("state", {"long": {"$len": 9000}, "list": {"$len": 900}}, Observed(state=state)).actual

    assert actual["long"] == "x" * 500 + "… (9000 characters)"
    assert (len(actual["list"]), actual["list"][-1]) == (51, "… 850 more")
    assert "other" not in actual


# --- laws --------------------------------------------------------------------------------------------------

names = st.sampled_from("abcd")
paths = st.lists(names | st.lists(names, min_size=2, max_size=3), max_size=6)
calls = st.lists(
    st.builds(
        call, st.sampled_from(["llm", "tool"]), names, args=st.fixed_dictionaries({"n": st.integers(0, 1)})
    ),
    max_size=5,
)
wanted_calls = st.lists(
    st.builds(lambda kind, name, n: {kind: name, "args": {"n": n}},
              st.sampled_from(["llm", "tool"]), names | st.just("*"), st.integers(0, 1)),
    max_size=4,
)  # fmt: skip


def multisets(path: Any) -> Any:
    return [sorted(step) for step in path]


@given(paths, paths)
def test_law_the_path_scores_one_exactly_when_equal(expected: Any, actual: Any) -> None:
    result = checked("path", expected, ran(*actual))

    assert 0 <= result.score <= 1
    assert (result.score == 1) == (multisets(expected) == multisets(actual))
    assert result == checked("path", expected, ran(*actual))


@given(paths)
def test_law_the_order_within_a_superstep_is_irrelevant(path: Any) -> None:
    turned = [step[::-1] for step in path]

    assert checked("path", turned, ran(*path)).passed


@given(wanted_calls, calls)
def test_law_calls_in_any_order_are_found_at_least_as_often_as_in_order(wanted: Any, made: Any) -> None:
    scores = {
        order: checked("calls", wanted, Observed(calls=made), calls_order=order).score
        for order in ("in_order", "any", "exact")
    }

    assert all(0 <= score <= 1 for score in scores.values())
    assert scores["any"] >= scores["in_order"]
    assert scores["exact"] < 1 or scores["in_order"] == 1


@given(calls, st.randoms(use_true_random=False))
def test_law_calls_match_themselves_in_any_order(made: Any, random: Any) -> None:
    wanted = [{one["kind"]: one["name"], "args": one["args"]} for one in made]
    assert checked("calls", wanted, Observed(calls=made), calls_order="exact").passed

    random.shuffle(wanted)
    assert checked("calls", wanted, Observed(calls=made), calls_order="any").passed
