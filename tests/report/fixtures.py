"""Types of the fixtures."""

from collections.abc import Callable

from harness.scenario.outcome import CheckResult, Outcome

MakeOutcome = Callable[..., Outcome]
"""Makes an outcome. Keywords set fields of the Outcome, or of its Observation."""

MakeCheck = Callable[..., CheckResult]
"""Makes a failed check."""
