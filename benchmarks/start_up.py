"""(d) Start-up time: `harness --help` beyond Python itself, and a run of one scenario beyond importing LangGraph."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import scenarios
from benchmarks.measure import Figure, compiled_once, medians, seconds_of_process

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
        command = "from harness.cli.main import main; main()"
        programs = {**PROGRAMS, "run": [command, "run", str(file), "--report", folder]}
        took = medians(
            {
                name: partial(seconds_of_process, [sys.executable, "-c", *program], here, environment)
                for name, program in programs.items()
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
    ]
