"""The checks of `expect`. `CHECKS` lists them; the docstring of each is its row in the format's documentation."""

from harness.scenario.checks.run import Gate, run_checks
from harness.scenario.checks.table import CHECKS

__all__ = ["CHECKS", "Gate", "run_checks"]
