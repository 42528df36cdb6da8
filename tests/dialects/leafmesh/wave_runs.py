"""Runs meshes of `waves` in the harness, written as mesh and scenario files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.scenario.load import load_file
from harness.scenario.outcome import Outcome as Ran
from harness.scenario.run import run_scenario
from tests.dialects.leafmesh.waves import Agent, Outcome

NAMES = ("a", "b", "c", "d", "e", "f")
GIVEN = {"given": 1}

# Combines ties, a loop, joins with optional members, retries, failures and limits.
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


def mesh_document(mesh: Mapping[str, Agent]) -> dict[str, Any]:
    """Return the content of the mesh file."""
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


def run_mesh(mesh: Mapping[str, Agent]) -> Ran:
    scenario = {
        "name": "random",
        "timeout": 100000,
        "input": GIVEN,
        "scripts": {name: stubs(agent) for name, agent in mesh.items()},
        "expect": {"weights": {"status": 0}},
    }
    with TemporaryDirectory() as folder:
        (Path(folder) / "mesh.yaml").write_text(json.dumps(mesh_document(mesh)), encoding="utf-8")
        file = Path(folder) / "random.scenario.yaml"
        text = json.dumps(
            {"harness": 1, "dialect": "leafmesh", "manifest": "mesh.yaml", "scenarios": [scenario]}
        )
        file.write_text(text, encoding="utf-8")
        (outcome,) = run_scenario(load_file(file).scenarios[0])
    return outcome
