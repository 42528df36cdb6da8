"""Each row of the table "Expectations" of docs/scenario-format.md: when it holds, and its score when not."""

import re
from pathlib import Path
from typing import Any

import pytest

from harness.scenario.document_expect import CHECKS
from harness.scenario.outcome import CustomVerdict, Observation
from tests.scenario.observed import REFUSED, WEATHER, call, checked, ran

FORMAT = Path(__file__).parents[2] / "docs" / "scenario-format.md"

STORED: list[dict[str, Any]] = [
    {"namespace": ["m"], "key": "j", "value": {"a": 3}},
    {"namespace": ["m"], "key": "k", "value": {"a": 1}},
]


# key, expected, observed, score
ROWS = [
    ("status", "failed", Observation(status="failed"), 1),
    ("status", {"$in": ["failed", "timeout"]}, Observation(status="timeout"), 1),
    ("status", "completed", Observation(status="interrupted"), 0),
    ("unused", [], Observation(), 1),
    ("unused", [], Observation(unused=["llm stub of answer (a.yaml:3:5)"]), 0),
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
    ("state", {"intent": "billing"}, Observation(state={"intent": "billing", "n": 1}), 1),
    ("state", {"intent": "billing", "n": {"$gt": 0}}, Observation(state={"intent": "refund", "n": 1}), 1 / 2),
    ("state", {"intent": "billing"}, Observation(state=None), 0),
    ("output", "done", Observation(output="done"), 1),
    ("output", None, Observation(), 1),
    ("output", {"a": {"b": 1, "c": 2}, "d": 3}, Observation(output={"a": {"b": 1}, "d": 4}), 1 / 3),
    ("store", [{"namespace": ["m"], "key": "k", "value": {"a": 1}}], Observation(store=STORED), 1),
    ("store", [{"namespace": ["m"], "value": {"a": {"$gt": 1}}}], Observation(store=STORED), 1),
    ("store", [{"namespace": ["n"], "value": {"$missing": True}}], Observation(store=STORED), 1),
    ("store", [{"namespace": ["m"], "key": "k", "value": {"a": 2}}], Observation(store=STORED), 0),
    ("store", [{"namespace": ["m"], "value": {"$missing": True}}], Observation(store=STORED), 0),
    ("state_schema", {"required": ["a"]}, Observation(state={"a": 1}), 1),
    ("state_schema", {"required": ["a"]}, Observation(state={}), 0),
    ("output_schema", {"type": "string", "minLength": 2}, Observation(output="ab"), 1),
    ("output_schema", {"type": "string", "minLength": 2}, Observation(output="a"), 0),
    # what it asked of the world
    ("calls", [{"llm": "gpt-*"}, {"tool": "get_weather", "args": {"city": "London"}}], Observation(calls=WEATHER), 1),
    ("calls", [{"tool": "*", "ok": False, "node": "agent"}], Observation(calls=WEATHER), 1),
    ("calls", [{"tool": "*", "node": "outer/*"}], Observation(calls=WEATHER), 1),
    ("calls", [{"tool": "*", "args": {"days": {"$gt": 2}}}], Observation(calls=WEATHER), 1),
    ("calls", [{"mcp": "get_weather"}], Observation(calls=WEATHER), 0),
    ("calls", [{"tool": "*", "node": "other/agent"}], Observation(calls=WEATHER), 0),
    ("calls", [{"tool": "*", "args": {"city": "Rome"}}, {"llm": "*"}], Observation(calls=WEATHER), 1 / 2),
    ("calls", [{"tool": "*", "args": {"city": c}} for c in ("London", "Paris")], Observation(calls=WEATHER), 1 / 2),
    ("calls", [{"llm": "gpt"}] * 3, Observation(calls=[call("llm", "openai/gpt")] * 2), 2 / 3),
    ("calls", [{"http": "https://x.org/*"}], Observation(calls=[call("http", "https://x.org/a/b?c=1")]), 1),
    ("calls", [{"http": "https://x.org/a?c=[1]"}], Observation(calls=[call("http", "https://x.org/a?c=[1]")]), 1),
    ("calls", [{"human": "ask"}], Observation(calls=[call("human", "outer/ask", node="outer/ask")]), 1),
    ("never_calls", [{"mcp": "*"}, {"tool": "get_weather", "args": {"city": "Rome"}}], Observation(calls=WEATHER), 1),
    ("never_calls", [{"mcp": "*"}, {"tool": "*", "args": {"city": "Paris"}}], Observation(calls=WEATHER), 0),
    ("calls", [{"tool": "get_weather", "ok": False, "args": {"days": "many"}}], Observation(calls=[REFUSED]), 1),
    ("calls", [{"tool": "get_weather"}], Observation(calls=[REFUSED]), 0),
    ("never_calls", [{"tool": "get_weather"}], Observation(calls=[REFUSED]), 0),
    ("never_calls", [{"tool": "get_weather", "ok": True}], Observation(calls=[REFUSED]), 1),
    ("call_counts", {"tool": 0}, Observation(calls=[REFUSED]), 1),
    ("call_counts", {"llm": 2, "tool:get_*": 2, "tool:x": 0, "mcp": 0}, Observation(calls=WEATHER), 1),
    ("call_counts", {"llm": {"$lte": 3}}, Observation(calls=WEATHER), 1),
    ("call_counts", {"llm": 3, "tool:get_weather": 2}, Observation(calls=WEATHER), 1 / 2),
    # how it ended
    ("error", {"type": "ValueError", "node": "b"}, Observation(error={"type": "ValueError", "node": "a/b"}), 1),
    ("error", {"message": {"$contains": "bad"}}, Observation(error={"type": "E", "message": "a bad day"}), 1),
    ("error", {"message": "bad"}, Observation(error={"type": "E", "message": "a bad day"}), 0),
    ("error", {"type": "E", "message": "x", "node": "y"}, Observation(error={"type": "E", "message": "x"}), 2 / 3),
    ("error", {"type": "E"}, Observation(), 0),
    ("error", {}, Observation(), 0),
    ("error", {}, Observation(error={"type": "E"}), 1),
    ("error", None, Observation(), 1),
    ("interrupt", "approve?", Observation(interrupts=["approve?"]), 1),
    ("interrupt", {"question": {"$contains": "sure"}}, Observation(interrupts=[{"question": "sure?", "id": 1}]), 1),
    ("interrupt", ["a", "b"], Observation(interrupts=["a", "b"]), 1),
    ("interrupt", ["a", "b"], Observation(interrupts=[["a", "b"]]), 1),
    ("interrupt", ["a", "b"], Observation(interrupts=["a"]), 1 / 2),
    ("interrupt", "a", Observation(interrupts=["a", "b"]), 1 / 2),
    ("interrupt", "a", Observation(), 0),
    ("warnings", ["careful", {"$contains": "slow"}], Observation(warnings=["careful", "a slow node"]), 1),
    ("warnings", ["care", {"$contains": "slow"}], Observation(warnings=["careful", "a slow node"]), 1 / 2),
    ("never_warnings", [{"$contains": "fast"}], Observation(warnings=["a slow node"]), 1),
    ("never_warnings", [{"$contains": "slow"}, "x"], Observation(warnings=["a slow node"]), 0),
    # what it cost
    ("latency", {"nodes": {"a": 0.3, "x": 0}}, Observation(latency={"total": 9.0, "nodes": {"a": 0.1 + 0.2}}), 1),
    ("latency", {"nodes": {"a": 1, "b": 1}}, Observation(latency={"total": 3.0, "nodes": {"a": 1, "b": 2}}), 1 / 2),
    ("usage", {"input_tokens": 10, "cost": 0.3}, Observation(usage={"input_tokens": 10, "cost": 0.1 + 0.2}), 1),
    ("usage", {"llm_calls": 1, "output_tokens": 5}, Observation(usage={"llm_calls": 2, "output_tokens": 5}), 1 / 2),
    # in words of its own
    ("checks", [{"that": "state.count > 2"}], Observation(state={"count": 3}), 1),
    ("checks", [{"that": "state.count > 2"}], Observation(state={"count": 2}), 0),
    ("checks", [{"that": "latency.total < 2.5"}], Observation(latency={"total": 2, "nodes": {}}), 1),
    ("checks", [{"that": "latency.nodes.a == 2.0"}], Observation(latency={"total": 2, "nodes": {"a": 2}}), 1),
    ("checks", [{"that": "path[0] == 'a' && visits.a == 1"}], ran("a", visits={"a": 1}), 1),
    ("checks", [{"that": "calls.filter(c, c.kind == 'llm').size() == 2"}], Observation(calls=WEATHER), 1),
    ("checks", [{"that": "usage.llm_calls == 0 && usage.cost < 0.5 && output == 'x'"}], Observation(output="x"), 1),
    ("checks", [{"that": "error == null"}], Observation(), 1),
    ("checks", [{"that": "error.type == 'E'"}], Observation(error={"type": "E"}), 1),
    ("judge", [{"rubric": "r", "model": "m"}], Observation(grades={"0": (0.5, "fine")}), 1),
    ("judge", [{"rubric": "r", "model": "m"}], Observation(grades={"0": (0.4, "thin")}), 0.4),
    ("judge", [{"rubric": "r", "model": "m", "threshold": 0.9}], Observation(grades={"0": (0.8, "good")}), 0.8),
    ("judge", [{"rubric": "r", "model": "m"}], Observation(grades={"0": (7, "")}), 1),
    ("judge", [{"rubric": "r", "model": "m"}], Observation(grades={"0": (float("nan"), "")}), 0),
    ("judge", [{"rubric": "r", "model": "m"}], Observation(), 0),
    ("custom", [{"call": "own.check"}], Observation(custom_verdicts=[CustomVerdict(1)]), 1),
    ("custom", [{"call": "own.check"}], Observation(custom_verdicts=[CustomVerdict(0.3, "thin")]), 0.3),
    ("custom", [{"call": "own.check"}], Observation(custom_verdicts=[CustomVerdict(0)]), 0),
    ("custom", [{"call": "own.check"}], Observation(), 0),
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
    result = checked("calls", expected, Observation(calls=WEATHER), calls_order=order)

    assert result.score == pytest.approx(score)


def test_exact_calls_of_a_run_without_calls() -> None:
    assert checked("calls", [], Observation(), calls_order="exact").passed
