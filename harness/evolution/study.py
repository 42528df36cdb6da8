"""A whole search, from its arguments to its files.

study = Study(…)  ──▶ study.search.run() ──▶ study.confirm() ──▶ study.write()

The caller provides the function that runs scenarios.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from harness.budget import Budget, Expense
from harness.dialects.load import load_prompts, load_tunables
from harness.dialects.registry import dialect_named, dialect_of
from harness.errors import FormatError, HarnessError, Problem
from harness.evolution.config import Config
from harness.evolution.confirmation import confirmation, split
from harness.evolution.folder import CONFIRMATION, Patch, SearchFolder, fingerprints, patch_of, variants_file
from harness.evolution.genome import Genome, Mutation, space_of
from harness.evolution.lineage import FORMAT, GENOMES, MUTATIONS, Individual, Log, Score, read_individual
from harness.evolution.mutator import (
    MODEL,
    Mutator,
    MutatorAnswer,
    limit_failures,
    mutator_scenario,
    recombine,
)
from harness.evolution.search import Search
from harness.scenario.model import Scenario, load_request, mutator_stubs
from harness.scenario.score import suite_fitness
from harness.settings import Projects
from harness.source.document import real_path
from harness.variants.application import apply_variants, main_manifest
from harness.variants.independence import no_difference_reasons
from harness.world.stub_models import LLMStub

_UNSCRIPTED_CALL: Final = "UnscriptedCall"
"""Error that a genome may cause: with it the agent may make a call that no stub answers."""


def score_of(lines: Iterable[Mapping[str, Any]], fitness_function: str) -> Score:
    """Return the score of a genome from the results of its scenarios.

    With the fitness function `pass_rate`, a scenario scores the share of its repeats that passed.
    """
    scores: dict[str, list[float]] = {}
    weights: dict[str, float] = {}
    failures: list[str] = []
    unjudged: dict[str, None] = {}
    calls, costs = 0, []
    for line in lines:
        calls += line["usage"]["llm_calls"] or 0
        costs.append(line["usage"]["cost"] or 0.0)
        if line["verdict"] == "skipped":
            continue
        judged = line["verdict"] != "error"
        value = float(line["verdict"] == "passed") if fitness_function == "pass_rate" else line["score"]
        scores.setdefault(line["id"], []).append(min(value, 1.0) if judged else 0.0)
        weights[line["id"]] = line["weight"]
        if not judged:
            unjudged[line["id"]] = None
            failures.append(f"{line['scenario']}: {line['cause']}")
        failures += [
            f"{line['scenario']}: {check['name']}: {check['message']}"
            for check in line["checks"]
            if not check["passed"]
        ]
    means = {id_: math.fsum(values) / len(values) for id_, values in scores.items()}
    return Score(
        suite_fitness((weights[id_], mean) for id_, mean in means.items()),
        means,
        limit_failures(failures),
        tuple(unjudged),
        calls,
        math.fsum(costs),
    )


def environment_failure(lines: Iterable[Mapping[str, Any]]) -> str:
    """Return why scenarios could not be judged for a reason other than the genome; "" if there is no such reason."""
    for line in lines:
        error = line["error"] or {}
        of_genome = error.get("type") == _UNSCRIPTED_CALL or line["status"] == "invalid"
        if line["verdict"] == "error" and not of_genome:
            return f"{line['id']}: {line['cause'] or error.get('message') or line['status']}"
    return ""


def unpriced(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the models that were called and have no known price."""
    usages = (each for line in lines for each in line["usage"]["by_model"].items())
    return list(dict.fromkeys(model for model, usage in usages if usage.get("cost", 0.0) is None))


Line = Mapping[str, Any]
Run = Callable[[Sequence[Scenario], Path | None], Sequence[Line]]
"""Runs scenarios and returns the lines of their results; with a folder, it also writes them there.

Raises KeyboardInterrupt if it is asked to end.
"""


class NotScored(HarnessError):
    """A genome cannot be scored, for a reason other than the genome."""

    code = "not-scored"


