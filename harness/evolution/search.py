"""The genetic algorithm.

    generation 0: the unchanged manifest, and mutations of it
    generation n: the elites of generation n - 1, and children: two selected parents are crossed over with
                  probability `crossover_rate`, and mutated
    stops         after `generations`, before it would exceed the budget, or after some time without improvement

Every decision has its own random generator, seeded with the seed, the generation and the index in it. So a
search that is continued after it was killed makes the same decisions, and takes scores from its log instead of
running again.

Source: Goldberg 1989, "Genetic Algorithms in Search, Optimization and Machine Learning", chapter 1.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from harness.budget import Budget, Expense
from harness.evolution.config import Config
from harness.evolution.genome import Genome, Mutation, Space, crossover
from harness.evolution.lineage import METHODS, Individual, Log, Origin, Score, damaged, ranked
from harness.evolution.mutator import Mutator

PATIENCE: Final = 5
"""Number of generations without a better genome after which a search stops."""
_TRIES: Final = 3
"""Number of mutations tried to make a child that is a new genome."""

StopReason = Literal["generations", "budget", "no improvement", "best possible", "interrupted"]


@dataclass(frozen=True)
class Generation:
    """A scored generation."""

    number: int
    population: tuple[Individual, ...]

    @property
    def best(self) -> Individual:
        """The fittest genome."""
        return ranked(self.population)[0]

    def as_json(self) -> dict[str, Any]:
        """Return the generation as written to evolution.json."""
        values = [each.fitness for each in self.population]
        mean = math.fsum(values) / len(values)
        return {
            "number": self.number,
            "population": [each.id for each in self.population],
            "best": self.best.id,
            "fitness": {"best": max(values), "mean": mean, "worst": min(values)},
        }


class _OutOfBudget(Exception):
    """Raised if another genome might exceed the budget."""


@dataclass
class Search:
    """A genetic search. Call `run` once.

    Args:
        config: the settings.
        space: the genes.
        mutation: the mutation operator.
        score: runs the training scenarios with a genome.
        log: genomes.jsonl.
        seed: the seed of all random decisions.
        budget: the limit on calls or cost.
        mutator: rewrites prompts, and counts what it spends; None if sentences are recombined.
        reserved: the cost of the later confirmation, as a multiple of the cost of scoring one genome.
        done: called after each generation.
    """

    config: Config
    space: Space
    mutation: Mutation
    score: Callable[[Genome], Score]
    log: Log[Individual]
    seed: int
    budget: Budget
    mutator: Mutator | None = None
    reserved: float = 0.0
    done: Callable[[Search], None] = lambda _search: None
    generations: list[Generation] = field(default_factory=list)
    individuals: list[Individual] = field(default_factory=list)
    stopped: StopReason | None = None
    _known: dict[str, Individual] = field(default_factory=dict)

    @property
    def baseline(self) -> Individual:
        """The unchanged manifest."""
        return self.individuals[0]

    @property
    def best(self) -> Individual:
        """The fittest genome so far; of equals, the first."""
        return ranked(self.individuals)[0]

    @property
    def spent(self) -> Expense:
        """The calls and the cost of scoring genomes and of the mutator."""
        scored = Expense(
            sum(each.score.calls for each in self.individuals),
            math.fsum(each.score.cost for each in self.individuals),
        )
        return scored + (self.mutator.spent if self.mutator is not None else Expense())

    def run(self) -> None:
        """Run the search until it stops.

        Raises:
            HarnessError: the mutator gives no answer, or a genome cannot be scored.
        """
        if self.mutator is not None:
            self.mutator.before_asking = self._check_budget
        try:
            for number in range(self.config.generations):
                self._generation(number)
                self.done(self)
                if self.best.fitness >= 1:
                    self.stopped = "best possible"
                    return
                if len(self.generations) - 1 - self.best.generation >= PATIENCE:
                    self.stopped = "no improvement"
                    return
            self.stopped = "generations"
        except _OutOfBudget:
            self.stopped = "budget"
        except KeyboardInterrupt:
            self.stopped = "interrupted"

    def _generation(self, number: int) -> None:
        before = self.generations[-1].population if self.generations else ()
        population = [] if not before else ranked(before)[: self.config.elite_size]
        try:
            while len(population) < self.config.population_size:
                draw = random.Random(f"{self.seed}/{number}/{len(population)}")
                if not before:
                    population.append(self._initial(draw, len(population)))
                else:
                    population.append(self._child(before, number, draw))
        except _OutOfBudget:
            if population:
                self.generations.append(Generation(number, tuple(population)))
                self.done(self)
            raise
        self.generations.append(Generation(number, tuple(population)))

    def _initial(self, draw: random.Random, place: int) -> Individual:
        """Return the genome at an index of generation 0: the baseline, or a mutation of it."""
        if place == 0:
            return self._score_genome(Genome(), 0, (), "baseline")
        parent = self.baseline
        self._check_budget()
        genome = self.mutation.mutate_one(parent.genome, parent.score.failures, draw)
        return self._score_genome(self._make_new(genome, parent, draw), 0, (parent,), "mutation")

    def _child(self, population: Sequence[Individual], number: int, draw: random.Random) -> Individual:
        self._check_budget()
        select = METHODS[self.config.selection_method]
        parents = [select(population, draw)]
        crossed = genome = parents[0].genome
        if draw.random() < self.config.crossover_rate:
            other = select(population, draw)
            crossed = genome = crossover(genome, other.genome, self.space, draw)
            if other.number != parents[0].number:
                parents.append(other)
        genome = self.mutation.mutate(genome, parents[0].score.failures, draw)
        if self.config.mutation_rate > 0:
            genome = self._make_new(genome, parents[0], draw)
        origin: Origin = "mutation"
        if len(parents) == 2:
            origin = "crossover" if genome == crossed else "crossover+mutation"
        return self._score_genome(genome, number, parents, origin)

    def _make_new(self, genome: Genome, parent: Individual, draw: random.Random) -> Genome:
        """Mutate the genome until it is new, in a few tries."""
        for _ in range(_TRIES):
            if genome.key not in self._known:
                return genome
            genome = self.mutation.mutate_one(genome, parent.score.failures, draw)
        return genome

    def _score_genome(
        self, genome: Genome, number: int, parents: Sequence[Individual], origin: Origin
    ) -> Individual:
        """Score a genome: from an equal genome of this search, from the log, or by running the scenarios."""
        if (known := self._known.get(genome.key)) is not None:
            return known
        changes = tuple(self._changes(parents[0].genome, genome)) if parents else ()
        ids = tuple(each.id for each in parents)
        logged = self.log.next()
        if logged is not None and logged.genome.key != genome.key:
            raise damaged(f"genome {logged.id} of this search differs from the one to be scored")
        made = logged
        if made is None:
            place = len(self.individuals)
            made = Individual(place, number, ids, origin, changes, genome, self.score(genome))
            self.log.append(made.as_json())
        self.individuals.append(made)
        self._known[genome.key] = made
        return made

    def _changes(self, before: Genome, after: Genome) -> list[str]:
        """Return descriptions of the differences between two genomes."""
        changes = []
        how = "rewritten by the mutator" if self.mutator is not None else "sentences recombined"
        for kind, name in self.space.genes:
            old, new = before.gene(self.space, kind, name), after.gene(self.space, kind, name)
            if old == new:
                continue
            if kind == "prompt":
                changes.append(f"prompt {name}: {how}")
            elif kind == "temperature":
                changes.append(f"temperature of {name}: {'not set' if old is None else f'{old:g}'} → {new:g}")
            else:
                words = [f"without {each}" for each in old if each not in new]
                words += [f"with {each}" for each in new if each not in old]
                changes.append(f"tools of {name}: {', '.join(words)}")
        return changes

    def _check_budget(self) -> None:
        """Raise _OutOfBudget if another genome, as costly as the costliest so far, would exceed the budget."""
        if not self.budget.is_limited:
            return
        costliest = Expense(
            max(each.score.calls for each in self.individuals),
            max(each.score.cost for each in self.individuals),
        )
        asked = Expense()
        if self.mutator is not None:
            asked = self.mutator.costliest if self.mutator.asked else Expense(1)
        if not self.budget.allows(self.spent + costliest + asked + costliest.times(self.reserved)):
            raise _OutOfBudget
