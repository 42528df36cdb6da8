"""Stubs of the mutator, the model that rewrites prompts in `harness evolve`.

They stand under `llm: {mutator: …}` in scenario files, and answer nothing in a run of a scenario: there they are left
out, unless the agent has a node of that name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from harness.graph.model import Graph
from harness.graph.names import has_caller
from harness.world.spec import Stub, WorldSpec

MUTATOR_NODE: Final = "mutator"
"""The mutator is called from a node of this name."""


def mutator_stubs(world: WorldSpec) -> tuple[Stub, ...]:
    """The stubs that are written for the mutator, in order."""
    return tuple(stub for stub in world.llm if MUTATOR_NODE in stub.nodes)


def without_mutator(world: WorldSpec, graph: Graph) -> WorldSpec:
    """The world of a run of this graph, without the stubs of a mutator that is no node of it."""
    others = tuple(stub for stub in world.llm if MUTATOR_NODE not in stub.nodes)
    if len(others) == len(world.llm) or has_caller(graph, MUTATOR_NODE):
        return world
    return replace(world, llm=others)
