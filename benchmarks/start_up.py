"""(d) What `harness --help` and `import harness` take, beyond what Python itself takes to start."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from benchmarks.measure import Figure, compiled_once, medians, seconds_of_process

TARGET_S = 0.25
ROUNDS = 11

PROGRAMS = {
    "python": ["pass"],
    "import": ["import harness"],
    "help": ["from harness.cli.main import main; main()", "--help"],
}


def run() -> list[Figure]:
    """The differences of one run."""
    here = Path(__file__).parent.parent
    with compiled_once() as environment:
        took = medians(
            {
                name: partial(seconds_of_process, [sys.executable, "-c", *program], here, environment)
                for name, program in PROGRAMS.items()
            },
            ROUNDS,
        )
    return [
        Figure("d", "harness --help, beyond python -c pass", took["help"] - took["python"], "s", TARGET_S),
        Figure("d", "import harness, beyond python -c pass", took["import"] - took["python"], "s"),
        Figure("d", "python -c pass", took["python"], "s"),
    ]
