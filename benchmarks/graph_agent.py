"""(l) A Loki graph agent with two questions, compared with bare LangGraph; a script, compared with its process."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import bare, scenarios
from benchmarks.measure import Figure, medians, seconds
from harness.scenario.load import load_file
from harness.scenario.model import Scenario
from harness.scenario.run import run_once, run_scenario
from harness.settings import Settings

TARGET = 1.6
SCRIPT_TARGET_MS = 10.0
ROUNDS = 15
RUNS = 40
SCRIPTS = 10


def run() -> list[Figure]:
    """Measure, and return the figures. Graphs are built beforehand."""
    asks, says = _scenario("permits", scenarios.permits()), _scenario("echo", scenarios.echo())
    script = scenarios.MANIFESTS / "echo" / "scripts" / "say.sh"
    by_hand = partial(
        bare.run_permits,
        bare.permits(),
        scenarios.PLACE,
        [scenarios.PERMIT, scenarios.CHANGED],
        ["change", scenarios.REMARK],
    )
    assert by_hand()["permit"] == scenarios.CHANGED
    for scenario in (asks, says):
        [outcome] = run_scenario(scenario)
        assert outcome.verdict == "passed", outcome
    works: dict[str, Callable[[], object]] = {
        "bare": by_hand,
        "played": partial(run_once, asks, Settings(), seed=0),
    }
    took = medians({name: partial(seconds, work, RUNS) for name, work in works.items()}, ROUNDS)
    process = partial(subprocess.run, ["bash", str(script)], capture_output=True, check=True)
    scripts: dict[str, Callable[[], object]] = {
        "process": process,
        "node": partial(run_once, says, Settings(), seed=0),
    }
    each = medians({name: partial(seconds, work, SCRIPTS) for name, work in scripts.items()}, ROUNDS)
    above = (each["node"] - each["process"]) * 1000
    return [
        Figure(
            "l",
            "a Loki graph agent that asks, run / bare LangGraph",
            took["played"] / took["bare"],
            target=TARGET,
        ),
        Figure("l", "bare LangGraph, a run that asks", took["bare"] * 1000, "ms"),
        Figure("l", "a run with a script, above its process", above, "ms", target=SCRIPT_TARGET_MS),
    ]


def _scenario(manifest: str, scenario: dict[str, object]) -> Scenario:
    with TemporaryDirectory() as folder:
        path = scenarios.write(Path(folder) / "l.scenario.yaml", manifest, [scenario], dialect="loki")
        [loaded] = load_file(path).scenarios
        return loaded
