"""Each check declares what other parts ask about it, and above all which parts of its value are names."""

from typing import Any

import pytest

from harness.scenario.checks.check import Check, check, checks_of, empty
from harness.scenario.checks.finding import Finding
from harness.scenario.document_expect import CHECKS, Expect, expectation_mentions
from harness.scenario.mentions import nodes_listed
from harness.scenario.outcome import Observation, Origin
from harness.scenario.perturbation import FIELDS
from harness.source.document import parse

# key, a value of it, and the names in it with their roles; a check without names has a value full of words
VALUES = [
    ("status", "failed", []),
    ("unused", "true", []),
    ("error", "{type: E, message: m, node: a}", ["caller a"]),
    ("interrupt", "[sure?, {question: q}]", ["pause sure?"]),
    ("path", "[a, [b, c]]", ["node a", "node b", "node c"]),
    ("path_includes", "[a, b]", ["node a", "node b"]),
    ("visits", "{a: 1, b: {$gte: 2}}", ["node a", "node b"]),
    ("max_visits", "{a: 1}", ["node a"]),
    ("never", "[a]", ["node a"]),
    ("routes", "[{from: a, to: b}]", ["source a", "target b"]),
    ("state", "{a: b, c: {$missing: true}}", ["absent c"]),
    ("output", "{a: {$not: {b: 1}}}", ["absent b"]),
    ("store", "[{namespace: [a], value: {b: 1}}]", []),
    ("state_schema", "{required: [a], properties: {a: {}, b: {}}}", ["absent b"]),
    ("output_schema", "{required: [a], properties: {a: {}, b: {}}}", ["absent b"]),
    ("calls", "[{tool: t, node: a, args: {x: y}}, {http: u}]", ["called t", "caller a"]),
    ("never_calls", "[{mcp: t, args: {x: y}}, {human: a}]", ["called t", "caller a", "argument x"]),
    ("call_counts", "{llm: 1, 'tool:t': 2}", ["called t"]),
    ("latency", "{total: 1, nodes: {a: 1}}", ["timed a"]),
    ("usage", "{llm_calls: 1, cost: 2}", []),
    ("warnings", "[careful]", []),
    ("never_warnings", "[careful]", []),
    ("checks", "[{that: visits.a == 1, name: b}]", ["node a"]),
    ("custom", "[{call: own.check, name: b}]", []),
    ("judge", "{rubric: r, model: m}", []),
]


@pytest.mark.parametrize(("key", "value", "names"), VALUES, ids=[key for key, *_ in VALUES])
def test_the_names_in_the_value_of_a_check_are_looked_up(key: str, value: str, names: list[str]) -> None:
    expect = parse(f"{key}: {value}", file="a.scenario.yaml", yaml="1.2")
    assert [f"{each.role} {each.name}" for each in expectation_mentions(expect)] == names


def test_the_names_of_every_check_are_known_here() -> None:
    assert {key for key, *_ in VALUES} == set(CHECKS)


@pytest.mark.parametrize("key", CHECKS)
def test_a_check_declares_its_names_its_rules_what_it_reads_and_the_origin_of_its_failure(key: str) -> None:
    found = CHECKS[key]
    assert all(isinstance(rules, tuple) for rules in (found.names, found.vacuous, found.untried))
    assert FIELDS.issuperset(found.reads)
    assert isinstance(found.origin, Origin)


FACTS: dict[str, Any] = {
    "names": (nodes_listed,),
    "vacuous": (empty,),
    "untried": (),
    "reads": ("path",),
    "origin": Origin.RESULT,
}


def never_ends_at(_expected: Any, _observed: Observation) -> Finding:
    return Finding(1.0, None)


@pytest.mark.parametrize("fact", FACTS)
def test_a_check_that_does_not_declare_a_fact_cannot_be_registered(fact: str) -> None:
    facts = {name: value for name, value in FACTS.items() if name != fact}
    with pytest.raises(TypeError, match=f"check 'never_ends_at' does not declare its {fact}$"):
        check(**facts)(never_ends_at)
    with pytest.raises(TypeError, match=fact):
        Check(never_ends_at, **facts)


@pytest.mark.parametrize("rules", [None, nodes_listed, ("never",)])
def test_names_are_declared_by_rules_and_not_by_a_word(rules: Any) -> None:
    with pytest.raises(TypeError, match="`names` of check 'never_ends_at' is no tuple of functions"):
        check(**{**FACTS, "names": rules})(never_ends_at)


def test_a_key_of_expect_without_a_check_cannot_be_registered() -> None:
    class WithAnother(Expect):
        never_ends_at: list[str]

    with pytest.raises(TypeError, match="'never_ends_at' of `expect` is annotated with no check"):
        checks_of(WithAnother.model_fields, apart=("weights",))