@dataclass
class Study:
    """A search over the genes of a manifest.

    manifest     its path, as shown to users
    scenarios    those that run the manifest
    share        the share of them that is held out
    config_file  a file to include in the inputs, besides those the scenarios depend on
    run          runs scenarios
    fresh        True to delete an earlier search in the folder
    done         called after each generation

    Raises:
        SourceError: there are no genes, no answer can depend on a genome, or the folder has another search.
    """

    manifest: str
    scenarios: Sequence[Scenario]
    config: Config
    projects: Projects
    folder: Path
    seed: int
    budget: Budget
    share: float
    run: Run
    config_file: Path | None = None
    fresh: bool = False
    done: Callable[[Study], None] = lambda _study: None
    warnings: list[Problem] = field(default_factory=list)
    confirmed: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        first = self.scenarios[0]
        request = load_request(first, self.projects.of(first.file))
        self._prompts = load_prompts(request, first.dialect)
        self.space, warnings = space_of(
            self._prompts,
            load_tunables(request, first.dialect),
            self.config.mutation_types,
        )
        self.warnings = [*self.config.warnings, *warnings]
        if not self.space.genes:
            text = f"there is nothing to vary in {self.manifest}"
            raise FormatError([Problem("nothing-to-vary", text), *self.warnings])
        self.training, self.held_out = split(self.scenarios, self.share, self.seed)
        self._check_dependence()
        stubs = self.config.stubs or _mutator_stubs(self.scenarios)
        self.arguments = self._arguments()
        self._files = SearchFolder(self.folder, self.arguments, fresh=self.fresh)
        self.mutator = self._mutator(stubs)
        self.search = self._search()

    # ------------------------------------------------------------ before it starts

    def _check_dependence(self) -> None:
        """Raise FormatError if no stub of the scenarios reads anything that a genome changes."""
        genome = Genome()
        for id_, text in self.space.prompts.items():
            genome = genome.with_gene(self.space, "prompt", id_, f"{text} ")
        changed = apply_variants(self.scenarios, [genome.variant(self.space)], self.projects)
        no_difference = all(no_difference_reasons(changed, self.projects).values())
        if no_difference and not any(kind == "tools" for kind, _ in self.space.genes):
            text = "no genome can be better: every answer comes from stubs that read neither prompt nor model"
            hint = "give stubs a `when` that reads the prompt, or record the scenarios (cassette, --record-mode once)"
            raise FormatError(Problem("cannot-differ", text, self.scenarios[0].span, hint))

    def _arguments(self) -> dict[str, Any]:
        further = [self.config_file] if self.config_file is not None else []
        return {
            "seed": self.seed,
            "budget": str(self.budget) if self.budget.is_limited else None,
            "holdout": self.share,
            "config": self.config.as_json(),
            "scenarios": [each.id for each in self.scenarios],
            "files": fingerprints(self.scenarios, self.projects, further),
        }

    @property
    def resumed(self) -> int:
        """Number of genomes that were scored before the search was continued."""
        return len(self._log.known)

    def _mutator(self, stubs: Sequence[LLMStub]) -> Mutator | None:
        """Return the mutator; None if it has no stubs and no model is named, or if prompts are not varied."""
        if not stubs and self.config.model is None:
            return None
        if "prompt" not in self.space.kinds:
            return None
        first = self.scenarios[0]
        name = f"evolution/{first.manifests[0].stem.lower()}"
        log = Log(self.folder / MUTATIONS, lambda line: MutatorAnswer(**line))
        settings = self.projects.of(first.file)
        return Mutator(mutator_scenario(first, name), settings, stubs, log, self.config.model or MODEL)

    def _search(self) -> Search:
        self._log: Log[Individual] = Log(self.folder / GENOMES, read_individual)
        texts = list(self.space.prompts.values())
        mutator = self.mutator
        rewrite = (
            mutator.rewrite
            if mutator is not None
            else lambda _id, text, _failures, draw: recombine(text, texts, draw)
        )
        return Search(
            self.config,
            self.space,
            Mutation(self.space, self.config.mutation_rate, rewrite),
            self._score,
            self._log,
            self.seed,
            self.budget,
            mutator,
            reserved=2 * len(self.held_out) / len(self.training),
            done=lambda _search: self._generation_done(),
        )

    # ------------------------------------------------------------ while it runs

    def start(self) -> None:
        """Write the arguments of a new search, before any call is made."""
        if not self._files.earlier:
            self.write()

    def _generation_done(self) -> None:
        if len(self.search.generations) > len(self._files.earlier.get("generations", ())):
            self.write()
        self.done(self)

    def with_genome(self, scenarios: Sequence[Scenario], genome: Genome) -> list[Scenario]:
        """Return the scenarios with a genome."""
        return apply_variants(scenarios, [genome.variant(self.space)], self.projects)

    def _score(self, genome: Genome) -> Score:
        """Run the training scenarios with a genome, and return its score."""
        lines = self.run(self.with_genome(self.training, genome), None)
        why = environment_failure(lines)
        found = score_of(lines, self.config.fitness_function)
        if why or (genome.is_baseline and found.unjudged):
            what = "the manifest as it is" if genome.is_baseline else "a genome"
            why = why or f"{found.unjudged[0]}: {found.failures[0]}"
            raise NotScored(f"{what} cannot be scored: {why}")
        if self.budget.cost is not None and (models := unpriced(lines)):
            text = f"the budget is in US dollars, and the price of {', '.join(models)} is not known"
            hint = "set it in [tool.harness.prices], or give the budget in calls"
            raise FormatError(Problem("unknown-price", text, hint=hint))
        return found

    def confirm(self) -> None:
        """Compare the winner with the manifest on the held-out scenarios.

        Raises:
            KeyboardInterrupt: it was asked to end.
            NotScored: scenarios could not be judged.
        """
        winner = self.search.best
        if winner.genome.is_baseline or not self.held_out:
            return
        if self._files.earlier.get("confirmation") and self._files.earlier.get("winner") == winner.id:
            self.confirmed = self._files.earlier["confirmation"]
            return
        variant = winner.genome.variant(self.space)
        scenarios = [
            *self.with_genome(self.held_out, Genome()),
            *self.with_genome(self.held_out, winner.genome),
        ]
        lines = self.run(scenarios, self.folder / CONFIRMATION)
        if why := environment_failure(lines):
            raise NotScored(f"the winner cannot be confirmed: {why}")
        no_difference = no_difference_reasons(scenarios, self.projects)[variant.name]
        self.confirmed = confirmation(lines, variant.name, no_difference)

    # ------------------------------------------------------------ what is written

    @property
    def winner(self) -> Individual | None:
        """The best genome; None if none is better than the unchanged manifest."""
        if not self.search.individuals or self.search.best.genome.is_baseline:
            return None
        return self.search.best

    @property
    def spent(self) -> Expense:
        """The calls and cost of the search and the confirmation."""
        confirming = (self.confirmed or {}).get("spent") or {"calls": 0, "cost": 0.0}
        return self.search.spent + Expense(confirming["calls"], confirming["cost"])

    def document(self) -> dict[str, Any]:
        """Return the search as written to evolution.json."""
        search, winner, spent = self.search, self.winner, self.spent
        return {
            "format": FORMAT,
            "manifest": self.manifest,
            "seed": self.seed,
            "config": self.config.as_json(),
            "prompts": dict(self.space.prompts),
            "temperatures": dict(self.space.temperatures),
            "tools": {name: list(tools) for name, tools in self.space.tools.items()},
            "training": [each.id for each in self.training],
            "holdout": [each.id for each in self.held_out],
            "generations": [each.as_json() for each in search.generations],
            "stopped": search.stopped,
            "spent": {"calls": spent.calls, "cost": spent.cost},
            "mutator": None
            if self.mutator is None
            else {"asked": self.mutator.asked, "refused": self.mutator.refusals.total()},
            "winner": winner.id if winner is not None else None,
            "confirmation": self.confirmed,
            "arguments": self.arguments,
        }

    def write(self) -> None:
        """Write evolution.json and, when the search has stopped, the winner."""
        if self.search.stopped is not None and self.winner is not None:
            variants = variants_file(self.winner.genome, self.space)
            self._files.write(self.document(), variants=variants, patch=self.patch.text)
        else:
            self._files.write(self.document())

    @cached_property
    def root(self) -> Path:
        """The folder that the paths of the patch are relative to: the common parent of project and manifest."""
        project = real_path(self.projects.common(each.file for each in self.scenarios).project)
        files = [self._main, *(real_path(Path(each.where.file)) for each in self._prompts)]
        return Path(os.path.commonpath([project, *(file.parent for file in files)]))

    @cached_property
    def _main(self) -> Path:
        return main_manifest(self.scenarios[0].manifests[0], self.scenarios[0].dialect)

    @cached_property
    def patch(self) -> Patch:
        """The winner as a patch of the manifest's files."""
        assert self.winner is not None
        first = self.scenarios[0]
        name = first.dialect
        dialect = dialect_named(name) if name else dialect_of(self._main, first.manifest_span)
        return patch_of(self.winner.genome, self.space, self._prompts, self._main, dialect.yaml, self.root)

    def written_files(self) -> list[str]:
        """Return the names of the files in the folder."""
        return self._files.written_files()


def _mutator_stubs(scenarios: Sequence[Scenario]) -> tuple[LLMStub, ...]:
    """Return the mutator's stubs in these scenarios, each once: several scenarios may share a stub."""
    found = {str(stub.span): stub for each in scenarios for stub in mutator_stubs(each.world)}
    return tuple(found.values())
