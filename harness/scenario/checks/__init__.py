"""What must hold after a run. `CHECKS` is the table; each check's docstring is its row of the format."""

from harness.scenario.checks.run import Gate, run_checks
from harness.scenario.checks.table import CHECKS

__all__ = ["CHECKS", "Gate", "run_checks"]
