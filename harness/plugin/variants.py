"""`--harness-variants FILE`: runs each scenario once as each variant that applies to its manifest, `name[terse]`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.plugin.options import projects_of

if TYPE_CHECKING:
    from harness.plugin.item import ScenarioItem
    from harness.scenario.model import Scenario
    from harness.variants.application import Application
    from harness.variants.document import Variant

_applications_key = pytest.StashKey["Sequence[Application]"]()


def variant_items(config: pytest.Config, scenarios: Sequence[Scenario]) -> Iterator[tuple[str, Scenario]]:
    """Yield the name and the scenario of each item: one for each variant that applies.

    Raises:
        FormatError: the variants file is invalid, or a row of a table does not fit its scenario.
    """
    applications = _applications(config)
    if not applications:
        yield from ((scenario.name, scenario) for scenario in scenarios)
        return
    for scenario in scenarios:
        for application in applications:
            for varied in application.apply(scenario.whole()):
                yield (
                    f"{scenario.name}[{application.variant.name}]",
                    _with_warning(varied, application.variant),
                )


def _with_warning(varied: Scenario, variant: Variant) -> Scenario:
    """Return the scenario, with a warning if this variant of it equals the baseline."""
    if varied.variation is None or not varied.variation.is_same:
        return varied
    from dataclasses import replace

    from harness.errors import Problem
    from harness.variants.independence import SAME_AS_BASELINE

    text = f"'{variant.name}' is the same as the baseline: {SAME_AS_BASELINE}"
    problem = Problem("same-variant", text, variant.span, severity="warning")
    return replace(varied, warnings=(*varied.warnings, problem))


def check_all_apply(config: pytest.Config, items: Sequence[ScenarioItem]) -> None:
    """Check, when all files are collected, that each variant changes something in some manifest.

    Names in variants that no agent uses become warnings of the scenarios that run as these variants.

    Raises:
        FormatError: a variant changes a prompt, a model or a value that no manifest has.
    """
    applications = config.stash.get(_applications_key, [])
    if not applications:
        return
    from dataclasses import replace

    from harness.variants.application import check_applied
    from harness.variants.unused_names import unused_names

    check_applied(applications)
    variants = [application.variant for application in applications]
    scenarios = [item.scenario for item in items]
    for problem, names in unused_names(variants, scenarios, projects_of(config)).items():
        for item in items:
            if item.scenario.variant in names:
                item.scenario = replace(item.scenario, warnings=(*item.scenario.warnings, problem))


def _applications(config: pytest.Config) -> Sequence[Application]:
    if _applications_key not in config.stash:
        from harness.variants.application import Application
        from harness.variants.document import read_variants

        file = config.getoption("harness_variants", None)
        variants = read_variants(Path(config.invocation_params.dir, file)) if file else []
        config.stash[_applications_key] = [Application(each, projects_of(config)) for each in variants]
    return config.stash[_applications_key]
