"""Checks of the results of a run: its final state and its output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.matchers.json_schema import schema_errors
from harness.matchers.value import compare, is_matcher
from harness.scenario.checks.finding import Finding, pass_or_fail
from harness.scenario.diff import difference_text
from harness.scenario.outcome import JSON, Observation


def state(expected: Any, observed: Observation) -> Finding:
    """The final state matches (mappings as subsets); else the share of leaf keys that match."""
    return _value(expected, observed.state)


def output(expected: Any, observed: Observation) -> Finding:
    """The result matches (mappings as subsets); else the share of leaf keys that match."""
    return _value(expected, observed.output)


def state_schema(expected: Any, observed: Observation) -> Finding:
    """The final state is valid under this JSON Schema (2020-12); else 0."""
    return _valid(expected, observed.state)


def output_schema(expected: Any, observed: Observation) -> Finding:
    """The result is valid under this JSON Schema (2020-12); else 0."""
    return _valid(expected, observed.output)


def _value(expected: Any, actual: JSON) -> Finding:
    compared = compare(expected, actual)
    return Finding(compared.score, _expected_part(expected, actual), difference_text(compared))


def _valid(schema: Any, actual: JSON) -> Finding:
    errors = schema_errors(schema, actual)
    return pass_or_fail(not errors, actual, "\n".join(errors))


def _expected_part(expected: Any, actual: JSON) -> JSON:
    """Return the part of `actual` whose keys `expected` names."""
    if not (isinstance(expected, Mapping) and isinstance(actual, Mapping)) or is_matcher(expected):
        return actual
    return {key: _expected_part(wanted, actual[key]) for key, wanted in expected.items() if key in actual}
