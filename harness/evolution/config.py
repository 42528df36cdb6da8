"""The configuration of a search: LeafMesh's `evolution` section with its defaults, in a manifest or another file.

    defaults ◀── the section of the manifest ◀── --config FILE ◀── options of the command line

spec: "EvolutionConfig". The keys `llm` and `mutator` are the harness's own, and allowed in a file only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from harness.errors import FormatError, Problem, Span
from harness.evolution.genome import MUTATION_TYPES
from harness.evolution.lineage import METHODS
from harness.scenario.model import MUTATOR_NODE
from harness.source.display import did_you_mean
from harness.source.document import Document, read
from harness.source.models import in_file_order, validate
from harness.world.field_types import LEFT_OUT, Name, Share, Strict
from harness.world.spec import WorldSpec
from harness.world.stub_models import LLMStub

STRATEGIES: Final = ("genetic",)
FITNESS: Final = ("task_completion_rate", "pass_rate")
"""Fitness functions: the weighted mean of the scores of scenarios (docs/scenario-format.md, "Fitness"), or the
weighted share of scenarios that pass."""

_Whole = Annotated[int, Field(ge=1)]
_Mutation = Literal["prompt_variation", "temperature_adjustment", "tool_selection"]


class EvolutionKeys(Strict, title="an evolution section"):
    """The keys of an `evolution` section."""

    enabled: bool = LEFT_OUT
    strategy: str = LEFT_OUT
    population_size: _Whole = LEFT_OUT
    generations: _Whole = LEFT_OUT
    mutation_rate: Share = LEFT_OUT
    crossover_rate: Share = LEFT_OUT
    elite_size: _Whole = LEFT_OUT
    mutation_types: Annotated[list[_Mutation], Field(min_length=1)] = LEFT_OUT
    fitness_function: str = LEFT_OUT
    selection_method: str = LEFT_OUT
    test_scenarios: list[Any] = LEFT_OUT


class ConfigFile(EvolutionKeys, title="a configuration of a search"):
    """A file with the keys of the section, and the model that rewrites prompts."""

    mutator: Name = LEFT_OUT
    llm: dict[str, list[Any]] = LEFT_OUT


@dataclass(frozen=True)
class Config:
    """The configuration of a search.

    model  the model of the mutator; None if none is named
    stubs  scripted answers of the mutator
    spans  the locations of the keys
    """

    strategy: str = "genetic"
    population_size: int = 20
    generations: int = 50
    mutation_rate: float = 0.1
    crossover_rate: float = 0.7
    elite_size: int = 2
    mutation_types: tuple[str, ...] = tuple(MUTATION_TYPES)
    fitness_function: str = FITNESS[0]
    selection_method: str = "tournament"
    model: str | None = None
    stubs: tuple[LLMStub, ...] = ()
    spans: Mapping[str, Span] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the configuration as written to evolution.json."""
        keys = [key for key in EvolutionKeys.model_fields if key not in ("enabled", "test_scenarios")]
        found = {key: getattr(self, key) for key in keys}
        return {**found, "mutation_types": list(self.mutation_types), "mutator": self.model}


def section_config(section: Document | None) -> Config:
    """Return the configuration in the `evolution` section of a manifest; the defaults without one.

    Unknown keys are warnings, as they are in the manifest.

    Raises:
        FormatError: lists everything that is wrong with the section.
    """
    if section is None:
        return Config()
    unknown = [str(key) for key in section.value if key not in EvolutionKeys.model_fields]
    warnings = [
        Problem(
            "unknown-key",
            f"unknown key '{key}' in the evolution section: it changes nothing",
            section.key_span((key,)),
            did_you_mean(key, EvolutionKeys.model_fields),
            "warning",
        )
        for key in unknown
    ]
    keys = validate(EvolutionKeys, section.without(*unknown), error=FormatError)
    return _updated(Config(warnings=tuple(warnings)), keys, section)


def with_file(config: Config, path: Path) -> Config:
    """Return the configuration with the values of a file, which override its own.

    Raises:
        FormatError: lists everything that is wrong with the file.
    """
    document = read(path, yaml="1.2", error=FormatError)
    keys = validate(ConfigFile, document, error=FormatError)
    problems = []
    if keys.test_scenarios is not None:
        text = "test_scenarios belong in a manifest: name scenario files after the manifest instead"
        problems.append(Problem("bad-value", text, document.key_span(("test_scenarios",))))
    for node in keys.llm or {}:
        if node != MUTATOR_NODE:
            text = f"'{node}' is not called here: only the mutator is"
            hint = did_you_mean(node, [MUTATOR_NODE]) or "write answers of agents into scenario files"
            problems.append(Problem("unknown-name", text, document.key_span(("llm", node)), hint))
    if problems:
        raise FormatError(in_file_order(problems))
    stubs = config.stubs
    if keys.llm is not None:
        part = document.with_value({"llm": keys.llm})
        stubs = tuple(validate(WorldSpec, part, error=FormatError).placed(part).llm)
    found = _updated(config, keys, document)
    return replace(found, stubs=stubs, model=keys.mutator or config.model)


def _updated(config: Config, keys: EvolutionKeys, document: Document) -> Config:
    written: dict[str, Any] = {
        key: getattr(keys, key)
        for key in EvolutionKeys.model_fields
        if key not in ("enabled", "test_scenarios") and getattr(keys, key) is not None
    }
    if "mutation_types" in written:
        written["mutation_types"] = tuple(dict.fromkeys(written["mutation_types"]))
    spans = {**config.spans, **{key: document.span((key,)) for key in written}}
    warnings = [*config.warnings]
    if keys.enabled is False:
        text = "enabled: false changes nothing here: the search was asked for by its command"
        warnings.append(Problem("without-effect", text, document.span(("enabled",)), severity="warning"))
    return replace(config, **written, spans=spans, warnings=tuple(warnings))


def with_options(config: Config, *, population: int | None, generations: int | None) -> Config:
    """Return the configuration with the values of the command line, which override its own, after validating it.

    Raises:
        FormatError: lists everything that is wrong with the result.
    """
    spans = dict(config.spans)
    if population is not None:
        config = replace(config, population_size=population)
        spans.pop("population_size", None)
    if generations is not None:
        config = replace(config, generations=generations)
    if "elite_size" not in spans or config.population_size == 1:  # a population of one has no elites
        config = replace(config, elite_size=min(config.elite_size, config.population_size - 1))
    config = replace(config, spans=spans)
    problems = list(_problems(config))
    if problems:
        raise FormatError(in_file_order(problems))
    return config


def _problems(config: Config) -> Iterator[Problem]:
    known: Sequence[tuple[str, Sequence[str]]] = (
        ("strategy", STRATEGIES),
        ("fitness_function", FITNESS),
        ("selection_method", tuple(METHODS)),
    )
    for key, names in known:
        value = getattr(config, key)
        if value not in names:
            text = f"{key}: '{value}' is not known here"
            hint = did_you_mean(value, names) or f"known: {', '.join(names)}"
            yield Problem("bad-value", text, config.spans.get(key), hint)
    if config.elite_size >= config.population_size:
        text = f"a population of {config.population_size} with {config.elite_size} elites has no room for new genomes"
        at = config.spans.get("elite_size") or config.spans.get("population_size")
        hint = "elite_size must be smaller than population_size"
        yield Problem("bad-value", text, at, hint)
