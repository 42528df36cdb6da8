"""Terminal output of `harness evolve`: the setup, a line per generation, and the result."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from harness.evolution.confirmation import why_too_few
from harness.evolution.folder import PATCH
from harness.evolution.lineage import Individual
from harness.evolution.search import PATIENCE
from harness.evolution.study import Study
from harness.report.formatting import cost, p_value, plural, with_interval
from harness.report.progress import duration
from harness.source.display import printable
from harness.time.real import real

_STOPPED: Final = {
    "generations": "all generations are done",
    "budget": "another genome might exceed the budget",
    "no improvement": f"no better genome in {PATIENCE} generations",
    "best possible": "no genome can be better",
    "interrupted": "interrupted: the same command continues the search",
}
_MAX_DIFF_LINES: Final = 60
_MAX_REASONS: Final = 3


@dataclass
class Report:
    """Prints the progress and the result of a search.

    `echo` prints a line; with `err=True`, on standard error.
    """

    echo: Callable[..., object]
    _began: float = field(default_factory=real.monotonic)
    _scored: int = 0

    def start(self, study: Study) -> None:
        """Print the search space, the settings and the limits of the result."""
        genes = study.space.genes
        kinds = [
            plural(count, noun)
            for kind, noun in (("prompt", "prompt"), ("temperature", "temperature"), ("tools", "tool list"))
            if (count := sum(each == kind for each, _ in genes))
        ]
        who = "rewritten by the mutator" if study.mutator is not None else "recombined from their sentences"
        prompts = f" (prompts are {who})" if any(kind == "prompt" for kind, _ in genes) else ""
        self.echo(f"{printable(study.manifest)}: {', '.join(kinds)} to vary{prompts}")
        config = study.config
        self.echo(
            f"{plural(len(study.training), 'scenario')} to search with, {len(study.held_out)} held out; "
            f"at most {plural(config.generations, 'generation')} of {config.population_size}, "
            f"budget: {study.budget}, seed {study.seed}"
        )
        if (why := why_too_few(len(study.scenarios), len(study.held_out), study.share)) != "":
            self.echo(f"warning: {why}", err=True)
        if study.resumed:
            self.echo(f"continuing an earlier search, with {plural(study.resumed, 'genome')} scored")
        self._scored = study.resumed

    def generation(self, study: Study) -> None:
        """Print a line for the generation that has ended."""
        search = study.search
        last, best = search.generations[-1], search.best
        if len(search.individuals) < study.resumed:
            return
        fitness = last.as_json()["fitness"]
        spent = search.spent
        self.echo(
            f"generation {last.number + 1}/{study.config.generations}  best {best.fitness:.3f} ({best.id})  "
            f"mean {fitness['mean']:.3f}  {plural(spent.calls, 'call')}  cost {cost(spent.cost)}{self._left(study)}"
        )

    def _left(self, study: Study) -> str:
        """Return an upper bound of the remaining time, extrapolated from the genomes scored so far."""
        done = len(study.search.individuals) - self._scored
        left = study.config.generations - len(study.search.generations)
        if done <= 0 or left <= 0:
            return ""
        each = (real.monotonic() - self._began) / done
        seconds = each * left * (study.config.population_size - study.config.elite_size)
        return f"  at most {duration(seconds)} left"

    def finish(self, study: Study) -> None:
        """Print the result of the search and the paths of its files."""
        for text in _summary(study):
            self.echo(printable(text))


def _summary(study: Study) -> Iterator[str]:
    search, winner = study.search, study.winner
    why = _STOPPED[str(search.stopped)]
    if search.stopped == "budget" and not study.budget.allows(study.spent):
        why = f"the budget of {study.budget} is spent"
    yield ""
    yield f"stopped: {why} ({plural(len(search.individuals), 'genome')} scored)"
    if study.mutator is not None:
        refusals = study.mutator.refusals
        yield f"mutator: {plural(study.mutator.asked, 'question')}, {plural(refusals.total(), 'answer')} refused"
        yield from (f"  {count} ×: {why}" for why, count in refusals.most_common(_MAX_REASONS))
    unjudged = sum(bool(each.score.unjudged) for each in search.individuals)
    if unjudged:
        yield f"{plural(unjudged, 'genome')} had scenarios that could not be judged, which score 0"
    if not search.individuals:
        return
    if winner is None:
        yield f"nothing was better than the unchanged manifest (fitness {search.baseline.fitness:.3f})"
    else:
        yield from _of_winner(study, winner)
    spent = study.spent
    yield f"spent: {plural(spent.calls, 'call')}, cost {cost(spent.cost)}"
    if winner is not None:
        for each in study.patch.left_out:
            yield f"not in the patch: {each}, which cannot be edited in the file"
        if study.patch.text:
            yield f"to apply the winner: patch -p1 -d {study.root} < {study.folder / PATCH}"
    yield f"files: {study.folder}/ (" + ", ".join(study.written_files()) + ")"


def _of_winner(study: Study, winner: Individual) -> Iterator[str]:
    before = study.search.baseline.fitness
    yield (
        f"winner: {winner.id} of generation {winner.generation + 1}, fitness {winner.fitness:.3f} on the scenarios "
        f"it was searched with (the manifest: {before:.3f})"
    )
    yield ""
    for id_, text in winner.genome.prompts.items():
        yield from _diff(id_, study.space.prompts[id_], text)
    for owner, value in winner.genome.temperatures.items():
        old = study.space.temperatures[owner]
        yield f"temperature of {owner}: {'not set' if old is None else f'{old:g}'} → {value:g}"
    for owner, tools in winner.genome.tools.items():
        yield f"tools of {owner}: {', '.join(study.space.tools[owner])} → {', '.join(tools) or 'none'}"
    yield ""
    yield from _verdict(study)


def _diff(id_: str, before: str, after: str) -> Iterator[str]:
    texts = before.splitlines(), after.splitlines()
    lines = [*difflib.unified_diff(*texts, f"{id_} (manifest)", id_, lineterm="")]
    yield from lines[:_MAX_DIFF_LINES]
    if len(lines) > _MAX_DIFF_LINES:
        yield f"… and {len(lines) - _MAX_DIFF_LINES} more lines"


def _verdict(study: Study) -> Iterator[str]:
    found = study.confirmed
    if found is None:
        why = "the search did not finish" if study.held_out else "no scenario was held out"
        yield f"not confirmed: {why}"
        return
    difference = found["difference"]
    count = plural(found["scenarios"], "scenario")
    yield f"held out, {count}: fitness {found['baseline']:.3f} → {found['winner']:.3f}"
    if difference is None or found["verdict"] is None:
        yield f"no verdict: {found['note']}"
        return
    between = with_interval(difference["fitness"], difference["low"], difference["high"])
    yield f"verdict: {found['verdict']}, difference {between}, p {p_value(difference['p'])}"
    if found["note"]:
        yield f"  {found['note']}"
