"""A digest of a scenario's expectations, to see if they changed between two runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

from harness.graph.to_json import to_json
from harness.scenario.model import Expectations, Scenario


def expectations_digest(scenario: Scenario, without_secrets: Callable[[Any], Any] | None) -> str:
    """Return 12 hexadecimal digits that change when anything expected changes, in any turn, or the `pass_score`.

    Secrets are removed first, so that the digest is the same on every machine.
    """
    expected = [
        scenario.pass_score,
        scenario.timeout_s,
        scenario.allow_unused,
        *map(_canonical_expectations, scenario.expectations),
    ]
    clean = without_secrets(expected) if without_secrets else expected
    return sha256(_canonical(clean).encode()).hexdigest()[:12]


_canonical: Final = json.JSONEncoder(sort_keys=True, default=to_json).encode


def _canonical_expectations(expect: Expectations) -> list[Any]:
    return [dict(expect.values), dict(expect.weights), {str(at): text for at, text in expect.prompts.items()}]
