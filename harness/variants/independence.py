"""Detection of scenarios whose answers do not depend on the variant.

Stubs that read neither the prompt nor the model answer all variants alike, so such a scenario cannot compare
prompts. Stubs of a judge read the agent's output, and judges use the same model in all variants, so these stubs
alone make no difference either.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from harness.errors import ManifestError
from harness.graph.names import has_caller
from harness.scenario.app_process import graph_outside_runs
from harness.scenario.cassette import cassette_name
from harness.scenario.judge import JUDGE_NODE
from harness.scenario.model import MUTATOR_NODE, Scenario
from harness.settings import Projects, RecordMode, Settings
from harness.world.stub_models import LLMStub

SAME_AS_BASELINE: Final = "the scenarios already run with the values that it sets"
_UNREAD: Final = "every answer came from stubs that read neither prompt nor model"


def no_difference_reasons(scenarios: Iterable[Scenario], projects: Projects) -> dict[str, str]:
    """Return the reason why each variant cannot differ from the baseline, by name; "" if it can."""
    found: dict[str, dict[str, None]] = {}
    for scenario in scenarios:
        reasons = found.setdefault(scenario.variant, {})
        if "" not in reasons:
            reasons[_no_difference_reason(scenario, projects)] = None
    return {name: "" if "" in reasons else " or ".join(reasons) for name, reasons in found.items()}


def _no_difference_reason(scenario: Scenario, projects: Projects) -> str:
    variation = scenario.variation
    if variation is None or variation.is_baseline:
        return "it is the baseline"
    if variation.is_same:
        return SAME_AS_BASELINE
    reads = variation.changes_graph or reads_requests(scenario, projects.of(scenario.file))
    return "" if reads else _UNREAD


def reads_requests(scenario: Scenario, settings: Settings) -> bool:
    """True if an answer to the agent may depend on the prompt or the model."""
    return (
        settings.record_mode is RecordMode.LIVE
        or cassette_name(scenario, settings) is not None
        or any(_answers_agent(stub, scenario, settings) for stub in _reading(scenario))
    )


def _reading(scenario: Scenario) -> list[LLMStub]:
    """Return the stubs that read the prompt or the model."""
    stubs = (stub for world in scenario.worlds for stub in world.llm)
    return [stub for stub in stubs if stub.when or stub.model or stub.args]


def _answers_agent(stub: LLMStub, scenario: Scenario, settings: Settings) -> bool:
    """True unless the stub answers only judges, or only the mutator of `harness evolve`."""
    other = next((node for node in (JUDGE_NODE, MUTATOR_NODE) if node in stub.nodes), None)
    if other is None:
        return True
    try:
        return has_caller(graph_outside_runs(scenario, settings), other)
    except ManifestError:  # the run reports it
        return False
