"""Selection of the genomes that become parents or survive."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from harness.evolution.lineage import Individual

TOURNAMENT: Final = 3
"""Number of genomes that compete to be a parent."""

Selection = Callable[[Sequence[Individual], random.Random], Individual]


def ranked(population: Sequence[Individual]) -> list[Individual]:
    """Return each genome once, the fittest first; of equals, the earlier one first."""
    unique = {each.number: each for each in population}
    return sorted(unique.values(), key=lambda each: (-each.fitness, each.number))


def tournament(population: Sequence[Individual], draw: random.Random) -> Individual:
    """Return the fittest of some randomly drawn genomes."""
    return ranked([draw.choice(population) for _ in range(TOURNAMENT)])[0]


def roulette(population: Sequence[Individual], draw: random.Random) -> Individual:
    """Draw a genome with a probability proportional to its fitness; uniformly if all have fitness 0."""
    weights = [each.fitness for each in population]
    return draw.choices(population, weights)[0] if sum(weights) > 0 else draw.choice(population)


METHODS: Final[Mapping[str, Selection]] = {"tournament": tournament, "roulette": roulette}
