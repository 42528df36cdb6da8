"""Runs send no telemetry, even if the environment turns tracing on."""

import os
import subprocess
import sys
from pathlib import Path

SUITE = Path(__file__).parents[1] / "scenarios" / "sherma" / "tools.scenario.yaml"

PROGRAM = """
import sys, threading
import langsmith.client

def refuse(self, *args, **kwargs):
    raise AssertionError("a tracing client was made")

langsmith.client.Client.__init__ = refuse
from pathlib import Path
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario

outcomes = [run_scenario(scenario)[0] for scenario in load_file(Path(sys.argv[1])).scenarios]
assert all(outcome.passed for outcome in outcomes), outcomes
assert threading.active_count() == 1, threading.enumerate()
assert not [name for name in sys.modules if name.startswith("harness.report.otel")]
"""


def test_tracing_stays_off_when_the_environment_asks_for_it() -> None:
    asked = {
        "LANGSMITH_TRACING": "true",
        "LANGCHAIN_TRACING_V2": "true",
        "LANGSMITH_API_KEY": "x",
        "LANGCHAIN_CALLBACKS_BACKGROUND": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
    }
    command = [sys.executable, "-c", PROGRAM, str(SUITE)]
    subprocess.run(command, env={**os.environ, **asked}, check=True)
