"""`wait_for` expressions: tables of examples, and properties. NOTES 11.1, 11.2."""

from __future__ import annotations

from collections.abc import Set
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.dialects.leafmesh.conditions import LanguageError, parse_wait_for
from harness.graph.events import AllOf, AnyOf, Join, Member, Requirement
from tests.dialects.leafmesh.project import MESH, Project

NAMES = ("a", "b", "c", "d")


def starts(written: str | list[str], *arrived: str) -> bool:
    """True if the agent starts when these have arrived."""
    requirement = parse_wait_for(written)
    assert requirement is not None
    return Join(requirement).missing(set(arrived)) is None


@pytest.mark.parametrize(
    ("written", "enough", "too_few"),
    [
        ("a", ["a", "ab"], ["", "b"]),
        ("a AND b", ["ab", "abc"], ["a", "b"]),
        ("a OR b", ["a", "b"], [""]),
        ("a OR b AND c", ["a", "bc"], ["b", "c"]),
        ("a AND b OR c", ["ab", "c"], ["a", "b"]),
        ("(a OR b) AND c", ["ac", "bc"], ["ab", "c"]),
        ("a and b Or c", ["ab", "c"], ["a"]),
        ("a AND b?", ["a"], ["b"]),
        ("a OR b?", ["a"], ["b"]),
        ("a?", ["a"], [""]),
        ("a? AND b?", ["a", "b"], [""]),
        ("a? OR b?", ["a", "b"], [""]),
        ("(a? AND b) OR (c? AND d?)", ["b"], ["a", "cd"]),
        ("a AND (b OR c) AND d?", ["ab", "ac"], ["a", "bd", "ad"]),
        ("a ?AND b", ["b"], ["a"]),
        (["a", "b"], ["ab"], ["a"]),
        (["a OR b", "c?"], ["a", "b"], ["c"]),
        (["a"], ["a"], [""]),
    ],
)
def test_members_that_start_the_agent(
    written: str | list[str], enough: list[str], too_few: list[str]
) -> None:
    for arrived in enough:
        assert starts(written, *arrived), arrived
    for arrived in too_few:
        assert not starts(written, *arrived), arrived


@pytest.mark.parametrize(
    "text",
    [
        "a AND", "AND a", "a b", "(a", "a)", "()", "a & b", "a, b", "NOT a", "(a OR b)?", "?", "a??", "a ANDb",
        "a ORb", "a AND AND b", "a OR OR",
    ],
)  # fmt: skip
def test_syntax_errors(text: str) -> None:
    with pytest.raises(LanguageError):
        parse_wait_for(text)


@pytest.mark.parametrize("written", ["", "  ", []])
def test_an_empty_wait_for_has_no_requirement(written: str | list[str]) -> None:
    assert parse_wait_for(written) is None


@pytest.mark.parametrize("name", ["order", "android", "or_else", "and-then", "ORder", "ünder", "a1", "2nd"])
def test_names_may_begin_as_keywords_do(name: str) -> None:
    assert parse_wait_for(f"{name} OR b") == AnyOf((Member(name), Member("b")))


def test_an_item_of_a_list_may_be_any_name_of_an_agent() -> None:
    names = ["night watch", "a?", "and", "b OR c", "v1.5"]
    assert parse_wait_for(names, names) == AllOf(tuple(map(Member, names)))


def test_a_fan_in_waits_for_agents_whose_names_are_no_words(project: Project) -> None:
    calls = "programmatic, can_call: [{agent: night watch}]"
    rest = "  night watch: {agent_type: programmatic}\n  last: {agent_type: programmatic, wait_for: [night watch]}\n"
    mesh = MESH.replace("programmatic", calls) + rest
    project.write({"configs/config.yaml": mesh, "agency/other_agent.py": ""})
    outcome = project.run("scripts: {desk: {return: {}}, night watch: {return: {}}, last: {return: {}}}")
    assert outcome.observed.path == ["desk", "night watch", "last"]


# Laws

members = st.builds(Member, st.sampled_from(NAMES), st.booleans())


def _both(items: st.SearchStrategy[Requirement]) -> st.SearchStrategy[Requirement]:
    several = st.lists(items, min_size=2, max_size=3).map(tuple)
    return several.map(AllOf) | several.map(AnyOf)


requirements: st.SearchStrategy[Requirement] = st.recursive(members, _both, max_leaves=8)


def evaluate(requirement: Requirement, arrived: Set[str]) -> bool | None:
    """Evaluate a requirement directly; None if all its members are optional."""
    if isinstance(requirement, Member):
        return None if requirement.optional else requirement.name in arrived
    items = [held for item in requirement.items if (held := evaluate(item, arrived)) is not None]
    if not items:
        return None
    return all(items) if isinstance(requirement, AllOf) else any(items)


@given(requirements)
def test_a_requirement_survives_a_round_trip_through_text(requirement: Requirement) -> None:
    text = str(requirement)
    read = parse_wait_for(text)
    assert read is not None
    assert str(read) == text


@given(requirements)
def test_it_starts_exactly_when_the_truth_table_says_so(requirement: Requirement) -> None:
    read = parse_wait_for(str(requirement))
    assert read is not None
    join = Join(read)
    for arrived in map(set, chain.from_iterable(combinations(NAMES, n) for n in range(len(NAMES) + 1))):
        held = evaluate(requirement, arrived)
        expected = bool(arrived & join.members) if held is None else held
        assert (join.missing(arrived) is None) == expected


@given(requirements, st.sets(st.sampled_from(NAMES)), st.sampled_from(NAMES))
def test_a_further_arrival_keeps_the_requirement_met(
    requirement: Requirement, arrived: set[str], more: str
) -> None:
    join = Join(requirement)
    if join.missing(arrived) is None:
        assert join.missing(arrived | {more}) is None
