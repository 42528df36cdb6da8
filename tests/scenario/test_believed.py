"""A check is believed if some run could fail it; each that none could is told after a run that passed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scenario.believed import unfailing_parts
from harness.scenario.checks.run import run_checks
from harness.scenario.document_expect import CHECKS
from harness.scenario.load import load_file
from harness.scenario.model import Expectations
from harness.scenario.outcome import Observation
from harness.scenario.perturbation import Limits, perturb
from harness.scenario.run import run_scenario
from tests.manifests import COUNTER
from tests.scenario.observed import call, ran

LIMITS = Limits(30, always={"add"}, output_types={"count": "integer", "topic": "string"})
"""Those of a graph that begins with `add`, and casts two outputs."""
BOOKED = [call("tool", "book", args={"room": "12", "nights": 2}), call("llm", "m", node="add")]
RUN = ran(
    "add",
    "more",
    visits={"add": 1, "more": 1},
    routes=[["__start__", "add"], ["add", "more"], ["more", "__end__"]],
    state={"count": 1, "topic": "tea"},
    output={"count": 1, "topic": "tea", "note": "x"},
    calls=BOOKED,
    latency={"total": 2.0, "nodes": {"add": 2.0}},
    warnings=["'tone' is dropped"],
    store=[{"namespace": ["m"], "key": "k", "value": {"a": 1}}],
)


def told(key: str, value: Any, run: Observation = RUN, limits: Limits = LIMITS, **options: Any) -> list[str]:
    """The parts of a check that no run could fail."""
    expect = Expectations({key: value, **options})
    problems = unfailing_parts(expect, run, limits)
    found = [each.message for each in problems if each.code == "cannot-fail"]
    assert all(" cannot fail: it " in each for each in found)
    return [each.partition(" cannot fail: ")[0] for each in found]


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        pytest.param("output", {"count": {"$not": "1"}}, "output.count", id="not a text, of an integer"),
        pytest.param(
            "output", {"topic": {"$not": 1}, "note": "x"}, "output.topic", id="not a number, of a text"
        ),
        pytest.param("output", {"count": {"$all": [{"$gt": 0}, {"$not": "1"}]}}, "output.count", id="$all"),
        ("output_schema", {"properties": {"topic": {"minimum": 3}}}, "output_schema"),
        ("state_schema", {"properties": {"note": {}}}, "state_schema"),
        ("output", {"$any": True}, "output"),
        ("state", {"$missing": False}, "state"),
        ("status", {"$any": True}, "status"),
        ("latency", {"total": 30}, "latency.total"),
        ("latency", {"total": 1, "nodes": {"add": 2000}}, "latency.nodes.add"),
        ("path_includes", ["add"], "path_includes"),
        ("visits", {"add": {"$gte": 1}, "more": {"$gte": 1}}, "visits.add"),
        ("visits", {"more": {"$not": "1"}}, "visits.more"),
        ("visits", {"more": {"$gte": 0}}, "visits.more"),
        ("call_counts", {"llm": {"$gte": 0}, "tool:book": 1}, "call_counts.llm"),
        ("call_counts", {"llm": {"$any": True}}, "call_counts.llm"),
        ("never_calls", [{"tool": "book", "args": {"room": 13}}], "never_calls[0]"),
        ("never_calls", [{"tool": "pay"}, {"tool": "b*", "args": {"nights": "3"}}], "never_calls[1]"),
        ("never_calls", [{"tool": "book", "args": {"room": {"number": 13}}}], "never_calls[0]"),
        ("never_warnings", ["careful", 12], "never_warnings[1]"),
        ("checks", [{"that": "latency.total < 3000"}], "checks[0]"),
        ("checks", [{"that": "state.count == 1"}, {"that": "true"}], "checks[1]"),
        ("checks", [{"that": "size(path) >= 0"}], "checks[0]"),
        ("checks", [{"that": "state == state"}], "checks[0]"),
        ("checks", [{"that": "size(path) != -1"}], "checks[0]"),
        ("checks", [{"that": "size(path) > 3 || size(path) <= 3"}], "checks[0]"),
        ("checks", [{"that": "error == null || error != null"}], "checks[0]"),
        ("checks", [{"that": "size(calls) < 1000000 && size(path) < 1000000"}], "checks[0]"),
        ("state", {"$type": "object"}, "state"),
        ("usage", {"llm_calls": 1_000_000}, "usage.llm_calls"),
        ("checks", [{"that": "state.n == 1 || true"}], "checks[0]"),
        ("checks", [{"that": "0.0 <= latency.total"}], "checks[0]"),
        ("checks", [{"that": "state.late || latency.total <= 30.0 && usage.cost >= 0.0"}], "checks[0]"),
    ],
)
def test_what_no_run_could_fail_is_told(key: str, value: Any, part: str) -> None:
    expect = Expectations({key: value})
    assert told(key, value) == [part]
    assert all(each.passed for each in run_checks(expect, RUN) if each.name != key or key != "latency")


HONEST: dict[str, list[Any]] = {
    "status": ["completed", {"$in": ["completed", "interrupted"]}],
    "unused": [[]],
    "error": [None],
    "interrupt": [[]],
    "path": [["add", "more"]],
    "path_includes": [["add", "more"], ["more"]],
    "visits": [{"add": 1, "more": {"$lte": 3}}],
    "max_visits": [{"add": 50, "more": 1}],
    "never": [["less", "least"]],
    "routes": [[{"from": "__start__", "to": "add"}, {"from": "add", "to": "more"}]],
    "state": [
        {"count": 1, "topic": {"$not": "coffee"}, "other": {"$missing": True}},
        {"count": {"$not": "1"}, "topic": {"$contains": "t"}},
        {"$all": [{"count": 1}, {"topic": {"$not": {"$regex": "[A-Z]{3}-[0-9]+"}}}]},
        {"topic": {"$any": True}, "count": {"$not": {"$gt": 1e12}}},
    ],
    "output": [
        {"count": {"$lt": 1000}, "topic": {"$len": {"$lt": 500}}},
        {"count": {"$not": 7}, "topic": {"$not": {"$contains": "forbidden"}}},
        {"topic": {"$not": {"$regex": "^[A-Z]{3}-[0-9]+$"}}, "count": {"$type": "integer"}, "note": "x"},
    ],
    "store": [
        [{"namespace": ["m"], "key": "k", "value": {"a": 1}}],
        [{"namespace": ["m"], "key": "other", "value": {"$missing": True}}],
    ],
    "state_schema": [{"properties": {"topic": {"minimum": 3}}}, {"properties": {"topic": {"pattern": "^t"}}}],
    "output_schema": [{"properties": {"count": {"maximum": 99}}}, {"required": ["note"]}],
    "calls": [[{"tool": "book", "args": {"room": {"$not": 13}}}]],
    "never_calls": [
        [{"tool": "pay"}, {"tool": "book", "args": {"room": "13"}}, {"tool": "book", "ok": False}],
        [{"tool": "book", "node": "more", "args": {"room": 12}}, {"tool": "book", "args": {"beds": 3}}],
        [{"tool": "book", "args": {"nights": {"$gt": 5}}}, {"tool": "book", "args": {"room": {"$in": ["a", "13"]}}}],
        [{"tool": "book", "args": {"room": {"$contains": "x"}, "nights": {"$gte": 3}}}],
        [{"tool": "book", "args": {"guest": {"age": {"$lt": 18}}}}, {"tool": "book", "args": {"$contains": "vip"}}],
    ],
    "call_counts": [{"llm": {"$lte": 20}, "tool:pay": 0, "tool:book": {"$gte": 1}}],
    "latency": [{"total": 29, "nodes": {"add": 3}}],
    "usage": [{"llm_calls": 50_000, "cost": 2}],
    "warnings": [["'tone' is dropped"]],
    "never_warnings": [["careful", {"$contains": "dear"}, {"$regex": "x+y"}]],
    "checks": [
        [{"that": "latency.total < 29.5"}, {"that": "latency.total * 20.0 < 500.0"}],
        [{"that": "size(path) < 9 && size(calls) < 4"}, {"that": "size(path) == 2 || latency.total < 2.0"}],
        [{"that": "error == null"}, {"that": "size(path) < 9 && !('less' in path)"}, {"that": "size(calls) - 1 < 9"}],
        [{"that": "size(path) <= 20"}, {"that": "!('less' in path)"}, {"that": "state.count >= 0"}],
        [{"that": "latency.total < 10.0 || state.count == 1"}, {"that": "!has(state.x) || state.x == null"}],
        [{"that": "!has(latency.nodes.x) || latency.total > 90.0"}],
        [{"that": "usage.cost < 1e6"}, {"that": "latency.total < 10.0 || latency.total > 12.0 || usage.cost < 1.0"}],
        [{"that": "!calls.exists(c, c.kind == 'tool' && c.name == 'pay' && c.args.euros > 100)"}],
    ],
    "custom": [[{"call": "own.never_called_again"}]],
    "judge": [[{"rubric": "r", "model": "m"}]],
}  # fmt: skip


@pytest.mark.parametrize("key", CHECKS)
def test_an_honest_check_of_each_kind_is_believed(key: str) -> None:
    assert [told(key, value) for value in HONEST[key]] == [[] for _ in HONEST[key]]


def test_nothing_is_said_of_nodes_and_types_where_nothing_enforces_them() -> None:
    anything = Limits(30)
    assert told("path_includes", ["add"], limits=anything) == []
    assert told("output", {"count": {"$not": "1"}}, limits=anything) == []


def test_several_visits_at_once_may_take_longer_than_the_run() -> None:
    parallel = ran("add", ["more", "more"], latency={"total": 20.0, "nodes": {"more": 40.0}})
    assert told("latency", {"nodes": {"more": 40}}, parallel) == []
    assert told("latency", {"nodes": {"more": 60}}, parallel) == ["latency.nodes.more"]


def test_a_refused_call_could_have_been_made() -> None:
    refused = Observation(calls=[{**call("tool", "pay", ok=False), "refused": True}])
    assert told("call_counts", {"tool:pay": 0}, refused) == []


def test_exactly_no_calls_may_be_expected_of_a_run_without_any() -> None:
    assert told("calls", [], Observation(), calls_order="exact") == []


@pytest.mark.parametrize("literal", [10**400, "[" * 100_000, float("nan"), float("inf"), "1e999"])
def test_any_literal_can_be_tried(literal: Any) -> None:
    assert told("state", {"count": {"$not": literal}}) == []
    assert told("usage", {"cost": 10**400}) == []


def test_it_is_told_what_was_tried() -> None:
    (found,) = unfailing_parts(Expectations({"checks": [{"that": "latency.total < 3000"}]}), RUN, LIMITS)
    assert found.code == "cannot-fail"
    assert found.severity == "warning"
    assert "it also holds where the run takes 30 s (its timeout); where the run takes 0 s" in found.message


def test_a_perturbation_leaves_the_observation_as_it_is() -> None:
    before = repr(RUN)
    changes = [(changed, change) for changed, change in perturb(RUN, LIMITS, expected={"count": 1})]
    assert repr(RUN) == before
    assert all(isinstance(change, str) and change for _, change in changes)
    assert {"add"} <= {name for changed, _ in changes for name in changed.visits}


# ---------------------------------------------------------------- law

values = st.sampled_from([None, 0, 1, 2, 1.5, "", "1", "a", "ab", True, [], [1], {}, {"b": 1}])
tests = st.one_of(
    values,
    values.map(lambda value: {"$not": value}),
    st.sampled_from(["1", "a", "b", ""]).map(lambda text: {"$contains": text}),
    st.sampled_from(["$gt", "$lte"]).flatmap(
        lambda name: st.integers(-1, 3).map(lambda bound: {name: bound})
    ),
    st.integers(0, 3).map(lambda count: {"$len": count}),
    st.sampled_from(["string", "integer", "null"]).map(lambda name: {"$type": name}),
    st.just({"$any": True}),
    st.booleans().map(lambda missing: {"$missing": missing}),
)
several = st.lists(tests, max_size=2)
matchers = st.one_of(
    tests,
    tests.map(lambda each: {"$not": each}),
    several.map(lambda each: {"$not": {"$all": each}}),  # the items of an outer one are parts of their own
    several.map(lambda each: {"$in": each}),
)
kinds = st.sampled_from(["llm", "tool:more"])
fields = st.dictionaries(st.sampled_from("ab"), values, max_size=2)
counts = st.one_of(st.integers(0, 3), matchers.filter(lambda each: isinstance(each, dict)))
names = st.sampled_from(["add", "more", "less"])
calls = st.lists(
    st.builds(call, st.sampled_from(["tool", "llm"]), names, args=st.fixed_dictionaries({"n": st.integers(0, 2)})),
    max_size=3,
)  # fmt: skip
runs = st.builds(
    lambda path, state, made, total: ran(
        "add", *path, visits={name: ["add", *path].count(name) for name in ["add", *path]}, state=state,
        calls=made, latency={"total": total, "nodes": {}}),
    st.lists(names, max_size=3), fields, calls, st.floats(0, 30),
)  # fmt: skip
conditions = st.sampled_from(
    [
        *(
            "latency.total < 15.0",
            "latency.total < 10.0 || latency.total > 12.0",
            "state.a == 1",
            "size(path) < 4",
        ),
        *(
            "!has(state.a)",
            "has(state.a) || latency.total < 25.0",
            "usage.llm_calls == 0 || latency.total > 5.0",
        ),
        *(
            "!('less' in path)",
            "!calls.exists(c, c.name == 'less')",
            "size(calls) == 0 || latency.total < 29.0",
        ),
    ]
)
expectations = st.one_of(
    st.tuples(st.just("state"), st.dictionaries(st.sampled_from("ab"), matchers, min_size=1, max_size=1)),
    st.tuples(st.just("visits"), st.dictionaries(names, counts, min_size=1, max_size=1)),
    st.tuples(st.just("call_counts"), st.dictionaries(kinds, counts, min_size=1, max_size=1)),
    st.tuples(st.sampled_from(["path_includes", "never"]), st.lists(names, min_size=1, max_size=1)),
    st.tuples(st.just("never_calls"),
              st.builds(lambda name, n: [{"tool": name, "args": {"n": n}}], names, st.integers(0, 2))),
    st.tuples(st.just("checks"), conditions.map(lambda that: [{"that": that}])),
)  # fmt: skip


@given(expectations, st.lists(runs, min_size=2, max_size=8))
def test_law_what_some_run_fails_is_never_said_to_be_unfailing(
    expected: Any, some: list[Observation]
) -> None:
    key, value = expected
    expect = Expectations({key: value})

    def fails(run: Observation) -> bool:
        return not all(each.passed for each in run_checks(expect, run, allow_unused=True))

    if any(map(fails, some)):
        assert [told(key, value, run) for run in some if not fails(run)] == [
            [] for run in some if not fails(run)
        ]


# ---------------------------------------------------------------- runs

FLOW = """\
agentspec_version: 25.4.1
component_type: Flow
name: counting
inputs: [{title: count, type: integer}]
outputs: [{title: count, type: integer}]
start_node: {$component_ref: begin}
nodes: [{$component_ref: begin}, {$component_ref: end}]
control_flow_connections:
  - {component_type: ControlFlowEdge, name: e, from_node: {$component_ref: begin}, to_node: {$component_ref: end}}
