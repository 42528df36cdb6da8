"""The checks of `expect`. `CHECKS` lists them; the docstring of each is its row in the format's documentation."""

from harness.scenario.checks.run import CHECKS, Gate, run_checks

__all__ = ["CHECKS", "Gate", "run_checks"]
