"""Crossover: a genome with each gene from one of two parents (uniform crossover; prompts are whole genes)."""

from __future__ import annotations

import random

from harness.evolution.genome import Genome
from harness.evolution.space import Space


def crossover(first: Genome, second: Genome, space: Space, draw: random.Random) -> Genome:
    """A genome whose every gene is that of the first parent or of the second."""
    child = first
    for kind, name in space.genes:
        if draw.random() < 0.5:
            child = child.with_gene(space, kind, name, second.gene(space, kind, name))
    return child
