"""Stubs of the mutator, the model that rewrites prompts in `harness evolve`.

They stand under `llm: {mutator: …}` in scenario files. A run of a scenario does not use them; they are removed
from its world, unless the agent has a node of that name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from harness.graph.model import Graph
from harness.graph.names import has_caller
from harness.world.spec import Stub, WorldSpec

MUTATOR_NODE: Final = "mutator"
"""The node name from which the mutator is called."""


def mutator_stubs(world: WorldSpec) -> tuple[Stub, ...]:
    """Return the stubs of the mutator, in order."""
    return tuple(stub for stub in world.llm if MUTATOR_NODE in stub.nodes)


def without_mutator(world: WorldSpec, graph: Graph) -> WorldSpec:
    """Return the world without the mutator's stubs, unless the graph has a node of that name."""
    others = tuple(stub for stub in world.llm if MUTATOR_NODE not in stub.nodes)
    if len(others) == len(world.llm) or has_caller(graph, MUTATOR_NODE):
        return world
    return replace(world, llm=others)
