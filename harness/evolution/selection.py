"""Selection: which genomes become parents, and which live on."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from harness.evolution.lineage import Individual

TOURNAMENT: Final = 3
"""Genomes that compete to be a parent."""

Selection = Callable[[Sequence[Individual], random.Random], Individual]


def ranked(population: Sequence[Individual]) -> list[Individual]:
    """Each genome once, the fittest first; of equals, the one found earlier."""
    unique = {each.number: each for each in population}
    return sorted(unique.values(), key=lambda each: (-each.fitness, each.number))


def tournament(population: Sequence[Individual], draw: random.Random) -> Individual:
    """The fittest of some that are drawn."""
    return ranked([draw.choice(population) for _ in range(TOURNAMENT)])[0]


def roulette(population: Sequence[Individual], draw: random.Random) -> Individual:
    """One drawn with a chance in proportion to its fitness; any, where no genome has any."""
    weights = [each.fitness for each in population]
    return draw.choices(population, weights)[0] if sum(weights) > 0 else draw.choice(population)


METHODS: Final[Mapping[str, Selection]] = {"tournament": tournament, "roulette": roulette}
