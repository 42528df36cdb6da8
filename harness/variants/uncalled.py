"""Models that variants of an app replace, and that no run called: their names are probably misspelt.

The models of a manifest are known before anything runs (`application`); those of an app only afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.errors import Problem
from harness.scenario.app_process import is_app
from harness.scenario.model import Scenario
from harness.source.display import did_you_mean
from harness.variants.document import Variant


def uncalled_models(
    variants: Iterable[Variant], scenarios: Sequence[Scenario], lines: Iterable[Mapping[str, Any]]
) -> list[Problem]:
    """Return a warning for each such model.

    Args:
        variants: all that were scored, the baseline included.
        scenarios: those that ran, with each variant that applies.
        lines: the lines of their results.
    """
    varied = [each for each in variants if each.models and _is_of_apps(each, scenarios)]
    if not varied:
        return []
    called: dict[str, dict[str, None]] = {}
    for line in lines:
        names = called.setdefault(line["variant"], {})
        names |= {call["name"]: None for call in line["calls"] if call["kind"] == "llm"}
    baseline = next(each.name for each in variants if each.is_baseline)
    known = called.get(baseline, {})
    found = []
    for variant in varied:
        # With another manifest or other variables, the app may call other models than the baseline does.
        other = called.get(variant.name, {}) if variant.manifest or variant.env else {}
        for name, new in variant.models.items():
            if known and name not in known and new not in other:
                text = (
                    f"no run of '{baseline}' called a model '{name}', so '{variant.name}' does not replace it"
                )
                hint, span = did_you_mean(name, known), variant.spans[f"models.{name}"]
                found.append(Problem("unknown-model", text, span, hint, severity="warning"))
    return found


def _is_of_apps(variant: Variant, scenarios: Iterable[Scenario]) -> bool:
    """True if all scenarios that ran with a variant run apps."""
    own = [each for each in scenarios if each.variant == variant.name]
    return bool(own) and all(is_app(each.manifests[0], each.dialect) for each in own)