data_flow_connections:
  - {component_type: DataFlowEdge, name: d, source_node: {$component_ref: begin}, source_output: count,
     destination_node: {$component_ref: end}, destination_input: count}
$referenced_components:
  begin: {component_type: StartNode, name: begin, inputs: [{title: count, type: integer}]}
  end: {component_type: EndNode, name: end, outputs: [{title: count, type: integer}]}
"""

Warned = Callable[..., list[str]]


@pytest.fixture
def warned(tmp_path: Path) -> Warned:
    """The warnings of a run of a scenario with these keys, which begin at column 1 of line 4."""

    def of(keys: str, manifest: str = COUNTER) -> list[str]:
        (tmp_path / "agent.yaml").write_text(manifest)
        file = tmp_path / "a.scenario.yaml"
        file.write_text(f"harness: 1\nmanifest: agent.yaml\nscenarios: [{{name: x,\n{keys}}}]\n")
        (outcome,) = run_scenario(load_file(file).scenarios[0])
        return [text.rpartition("a.scenario.yaml:")[2] for text in outcome.observed.warnings]

    return of


def test_a_run_that_passed_tells_it_with_its_location(warned: Warned) -> None:
    (text,) = warned("expect: {visits: {add: {$gte: 1}}}")
    assert text.startswith("4:18: visits.add cannot fail: it also holds where ")


def test_it_is_told_once(warned: Warned) -> None:
    assert warned("expect: {state_schema: true}") == [
        "4:24: this schema accepts everything, so it says nothing"
    ]


def test_a_run_that_failed_does_not(warned: Warned) -> None:
    assert warned("expect: {path_includes: [add], state: {count: 2}}") == []


def test_the_type_of_a_value_is_known_where_the_graph_casts_it(warned: Warned) -> None:
    keys = "input: {count: 2}, expect: {output: {count: {$not: '1'}}}"
    (text,) = warned(keys, FLOW)
    assert text.startswith("4:37: output.count cannot fail: ")
    assert warned(keys.replace("'1'", "1"), FLOW) == []


def test_a_node_that_every_run_begins_with_is_always_there(warned: Warned) -> None:
    (text,) = warned("expect: {path_includes: [add]}")
    assert text.startswith("4:25: path_includes cannot fail: it also holds where ")


def test_a_turn_may_begin_elsewhere(warned: Warned) -> None:
    assert warned("turns: [{expect: {path_includes: [add]}}, {input: {}}]") == []


def test_each_turn_is_tried(warned: Warned) -> None:
    (text,) = warned("timeout: 5, turns: [{expect: {latency: {total: 5}}}]")
    assert text.startswith("4:40: latency.total cannot fail: ")


def test_an_error_that_any_failure_matches_says_nothing_where_every_run_fails() -> None:
    failure: dict[str, Any] = {
        "type": "E",
        "code": None,
        "message": "m",
        "node": "add",
        "where": None,
        "traceback": [],
    }
    failed, limits = ran("add", status="failed", error=failure), Limits(30, fails=True)
    assert told("error", {}, failed, limits) == ["error"]
    assert told("error", {"node": "*"}, failed, limits) == []  # a run may fail in no node
    assert told("error", {}, failed) == []


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("{count: {$not: '1'}}", "state.count is 1, of another type than what '1' matches"),
        (
            "{count: {$not: {$contains: 9}}}",
            "state.count is 1, of another type than what {$contains: 9} matches",
        ),
        ("{count: {$not: {$regex: '9'}}}", "state.count is 1, of another type"),
        ("{count: {$not: {$gt: '5'}}}", "state.count is 1, of another type"),
        ("{count: {$not: {$some: {$gt: 5}}}}", "state.count is 1, of another type"),
        ("{count: {$not: {$gt: 5}}}", ""),
        ("{count: {$not: none}}", ""),  # a sentinel
        ("{count: {$not: null}}", ""),
        ("{count: {$not: {$type: string}}}", ""),
        ("{count: {$not: {$all: [{$gt: 5}, {$lt: 6}]}}}", ""),
        ("{count: {$not: 1.5}}", ""),
    ],
)
def test_what_excludes_values_of_another_type_alone_is_told(warned: Warned, wanted: str, told: str) -> None:
    found = warned(f"expect: {{state: {wanted}}}")
    assert len(found) == bool(told)
    assert told in "".join(found)


def test_it_is_told_of_items_too() -> None:
    expect = Expectations({"state": {"kinds": [{"size": {"$not": "2"}}, {"$not": {"$gt": 3}}]}})
    run = ran("add", state={"kinds": [{"size": 2}, "small"]})
    assert [each.message for each in unfailing_parts(expect, run, LIMITS)] == [
        "state.kinds[0].size is 2, of another type than what '2' matches",
        "state.kinds[1] is 'small', of another type than what {$gt: 3} matches",
    ]
