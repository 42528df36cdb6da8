"""The event scheduler on random graphs: starts, times, limits, and reproducible runs."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.graph.events import Join
from tests.engine.events import Agent, compiled, requirement, run
from tests.world.stubs import world_spec

SECONDS = st.sampled_from([0, 0, 1, 2, 0.1, 0.3])


@st.composite
def requirements(draw: st.DrawFn, names: list[str], *words: str) -> str:
    """An expression over all of these names, the first of which is not optional."""
    text = names[0]
    for name in names[1:]:
        optional = draw(st.sampled_from(["", "", "?"]))
        text = f"({text}) {draw(st.sampled_from(words))} {name}{optional}"
    return text


@st.composite
def acyclic(draw: st.DrawFn, *words: str) -> Agent:
    """Nodes of any durations; each but the first waits for some before it."""
    nodes: dict[str, Any] = {"n0": {"takes": draw(SECONDS), "to": []}}
    for at in range(1, draw(st.integers(2, 8))):
        callers = sorted(draw(st.sets(st.sampled_from(sorted(nodes)), min_size=1, max_size=3)))
        nodes[f"n{at}"] = {"takes": draw(SECONDS), "to": [], "wait_for": draw(requirements(callers, *words))}
        for caller in callers:
            nodes[caller]["to"].append(f"n{at}")
    return {"start": "n0", "nodes": nodes}


def expected_times(agent: Agent) -> Mapping[str, tuple[float, float]]:
    """Compute the start and end of each node without limits: it starts when enough others have ended."""
    times: dict[str, tuple[float, float]] = {}
    for name, node in agent["nodes"].items():
        start = 0.0
        if "wait_for" in node:
            join = Join(requirement(node["wait_for"]))
            ends = {member: times[member][1] for member in join.members}
            start = next(
                at
                for at in sorted(ends.values())
                if join.missing({member for member, end in ends.items() if end <= at}) is None
            )
        times[name] = (start, round(start + node["takes"], 9))
    return times


@given(acyclic("AND"))
def test_every_node_starts_once_when_its_join_holds_and_the_run_takes_the_critical_path(agent: Agent) -> None:
    done = run(agent)
    times = expected_times(agent)
    assert done.status == "completed"
    assert sorted(done.starts) == sorted((name, start) for name, (start, _) in times.items())
    assert done.total == max(end for _, end in times.values())


@given(acyclic("AND", "OR"))
def test_every_node_starts_first_as_soon_as_its_join_holds(agent: Agent) -> None:
    first: dict[str, float] = {}
    for name, at in run(agent).starts:
        first.setdefault(name, at)
    assert first == {name: start for name, (start, _) in expected_times(agent).items()}


@given(acyclic("AND"), st.integers(1, 3))
def test_with_a_limit_every_node_still_runs_and_never_too_many_at_once(agent: Agent, limit: int) -> None:
    done = run({**agent, "limit": limit})
    assert done.status == "completed"
    assert sorted(name for name, _ in done.starts) == sorted(agent["nodes"])
    running = most = 0
    for event in done.events:
        running += {"node_start": 1, "node_end": -1}.get(event["event"], 0)
        most = max(most, running)
    assert most <= limit
    if limit == 1:
        assert done.total == round(sum(node["takes"] for node in agent["nodes"].values()), 9)


@st.composite
def any_graph(draw: st.DrawFn) -> Agent:
    """Edges anywhere, joins that time out or never hold, failures, people and limits."""
    names = [f"n{at}" for at in range(draw(st.integers(2, 6)))]
    nodes: dict[str, Any] = {}
    for name in names:
        node: dict[str, Any] = {
            "takes": draw(SECONDS),
            "to": sorted(draw(st.sets(st.sampled_from(names), max_size=2))),
        }
        if draw(st.booleans()):
            node["wait_for"] = draw(
                requirements(sorted(draw(st.sets(st.sampled_from(names), min_size=1))), "AND", "OR")
            )
            node["timeout"] = draw(st.sampled_from([None, 1, 2]))
        kind = draw(st.sampled_from(["plain", "plain", "asks", "fails"]))
        if kind == "asks":
            node["asks"] = "well?"
        if kind == "fails":
            node |= {"error": "broken", "tries": draw(st.integers(1, 2))}
        if draw(st.booleans()):
            node["limit"] = 1
        nodes[name] = node
    return {"start": sorted(draw(st.sets(st.sampled_from(names), min_size=1, max_size=2))), "nodes": nodes}


@given(any_graph())
def test_every_run_ends_and_repeats_exactly(agent: Agent) -> None:
    def once() -> Any:
        world = world_spec(human=[{"times": 3, "latency": 0.5, "reply": "fine"}])
        done = run(compiled(agent, recursion_limit=30), world)
        return done.status, done.total, done.digest

    first = once()
    assert first[0] in ("completed", "failed", "interrupted")
    assert once() == first


EXAMPLE: Agent = {
    "start": ["a", "b", "p", "q"],
    "limit": 3,
    "nodes": {
        "a": {"takes": 1, "writes": {"x": {"k", "l", "m"}}, "to": ["join", "c"]},
        "b": {"takes": 2, "error": "broken", "tries": 2, "fallback": "c"},
        "c": {"to": "join"},
        "p": {"asks": "p?", "to": "join"},
        "q": {"asks": "q?", "to": "join"},
        "join": {"wait_for": "(a AND p OR q) AND c?", "timeout": 2},
    },
}


def example_digest() -> str:
    world = world_spec(human=[{"latency": at, "reply": "yes"} for at in (1, 2)])
    return run(EXAMPLE, world).digest


def test_a_run_has_the_same_digest_under_every_hash_seed() -> None:
    code = "from tests.engine.test_event_properties import example_digest; print(example_digest())"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("0", "4242")
    ]
    printed = {child.communicate()[0].strip() for child in children}
    assert printed == {example_digest()}
