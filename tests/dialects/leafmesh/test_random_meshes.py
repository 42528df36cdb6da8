"""Random meshes run exactly as the rules say, and alike each time. `waves` has the rules once more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from harness.scenario.load import load_file
from harness.scenario.outcome import Outcome as Ran
from harness.scenario.run import run_scenario
from tests.dialects.leafmesh.waves import Agent, Outcome, Waves

NAMES = ("a", "b", "c", "d", "e", "f")
GIVEN = {"given": 1}

takes = st.sampled_from([0, 0, 1, 1, 2, 3, 5])


def made(name: str, start: int, outcome: tuple[int, str], *, go: bool) -> Outcome:
    time, kind = outcome
    if kind == "fails":
        return Outcome(time)
    output: dict[str, Any] = {"by": name, name: start, "go": go}
    return Outcome(time, {**output, "n": 1} if kind == "meets" else output, kind == "meets")


@st.composite
def agents(draw: st.DrawFn, at: int) -> Agent:
    """Calls go forwards; backwards only while the first start says `go`, so that there is an end."""
    name, later = NAMES[at], NAMES[at + 1 :]
    kinds = st.sampled_from(["meets"] * 6 + ["lacks", "fails"])
    several = draw(st.lists(st.tuples(takes, kinds), min_size=1, max_size=3))
    loops = draw(st.booleans())
    outcomes = [made(name, n, each, go=loops and n == 0) for n, each in enumerate([*several, several[-1]])]
    forwards = st.tuples(st.sampled_from(later), st.booleans() | st.none()) if later else st.nothing()
    backwards = st.tuples(st.sampled_from(NAMES), st.none())
    calls = draw(st.lists(forwards | backwards if later else backwards, max_size=4))
    others = [each for each in NAMES[1:] if each != name]
    members = st.tuples(st.sampled_from(others), st.sampled_from(["", "", "?"])).map("".join)
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


def written(mesh: Mapping[str, Agent]) -> dict[str, Any]:
    """The mesh file."""
    conditions = {True: "true", False: "false", None: "go"}
    return {
        "name": "random",
        "entry_points": [{"name": "in", "target": NAMES[0]}],
        "agents": {
            name: {
                "agent_type": "programmatic",
                "communication_type": agent.how,
                "auto_store_yields": agent.stores,
                "can_call": [{"agent": to, "condition": conditions[holds]} for to, holds in agent.calls],
                "wait_for_timeout": agent.timeout,
                **({"wait_for": agent.wait_for} if agent.wait_for else {}),
                **({"parallel": True, "max_concurrent": agent.at_once} if agent.at_once != 1 else {}),
                **({"yields": {"n": "number"}, "enforce_yields": True} if agent.retries is not None else {}),
                **({"enforce_yields_retry": agent.retries} if agent.retries is not None else {}),
            }
            for name, agent in mesh.items()
        },
    }


def stubs(agent: Agent) -> list[dict[str, Any]]:
    error = {"error": {"kind": "exception", "type": "Broken"}}
    answers = [
        {**(error if outcome.output is None else {"return": outcome.output}), "latency": outcome.takes}
        for outcome in agent.outcomes
    ]
    return [*({**answer, "times": 1} for answer in answers[:-1]), {**answers[-1], "times": "any"}]


def ran(mesh: Mapping[str, Agent]) -> Ran:
    scenario = {
        "name": "random",
        "timeout": 100000,
        "input": GIVEN,
        "scripts": {name: stubs(agent) for name, agent in mesh.items()},
        "expect": {"weights": {"status": 0}},
    }
    with TemporaryDirectory() as folder:
        (Path(folder) / "mesh.yaml").write_text(json.dumps(written(mesh)), encoding="utf-8")
        file = Path(folder) / "random.scenario.yaml"
        text = json.dumps(
            {"harness": 1, "dialect": "leafmesh", "manifest": "mesh.yaml", "scenarios": [scenario]}
        )
        file.write_text(text, encoding="utf-8")
        (outcome,) = run_scenario(load_file(file).scenarios[0])
    return outcome


def narrowed(mesh: Mapping[str, Agent], given: Mapping[str, Any]) -> dict[str, Any]:
    """An input as `waves` has it: of upstream yields the declared ones, of a retry what it says."""
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
    done = ran(mesh).observed
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
        assert (node, args) == (name, narrowed(mesh, received))
        assert (rerun is None) == (retry is None)
        if rerun is not None:
            assert {key: rerun[key] for key in retry or ()} == retry


# Everything at once: ties, a loop, joins with optional members, retries, failures, limits.
EXAMPLE: dict[str, Agent] = {
    "a": Agent(
        (Outcome(0, {"go": True, "a": 0}), Outcome(1, {"go": False, "a": 1})),
        (("b", True), ("c", True), ("d", True), ("e", None)),
        how="chain",
    ),
    "b": Agent(
        (Outcome(2, {"go": True}), Outcome(1, {"go": False})), (("a", None), ("f", True)), how="execute"
    ),
    "c": Agent((Outcome(1, {"go": True}, meets=False), Outcome(1, {"go": True, "n": 1})), retries=1),
    "d": Agent((Outcome(2),)),
    "e": Agent((Outcome(0, {"go": True}),), wait_for="b AND c OR d?", timeout=4),
    "f": Agent((Outcome(3, {"go": True}),), wait_for="(c OR e) AND d?", at_once=None),
}


def example_digest() -> str:
    digest = ran(EXAMPLE).digest
    assert digest is not None
    return digest


def test_a_mesh_has_the_same_digest_under_every_hash_seed() -> None:
    code = f"from {__name__} import example_digest; print(example_digest())"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("0", "4242")
    ]
    assert {child.communicate()[0].strip() for child in children} == {example_digest()}
