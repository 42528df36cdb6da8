"""Mutation of genomes, gene by gene.

prompt_variation        a model rewrites the prompt, or its sentences are recombined
temperature_adjustment  a normally distributed step, within 0 and 2
tool_selection          one tool is removed, or one of the manifest's tools is added

spec (LeafMesh): "EvolutionConfig", `mutation_types`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.evolution.genome import Genome
from harness.evolution.space import Kind, Space

MAX_TEMPERATURE: Final = 2.0
_DEFAULT_TEMPERATURE: Final = 1.0
"""The assumed temperature of a model for which none is set."""
_STEP_SIZE: Final = 0.3

Rewrite = Callable[[str, str, Sequence[str], random.Random], str | None]
"""Returns a new text for a prompt, or None, from its id, its text, the failures with it, and a random generator."""


@dataclass(frozen=True)
class Mutation:
    """A mutation operator that changes each gene with probability `rate`."""

    space: Space
    rate: float
    rewrite: Rewrite

    def mutate(self, genome: Genome, failures: Sequence[str], draw: random.Random) -> Genome:
        """Return the genome with each gene mutated with probability `rate`; `failures` are those of its parent."""
        for kind, name in self.space.genes:
            if draw.random() < self.rate:
                genome = self._mutate_gene(genome, kind, name, failures, draw)
        return genome

    def mutate_one(self, genome: Genome, failures: Sequence[str], draw: random.Random) -> Genome:
        """Return the genome with one random gene mutated."""
        return self._mutate_gene(genome, *draw.choice(self.space.genes), failures, draw)

    def _mutate_gene(
        self, genome: Genome, kind: Kind, name: str, failures: Sequence[str], draw: random.Random
    ) -> Genome:
        value: Any = genome.gene(self.space, kind, name)
        if kind == "prompt":
            found = self.rewrite(name, value, failures, draw)
            value = value if found is None else found
        elif kind == "temperature":
            value = _mutate_temperature(value, draw)
        else:
            value = _mutate_tools(value, list(self.space.pool(name)), draw)
        return genome.with_gene(self.space, kind, name, value)


def _mutate_temperature(value: float | None, draw: random.Random) -> float:
    """Return another temperature, rounded to tenths."""
    before = _DEFAULT_TEMPERATURE if value is None else value
    after = round(min(max(before + draw.gauss(0, _STEP_SIZE), 0.0), MAX_TEMPERATURE), 1)
    if after == before:
        after = round(before + _random_tenth(before, draw), 1)
    return after


def _random_tenth(before: float, draw: random.Random) -> float:
    if before >= MAX_TEMPERATURE:
        return -0.1
    return 0.1 if before < 0.1 or draw.random() < 0.5 else -0.1


def _mutate_tools(tools: tuple[str, ...], pool: Sequence[str], draw: random.Random) -> tuple[str, ...]:
    """Return the tools, in the order of the pool, with one random tool of the pool removed or added."""
    drawn = draw.choice(pool)
    if drawn in tools:
        return tuple(name for name in tools if name != drawn)
    return tuple(sorted([*tools, drawn], key=pool.index))
