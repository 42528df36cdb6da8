"""A genome: a manifest with changed prompts, temperatures and tools, stored as the differences from the manifest."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from jsonpatch import JsonPointer

from harness.dialects.dialect import Prompt as DialectPrompt
from harness.dialects.dialect import Tunable
from harness.errors import Problem, Span
from harness.source.document import DocumentPath
from harness.variants.document import BASELINE, Prompt, Variant

Kind = Literal["prompt", "temperature", "tools"]
MUTATION_TYPES: Final[Mapping[str, Kind]] = {
    "prompt_variation": "prompt",
    "temperature_adjustment": "temperature",
    "tool_selection": "tools",
}

_FIELDS: Final[Mapping[Kind, str]] = {"prompt": "prompts", "temperature": "temperatures", "tools": "tools"}
"""The field of `Space` and `Genome` with the genes of each kind."""


@dataclass(frozen=True)
class Space:
    """The genes of a manifest: prompts by id, temperatures and tools by agent or node.

    `places` are the locations of temperatures and tools in the manifest. Only genes of these `kinds` mutate.
    """

    prompts: Mapping[str, str]
    temperatures: Mapping[str, float | None] = field(default_factory=dict)
    tools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    places: Mapping[tuple[Kind, str], Tunable] = field(default_factory=dict)
    kinds: Sequence[Kind] = ("prompt", "temperature", "tools")

    @property
    def genes(self) -> list[tuple[Kind, str]]:
        """The genes that may mutate, in a fixed order."""
        return [(kind, name) for kind in self.kinds for name in getattr(self, _FIELDS[kind])]

    def pool(self, name: str) -> Mapping[str, Any]:
        """Return the tools that an agent or node can have, by name, in the order of the manifest."""
        return self.places["tools", name].pool


def space_of(
    prompts: Sequence[DialectPrompt], tunables: Sequence[Tunable], mutation_types: Sequence[str]
) -> tuple[Space, list[Problem]]:
    """Return the genes of a manifest with these prompts and tunables, and warnings about those left out.

    An id shared by different prompts is left out, since a variant would give all of them one text.
    """
    texts: dict[str, str] = {}
    ambiguous = [each for each in prompts if texts.setdefault(each.id, each.text) != each.text]
    ids = {each.id for each in ambiguous}
    problems = []
    for prompt in ambiguous:
        text = f"the prompt '{prompt.id}' is not varied: several prompts have this id"
        problems.append(Problem("ambiguous-prompt", text, prompt.where, severity="warning"))
    kinds = [MUTATION_TYPES[each] for each in mutation_types]
    found = Space(
        {id_: text for id_, text in texts.items() if text.strip() and id_ not in ids},
        {each.owner: each.value for each in tunables if each.kind == "temperature"},
        {each.owner: tuple(each.value) for each in tunables if each.kind == "tools"},
        {(each.kind, each.owner): each for each in tunables},
        kinds,
    )
    has = {kind for kind, _ in found.genes}
    for name in mutation_types:
        if MUTATION_TYPES[name] not in has:
            text = f"{name} has nothing to change: the manifest has no {_NOUNS[MUTATION_TYPES[name]]}"
            problems.append(Problem("nothing-to-vary", text, severity="note"))
    return found, problems


_NOUNS: Final[Mapping[Kind, str]] = {
    "prompt": "prompts",
    "temperature": "temperatures that can be varied",
    "tools": "lists of tools that can be varied",
}


_NOWHERE: Final = Span("genomes.jsonl", 1, 1)


@dataclass(frozen=True)
class Genome:
    """Differences from the manifest: prompts by id, temperatures and tools by agent or node."""

    prompts: Mapping[str, str] = field(default_factory=dict)
    temperatures: Mapping[str, float] = field(default_factory=dict)
    tools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_baseline(self) -> bool:
        """True if the genome is the unchanged manifest."""
        return not (self.prompts or self.temperatures or self.tools)

    @property
    def key(self) -> str:
        """A text that is equal for equal genomes, whatever the order of their genes."""
        return json.dumps(self.as_json(), sort_keys=True, ensure_ascii=False)

    def as_json(self) -> dict[str, Any]:
        """Return the genome as written to genomes.jsonl."""
        return {
            "prompts": dict(self.prompts),
            "temperatures": dict(self.temperatures),
            "tools": {name: list(tools) for name, tools in self.tools.items()},
        }

    def gene(self, space: Space, kind: Kind, name: str) -> Any:
        """Return the value of a gene, from the manifest if the genome does not change it."""
        own, manifests = getattr(self, _FIELDS[kind]), getattr(space, _FIELDS[kind])
        return own[name] if name in own else manifests[name]

    def with_gene(self, space: Space, kind: Kind, name: str, value: Any) -> Genome:
        """Return this genome with another value of a gene. A value equal to the manifest's is no difference."""
        part = _FIELDS[kind]
        own = {each: given for each, given in getattr(self, part).items() if each != name}
        if value != getattr(space, part)[name]:
            own[name] = value
        return replace(self, **{part: own})

    def variant(self, space: Space, name: str = "") -> Variant:
        """Return the genome as a variant. Without `name`, it is named by a hash that equal genomes share."""
        if self.is_baseline:
            return Variant(BASELINE, _NOWHERE)
        name = name or f"genome-{hashlib.sha256(self.key.encode()).hexdigest()[:12]}"
        spans = {f"prompts.{id_}": _NOWHERE for id_ in self.prompts} | {"edit": _NOWHERE}
        prompts = {id_: Prompt(text, _NOWHERE) for id_, text in self.prompts.items()}
        edit = tuple(
            {
                "op": "add" if kind == "temperature" else "replace",
                "path": JsonPointer.from_parts(path).path,
                "value": value,
            }
            for kind, path, value in self.values(space)
        )
        return Variant(name, _NOWHERE, prompts=prompts, edit=edit, spans=spans)

    def values(self, space: Space) -> Iterator[tuple[Kind, DocumentPath, Any]]:
        """Yield the temperatures and tool lists that differ: kind, path in the manifest, and new value."""
        for owner, temperature in self.temperatures.items():
            yield "temperature", space.places["temperature", owner].path, temperature
        for owner, tools in self.tools.items():
            place = space.places["tools", owner]
            yield "tools", place.path, [place.pool[name] for name in tools]


def crossover(first: Genome, second: Genome, space: Space, draw: random.Random) -> Genome:
    """Return a genome whose genes are each drawn from the first or the second parent."""
    child = first
    for kind, name in space.genes:
        if draw.random() < 0.5:
            child = child.with_gene(space, kind, name, second.gene(space, kind, name))
    return child


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
