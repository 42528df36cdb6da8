"""(d) Start-up time: `harness --help` beyond Python itself, a run of one scenario beyond importing LangGraph.

The run of an app is measured in real time, since its own processes may end after it.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import scenarios
from benchmarks.measure import Figure, compiled_once, medians, real_seconds_of_process, seconds_of_process

TARGET_S = 0.25
RUN_TARGET_S = 0.5
ROUNDS = 11

PROGRAMS = {
    "python": ["pass"],
    "import": ["import harness"],
    "help": ["from harness.cli.main import main; main()", "--help"],
    "langgraph": ["import langgraph.graph"],
}


def run() -> list[Figure]:
    """Measure, and return the figures."""
    here = Path(__file__).parent.parent
    with compiled_once() as environment, TemporaryDirectory() as folder:
        file = scenarios.write(Path(folder, "one.scenario.yaml"), "triage.yaml", [scenarios.triage(1)])
        asked = {"name": "one call", "input": "How heavy?", "llm": ["Heavy."], "expect": {"output": "Heavy."}}
        of_app = Path(folder, "app.scenario.yaml")
        scenarios.write(of_app, "clerk_app.py:graph", [asked], dialect="langgraph")
        command = "from harness.cli.main import main; main()"
        programs = {**PROGRAMS, "run": [command, "run", str(file), "--report", f"{folder}/report"]}
        of_app_programs = {
            "import": ["import benchmarks.manifests.clerk_app"],
            "run": [command, "run", str(of_app), "--report", f"{folder}/report"],
        }
        took = medians(
            {
                name: partial(seconds_of_process, [sys.executable, "-c", *program], here, environment)
                for name, program in programs.items()
            },
            ROUNDS,
        )
        real_took = medians(
            {
                name: partial(real_seconds_of_process, [sys.executable, "-c", *program], here, environment)
                for name, program in of_app_programs.items()
            },
            ROUNDS,
        )
    return [
        Figure("d", "harness --help, beyond python -c pass", took["help"] - took["python"], "s", TARGET_S),
        Figure("d", "import harness, beyond python -c pass", took["import"] - took["python"], "s"),
        Figure("d", "python -c pass", took["python"], "s"),
        Figure(
            "d",
            "harness run of one scenario, beyond import langgraph.graph",
            took["run"] - took["langgraph"],
            "s",
            RUN_TARGET_S,
        ),
        Figure("d", "harness run of one scenario", took["run"], "s"),
        Figure("d", "import langgraph.graph", took["langgraph"], "s"),
        Figure(
            "d",
            "harness run of an app, beyond its import",
            real_took["run"] - real_took["import"],
            "s",
            RUN_TARGET_S,
        ),
        Figure("d", "harness run of an app", real_took["run"], "s"),
    ]
