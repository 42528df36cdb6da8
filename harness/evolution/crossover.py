"""Uniform crossover: each gene comes from one of two parents. A prompt is one gene."""

from __future__ import annotations

import random

from harness.evolution.genome import Genome
from harness.evolution.space import Space


def crossover(first: Genome, second: Genome, space: Space, draw: random.Random) -> Genome:
    """Return a genome whose genes are each drawn from the first or the second parent."""
    child = first
    for kind, name in space.genes:
        if draw.random() < 0.5:
            child = child.with_gene(space, kind, name, second.gene(space, kind, name))
    return child
