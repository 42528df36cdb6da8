"""Whether a scenario expects the same as another time it ran."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from harness.graph.to_json import to_json
from harness.scenario.model import Expectations, Scenario


def expectations_digest(scenario: Scenario, without_secrets: Callable[[Any], Any] | None) -> str:
    """Twelve digits that are others where it expects something else, of any turn, or asks for another score.

    Secrets are taken out first, so that they are the same on every machine.
    """
    said = [
        scenario.pass_score,
        scenario.timeout_s,
        scenario.allow_unused,
        *map(_said, scenario.expectations),
    ]
    clean = without_secrets(said) if without_secrets else said
    return sha256(json.dumps(clean, sort_keys=True, default=to_json).encode()).hexdigest()[:12]


def _said(expect: Expectations) -> list[Any]:
    return [dict(expect.values), dict(expect.weights), {str(at): text for at, text in expect.prompts.items()}]
