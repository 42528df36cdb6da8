"""Random meshes run exactly as the reference implementation in `waves` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from tests.dialects.leafmesh.wave_runs import GIVEN, NAMES, run_mesh
from tests.dialects.leafmesh.waves import Agent, Outcome, Waves

takes = st.sampled_from([0, 0, 1, 1, 2, 3, 5])


def made(name: str, start: int, outcome: tuple[int, str], *, go: bool) -> Outcome:
    time, kind = outcome
    if kind == "fails":
        return Outcome(time)
    output: dict[str, Any] = {"by": name, name: start, "go": go}
    return Outcome(time, {**output, "n": 1} if kind == "meets" else output, kind == "meets")


@st.composite
def agents(draw: st.DrawFn, at: int) -> Agent:
    """Draw an agent. Calls go forward, or backward only while the first start says `go`, so every run ends."""
    name, later = NAMES[at], NAMES[at + 1 :]
    kinds = st.sampled_from(["meets"] * 6 + ["lacks", "fails"])
    several = draw(st.lists(st.tuples(takes, kinds), min_size=1, max_size=3))
    loops = draw(st.booleans())
    outcomes = [made(name, n, each, go=loops and n == 0) for n, each in enumerate([*several, several[-1]])]
    forwards = st.tuples(st.sampled_from(later), st.booleans() | st.none()) if later else st.nothing()
    backwards = st.tuples(st.sampled_from(NAMES), st.none())
    calls = draw(st.lists(forwards | backwards if later else backwards, max_size=4))
    members = st.tuples(st.sampled_from(NAMES[1:]), st.sampled_from(["", "", "?"])).map("".join)
    waits = st.lists(st.lists(members, min_size=1, max_size=2).map(" AND ".join), min_size=1, max_size=2)
    return Agent(
        tuple(outcomes),
        tuple(calls),
        draw(st.just("") | waits.map(" OR ".join)) if at > 1 else "",
        draw(st.sampled_from([1, 2, 4, 60])),
        draw(st.none() | st.sampled_from([0, 1, 2])),
        draw(st.sampled_from([1, 1, 2, None])),
        draw(st.sampled_from(["dual", "chain", "execute"])),
        draw(st.booleans()),
    )


meshes = st.tuples(*(agents(at) for at in range(len(NAMES)))).map(
    lambda made: dict(zip(NAMES, made, strict=True))
)


def comparable_input(mesh: Mapping[str, Agent], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input as `waves` has it: the declared upstream yields, and the fields of `_rerun_context`."""
    result = dict(given)
    if "upstream_yields" in given:
        result["upstream_yields"] = {
            other: {"n": output["n"]} if mesh[other].retries is not None else output
            for other, output in given["upstream_yields"].items()
        }
    return result


@settings(max_examples=30)
@given(meshes)
def test_a_mesh_runs_as_the_rules_say(mesh: dict[str, Agent]) -> None:
    expected = Waves(mesh, NAMES[0], GIVEN)
    assume(not expected.goes_on)
    done = run_mesh(mesh).observed
    event("joined" if any(mesh[name].wait_for for name in expected.path) else "no join")
    assert done.path == expected.path
    assert done.latency["total"] == expected.now
    assert done.state == expected.state
    assert done.output == expected.response()
    error = done.error and (done.error["type"], done.error["node"])
    assert error == expected.error
    assert done.status == ("failed" if error else "completed")
    given_to = [(call["node"], call["args"]) for call in done.calls]
    for (node, args), (name, received) in zip(given_to, expected.inputs, strict=True):
        rerun = args.pop("_rerun_context", None)
        retry = received.pop("_rerun_context", None)
        assert (node, args) == (name, comparable_input(mesh, received))
        assert (rerun is None) == (retry is None)
        if rerun is not None:
            assert {key: rerun[key] for key in retry or ()} == retry
