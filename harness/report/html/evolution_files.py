"""Read score.json, and the files of an evolution: evolution.json and genomes.jsonl (docs/evolution.md)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NotRequired, TypedDict

import msgspec
from msgspec import Meta, Struct

from harness.errors import FormatError, Problem, Span
from harness.report.reading import Amount, Count, Share, decoding_problem
from harness.source.document import shown_path

Signed = Annotated[float, Meta(ge=-1e15, le=1e15)]


class Difference(TypedDict):
    """The difference in fitness to the baseline."""

    fitness: Signed
    low: Signed | None
    high: Signed | None
    p: float
    verdict: Literal["better", "worse", "no evidence"] | None
    scenarios: NotRequired[Count]
    needed: NotRequired[Count | None]


class Variant(TypedDict):
    """The results of a variant, with percentiles of virtual seconds. `stopped` says why it did not run through."""

    name: str
    runs: Count
    pass_rate: Share | None
    fitness: Share | None
    latency: dict[str, Amount | None]
    tokens: Count
    cost: Amount | None
    difference: Difference | None
    answers: NotRequired[dict[str, Count]]
    note: NotRequired[str | None]
    stopped: NotRequired[str | None]


class ScenarioChange(TypedDict):
    """A scenario with another score or verdict than with the baseline, and the checks that caused it."""

    id: str
    variant: str
    before: Share
    after: Share
    verdicts: NotRequired[tuple[str, str]]
    checks: NotRequired[list[str]]


class Score(TypedDict):
    """The score of variants, the baseline first."""

    format: Literal["harness-score/1"]
    baseline: str
    variants: Annotated[list[Variant], Meta(min_length=1)]
    changed: list[ScenarioChange]
    pareto: list[str]


def read_score(file: Path) -> Score:
    """Read a score.json.

    Raises:
        FormatError: it cannot be read (`score-damaged`).
    """
    try:
        raw = file.read_bytes()
    except OSError as error:
        message = f"cannot read the score {shown_path(file)}: {error.strerror or error}"
        raise FormatError(Problem("score-damaged", message)) from None
    try:
        return msgspec.json.decode(raw, type=Score)
    except (ValueError, RecursionError) as error:
        found = decoding_problem(raw, error, "harness-score/1")
        text = f"not {found.expected or 'a score'}: {found.text}"
        place = Span(shown_path(file), found.line, found.column)
        hint = found.hint or "run `harness score` again"
        raise FormatError(Problem("score-damaged", text, place, hint)) from None


EVOLUTION: Final = "evolution.json"
GENOMES: Final = "genomes.jsonl"

Varied = dict[str, Any]
"""Temperatures, or lists of tools, by agent or node."""


class Genome(Struct, frozen=True):
    """A genome: its changes to the manifest, its origin and its results.

    Generations are numbered from 0 in files, and from 1 on the page.
    """

    id: str
    generation: Count
    parents: list[str]
    origin: str
    fitness: Share | None
    changes: list[str] = []
    prompts: dict[str, str] = {}
    temperatures: Varied = {}
    tools: Varied = {}
    scores: dict[str, Share | None] = {}
    failures: list[str] = []
    calls: Count = 0
    cost: Amount | None = None


class Fitness(Struct, frozen=True):
    """The fitness of a generation."""

    best: Share | None
    mean: Share | None
    worst: Share | None


class Generation(Struct, frozen=True):
    """A generation. Its population includes elites of earlier ones."""

    number: Count
    population: list[str]
    best: str | None
    fitness: Fitness


class Confirmation(Struct, frozen=True):
    """The comparison of the winner with the manifest, on scenarios that the search did not use."""

    scenarios: Count | list[str]
    baseline: Any
    winner: Any
    difference: Difference | None
    verdict: Literal["better", "worse", "no evidence"] | None
    note: str | None = None


class Spending(Struct, frozen=True):
    """Usage of models by the search."""

    calls: Count = 0
    cost: Amount | None = None


class Mutator(Struct, frozen=True):
    """The number of prompts requested from the mutator, and of its answers that were unusable."""

    asked: Count = 0
    refused: Count = 0


class Search(Struct, frozen=True):
    """The content of evolution.json."""

    format: Literal["harness-evolution/1"]
    manifest: str
    generations: list[Generation]
    stopped: str | None
    spent: Spending
    winner: str | None
    confirmation: Confirmation | None
    seed: int | None = None
    mutator: Mutator | None = None
    training: list[str] = []
    holdout: list[str] = []
    prompts: dict[str, str] = {}
    temperatures: Varied = {}
    tools: Varied = {}


@dataclass(frozen=True)
class Evolution:
    """An evolution: its search, and its genomes by id, in order."""

    search: Search
    genomes: dict[str, Genome]

    @property
    def baseline(self) -> Genome | None:
        """The genome of the manifest itself."""
        return next((each for each in self.genomes.values() if each.origin == "baseline"), None)


def read_evolution(folder: Path) -> Evolution:
    """Read the evolution of a folder. An incomplete last genome is skipped: the search was killed while writing it.

    Raises:
        FormatError: a file is missing or damaged (`evolution-missing`, `evolution-damaged`).
    """
    file = folder / EVOLUTION
    raw = _content(file)
    try:
        search = msgspec.json.decode(raw, type=Search)
    except (ValueError, RecursionError) as error:
        raise _damaged(file, raw, error) from None
    return Evolution(search, _genomes(folder / GENOMES))


def _genomes(file: Path) -> dict[str, Genome]:
    decoder = msgspec.json.Decoder(Genome)
    lines = _content(file).split(b"\n")
    whole, rest = lines[:-1], lines[-1]
    found: dict[str, Genome] = {}
    for number, line in enumerate([*whole, *([rest] if rest else [])], start=1):
        try:
            genome = decoder.decode(line)
        except (ValueError, RecursionError) as error:
            if number > len(whole):  # cut off
                break
            raise _damaged(file, line, error, number) from None
        found[genome.id] = genome
    return found


def _damaged(file: Path, raw: bytes, error: Exception, line: int | None = None) -> FormatError:
    """Return the error for an invalid evolution.json, or for an invalid line of genomes.jsonl."""
    found = decoding_problem(raw, error, None if line else "harness-evolution/1")
    text = f"not {found.expected or ('a genome' if line else 'an evolution')}: {found.text}"
    place = Span(shown_path(file), line or found.line, found.column)
    return FormatError(Problem("evolution-damaged", text, place, found.hint))


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        message = f"cannot read {shown_path(file)}: {error.strerror or error}"
        hint = "name the folder that `harness evolve` wrote"
        raise FormatError(Problem("evolution-missing", message, hint=hint)) from None
