"""The files of a search: every genome with its score and parents, and the state of the search.

    genomes.jsonl   a line per genome, appended as soon as it is scored; a truncated last line is dropped
    evolution.json  the search as a whole, rewritten after each generation

They contain no real times: equal searches write equal bytes, also if they were killed and continued.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeVar

from harness.errors import FormatError, Problem, Span
from harness.evolution.genome import Genome
from harness.source.document import shown_path

GENOMES: Final = "genomes.jsonl"
EVOLUTION: Final = "evolution.json"
MUTATIONS: Final = "mutations.jsonl"
FORMAT: Final = "harness-evolution/1"

ANEW: Final = "start anew with --fresh, or in another folder (--out DIR)"


def damaged(text: str, where: Span | None = None) -> FormatError:
    """Return the error for files of an earlier search that cannot be continued."""
    return FormatError(Problem("evolution-damaged", text, where, ANEW))


Origin = Literal["baseline", "mutation", "crossover", "crossover+mutation"]
Line = TypeVar("Line")


@dataclass(frozen=True)
class Score:
    """The score of a genome on the training scenarios.

    scores    by scenario id, the mean of its repeats
    failures  messages of failed checks, for the mutator
    unjudged  the scenarios that could not be judged; they score 0
    """

    fitness: float
    scores: Mapping[str, float]
    failures: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()
    calls: int = 0
    cost: float = 0.0


@dataclass(frozen=True)
class Individual:
    """A scored genome. `changes` describes the differences from its first parent."""

    number: int
    generation: int
    parents: tuple[str, ...]
    origin: Origin
    changes: tuple[str, ...]
    genome: Genome
    score: Score

    @property
    def id(self) -> str:
        """The name of the genome in files."""
        return f"g{self.number}"

    @property
    def fitness(self) -> float:
        """The fitness, 0 to 1."""
        return self.score.fitness

    def as_json(self) -> dict[str, Any]:
        """Return the line of genomes.jsonl."""
        return {
            "id": self.id,
            "generation": self.generation,
            "parents": self.parents,
            "origin": self.origin,
            "changes": self.changes,
            **self.genome.as_json(),
            **vars(self.score),
        }


def read_individual(line: Mapping[str, Any]) -> Individual:
    """Return the scored genome of a line of genomes.jsonl.

    Raises:
        KeyError, TypeError, ValueError: the line is not one.
    """
    genome = Genome(
        dict(line["prompts"]),
        dict(line["temperatures"]),
        {name: tuple(tools) for name, tools in line["tools"].items()},
    )
    score = Score(
        float(line["fitness"]),
        dict(line["scores"]),
        tuple(line["failures"]),
        tuple(line["unjudged"]),
        int(line["calls"]),
        float(line["cost"]),
    )
    return Individual(
        int(line["id"].removeprefix("g")),
        int(line["generation"]),
        tuple(line["parents"]),
        line["origin"],
        tuple(line["changes"]),
        genome,
        score,
    )


class Log(Generic[Line]):
    """A file of JSON lines to which a search appends, and which it reads when it is continued."""

    def __init__(self, path: Path, read: Callable[[Mapping[str, Any]], Line]) -> None:
        self._path = path
        self.known: list[Line] = list(self._read_lines(read))
        self._at = 0

    def next(self) -> Line | None:
        """Return the next line of the earlier search; None if this search has gone further."""
        self._at += 1
        return self.known[self._at - 1] if self._at <= len(self.known) else None

    def append(self, line: Mapping[str, Any]) -> None:
        """Append a line, and flush it to the operating system.

        Raises:
            OSError: it cannot be written.
        """
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def _read_lines(self, read: Callable[[Mapping[str, Any]], Line]) -> Iterator[Line]:
        """Yield the lines of the file, and truncate an incomplete last line.

        Raises:
            FormatError: a line is malformed (`evolution-damaged`).
        """
        data = self._path.read_bytes() if self._path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        if whole != data:
            with self._path.open("rb+") as file:
                file.truncate(len(whole))
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                yield read(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                text = f"this line cannot be read: {type(error).__name__} {error}"
                raise damaged(text, Span(shown_path(self._path), number, 1)) from None


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
