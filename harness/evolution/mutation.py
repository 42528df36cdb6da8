"""Mutation: a gene of a genome becomes another.

prompt_variation        a model rewrites the prompt, or its sentences are recombined
temperature_adjustment  a normally distributed step, within 0 and 2
tool_selection          one tool less, or one more of those the manifest has

spec (LeafMesh): "EvolutionConfig", `mutation_types`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.evolution.genome import Genome
from harness.evolution.space import Kind, Space

HOTTEST: Final = 2.0
_UNWRITTEN: Final = 1.0
"""The temperature of a model that is given none."""
_STEP: Final = 0.3

Rewrite = Callable[[str, str, Sequence[str], random.Random], str | None]
"""Another text for a prompt: from its id, its text, what failed with it, and chance; None where there is none."""


@dataclass(frozen=True)
class Mutation:
    """Mutates genomes: each gene with the chance `rate`."""

    space: Space
    rate: float
    rewrite: Rewrite

    def of(self, genome: Genome, failures: Sequence[str], draw: random.Random) -> Genome:
        """The genome with each gene mutated by chance; `failures` are those of its parent."""
        for kind, name in self.space.genes:
            if draw.random() < self.rate:
                genome = self._mutated(genome, kind, name, failures, draw)
        return genome

    def one(self, genome: Genome, failures: Sequence[str], draw: random.Random) -> Genome:
        """The genome with one gene mutated."""
        return self._mutated(genome, *draw.choice(self.space.genes), failures, draw)

    def _mutated(
        self, genome: Genome, kind: Kind, name: str, failures: Sequence[str], draw: random.Random
    ) -> Genome:
        value: Any = genome.gene(self.space, kind, name)
        if kind == "prompt":
            found = self.rewrite(name, value, failures, draw)
            value = value if found is None else found
        elif kind == "temperature":
            value = _warmer_or_colder(value, draw)
        else:
            value = _one_less_or_more(value, list(self.space.pool(name)), draw)
        return genome.with_gene(self.space, kind, name, value)


def _warmer_or_colder(value: float | None, draw: random.Random) -> float:
    """Another temperature, in tenths."""
    before = _UNWRITTEN if value is None else value
    after = round(min(max(before + draw.gauss(0, _STEP), 0.0), HOTTEST), 1)
    if after == before:
        after = round(before + _up_or_down(before, draw), 1)
    return after


def _up_or_down(before: float, draw: random.Random) -> float:
    if before >= HOTTEST:
        return -0.1
    return 0.1 if before < 0.1 or draw.random() < 0.5 else -0.1


def _one_less_or_more(tools: tuple[str, ...], pool: Sequence[str], draw: random.Random) -> tuple[str, ...]:
    """The tools in the order of the pool, without one that is drawn, or with it if it was not there."""
    drawn = draw.choice(pool)
    if drawn in tools:
        return tuple(name for name in tools if name != drawn)
    return tuple(sorted([*tools, drawn], key=pool.index))
