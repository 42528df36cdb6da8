"""Whether what answers a scenario can tell a variant from the baseline.

Stubs that read neither the prompt nor the model answer all variants alike: such a scenario says nothing of a prompt.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.scenario.cassette import cassette_name
from harness.scenario.model import Scenario
from harness.scenario.mutator import MUTATOR_NODE
from harness.settings import Projects, RecordMode
from harness.world.spec import Stub


def can_differ(scenario: Scenario, projects: Projects) -> bool:
    """True if a run of this scenario, which is varied, may end in another way than the baseline's."""
    variation = scenario.variation
    if variation is None or variation.is_baseline:
        return False
    settings = projects.of(scenario.file)
    return (
        variation.changes_graph
        or settings.record_mode is RecordMode.LIVE
        or cassette_name(scenario, settings) is not None
        or any(_reads(stub) for stub in _stubs(scenario))
    )


def _reads(stub: Stub) -> bool:
    return bool(stub.when or stub.model or stub.args)


def _stubs(scenario: Scenario) -> Iterator[Stub]:
    for world in scenario.worlds:
        yield from (stub for stub in world.llm if MUTATOR_NODE not in stub.nodes)
