"""What the fixtures of these tests give."""

from collections.abc import Callable

from harness.scenario.outcome import CheckResult, Outcome

MakeOutcome = Callable[..., Outcome]
"""Makes an outcome; keywords go to the Outcome, or to what was observed where that has the field."""

MakeCheck = Callable[..., CheckResult]
"""Makes a check that failed."""
