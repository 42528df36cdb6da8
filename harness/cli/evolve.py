"""`harness evolve`: a genetic search over the prompts, temperatures and tools of a manifest."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from harness.budget import Budget
from harness.cli import completion
from harness.cli import output as exit_code
from harness.cli.executors import open_executor
from harness.cli.options import (
    PATH,
    budget_option,
    chosen_settings,
    cluster_option,
    env_option,
    flag,
    jobs_option,
    may_call_models,
    path_option,
    record_mode_option,
    selection_options,
    start_workers,
    yes_option,
)
from harness.cli.output import print_problems
from harness.cli.selection import Selection, check_exists, select
from harness.cli.session import Session
from harness.dialects.load import load_evolution
from harness.dialects.registry import dialect_of
from harness.errors import FormatError, ManifestError, Problem
from harness.report.console import ProgressReporter, open_console
from harness.report.formatting import plural
from harness.report.results import ResultsWriter
from harness.scenario.cassette import WRITING, cassette_name, check_cassettes, effective_record_mode
from harness.scenario.load import scenarios_of_manifest
from harness.scenario.model import Scenario, load_request
from harness.settings import Projects, RecordMode
from harness.source.document import shown_path
from harness.workers.executor import Executor

if TYPE_CHECKING:
    from harness.evolution.config import Config

_EXIT_CODES = """\b
Exit codes, the first that applies:
  2  a file or an argument is wrong, no answer depends on what is varied, or
     models would be called without a terminal to ask at and without --yes
  3  the unchanged manifest could not be judged, the mutator gave no answer, or
     the search was interrupted (the same command continues it) or not started
  0  otherwise, whether the winner was confirmed or not
"""


@click.command("evolve", epilog=_EXIT_CODES)
@click.argument("manifest", type=PATH)
@click.argument("paths", nargs=-1, metavar="[SCENARIOS]...", shell_complete=completion.scenario_paths)
@path_option(
    "--config",
    "file",
    help="A YAML file with the keys of LeafMesh's evolution section; its values override the manifest's.",
)
@click.option("--generations", type=click.IntRange(min=1), metavar="N", help="Maximum number of generations.")
@click.option(
    "--population", type=click.IntRange(min=1), metavar="N", help="Number of genomes per generation."
)
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of all random decisions."
)
@budget_option("on the whole search, including confirmation and mutator")
@click.option(
    "--holdout",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.3,
    show_default=True,
    metavar="SHARE",
    help="Share of the scenarios that is kept out of the search, to confirm the winner.",
)
@path_option("--out", metavar="DIR", help="Folder for results (default: reports/evolution).")
@flag("--fresh", help="Discard the search in the folder and start a new one.")
@selection_options
@env_option
@jobs_option
@cluster_option
@record_mode_option(
    "How to handle calls that no stub answers. Each genome, and each question to the mutator, has "
    "a cassette of its own."
)
@yes_option
def command(
    manifest: Path,
    paths: tuple[str, ...],
    file: Path | None,
    generations: int | None,
    population: int | None,
    seed: int,
    budget: Budget | None,
    holdout: float,
    out: Path | None,
    fresh: bool,
    words: str,
    tags: tuple[str, ...],
    env: dict[str, str],
    jobs: int | None,
    cluster: str | None,
    record_mode: str,
    yes: bool,
) -> int:
    """Search for better prompts, temperatures and tool lists of an agent.

    SCENARIOS are scenario files (*.scenario.yaml), folders of them, or FILE::NAME, that run MANIFEST (default: the
    test scenarios of a LeafMesh mesh). Some of them are held out of the search: the winner is called better only if
    it is better on those. Prompts are rewritten by a model, called `mutator` (stubs under `llm: {mutator: [...]}`
    in scenario files or in --config, or a model named there), or else by recombining sentences of the manifest.

    A search that was killed or interrupted continues when the same command is given again.
    """
    start_workers(jobs, RecordMode(record_mode))

    from harness.cli.evolution_report import Report
    from harness.evolution.mutator import MutatorFailed
    from harness.evolution.study import NotScored, Study
    from harness.report.html.evolution import write_evolution

    chosen = chosen_settings(traces="none", cluster=cluster)
    projects = Projects(chosen=chosen, record_mode=RecordMode(record_mode), given_env=env)
    check_exists(manifest)
    paths = paths or _own_scenarios(manifest, projects)
    selection = select(paths, projects, words=words, tags=tags, strict=True)
    scenarios = _scenarios_of(manifest, [each.whole() for each in selection.scenarios])
    check_cassettes(scenarios, projects)
    config = _config(scenarios[0], projects, file, population, generations)
    if _may_ask(scenarios, config, projects):
        click.echo(_most_runs(scenarios, config, budget or Budget()), err=True)
        if not may_call_models(yes):
            return exit_code.NOT_JUDGED
    folder = out or projects.common(selection.files).report.with_name("evolution")
    workers = open_executor(jobs, projects, selection, one_by_one=True)
    with ScenarioRuns(projects, workers) as run:
        report = Report(click.echo)
        study = Study(
            str(manifest),
            scenarios,
            config,
            projects,
            folder,
            seed,
            budget or Budget(),
            holdout,
            run,
            config_file=file,
            fresh=fresh,
            done=report.generation,
        )
        print_problems(study.warnings)
        report.start(study)
        study.start()
        try:
            study.search.run()
            if study.search.stopped != "interrupted":
                study.confirm()
        except KeyboardInterrupt:
            study.search.stopped = "interrupted"
        except (MutatorFailed, NotScored) as error:
            study.write()
            click.echo(f"error: {error}", err=True)
            click.echo(f"the same command continues from here: {folder}", err=True)
            return exit_code.NOT_JUDGED
    study.write()
    write_evolution(study.folder, study.document(), (each.as_json() for each in study.search.individuals))
    report.finish(study)
    return exit_code.NOT_JUDGED if study.search.stopped == "interrupted" else exit_code.OK


def _own_scenarios(manifest: Path, projects: Projects) -> tuple[str, ...]:
    """Return the manifest itself as the path to read scenarios from.

    Raises:
        FormatError: it has no scenarios of its own, or is not a manifest.
    """
    try:
        dialect_of(manifest)
    except ManifestError as error:
        usual = "MANIFEST is the file of an agent, and the scenarios come after it"
        raise FormatError([replace(each, hint=each.hint or usual) for each in error.problems]) from None
    if not scenarios_of_manifest(manifest, projects.of(manifest)):
        text = f"{shown_path(manifest)} has no scenarios of its own"
        hint = f"name scenarios that run it: harness evolve {shown_path(manifest)} SCENARIOS"
        raise FormatError(Problem("no-scenarios", text, hint=hint))
    return (str(manifest),)


def _scenarios_of(manifest: Path, scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Return the scenarios that run the manifest and are not skipped.

    Raises:
        FormatError: there are none.
    """
    from harness.variants.application import main_manifest

    main = cache(main_manifest)  # reads the file
    found = [
        each
        for each in scenarios
        if each.skip is None and main(manifest, each.dialect) == main(each.manifests[0], each.dialect)
    ]
    if not found:
        others = ", ".join(dict.fromkeys(shown_path(each.manifests[0]) for each in scenarios))
        text = f"none of {plural(len(scenarios), 'scenario')} runs {shown_path(manifest)}"
        raise FormatError(Problem("no-scenarios", text, hint=f"they run {others}, or are skipped"))
    if len(found) < len(scenarios):
        text = f"{plural(len(scenarios) - len(found), 'scenario')} left out: of other manifests, or skipped"
        click.echo(f"warning: {text}", err=True)
    return found


def _config(
    first: Scenario, projects: Projects, file: Path | None, population: int | None, generations: int | None
) -> Config:
    from harness.evolution.config import section_config, with_file, with_options

    config = section_config(load_evolution(load_request(first, projects.of(first.file)), first.dialect))
    if file is not None:
        config = with_file(config, file)
    return with_options(config, population=population, generations=generations)


def _may_ask(scenarios: Sequence[Scenario], config: Config, projects: Projects) -> bool:
    """True if a genome or the mutator may call a model for real; whether it does depends on the genomes."""
    return any(
        effective_record_mode(settings) in WRITING
        and (config.model is not None or cassette_name(each, settings) is not None)
        for each in scenarios
        for settings in (projects.of(each.file),)
    )


def _most_runs(scenarios: Sequence[Scenario], config: Config, budget: Budget) -> str:
    """Return what a search may ask at most, as a line of text. Nothing is known of the genomes to come."""
    genomes = config.generations * config.population_size
    runs = genomes * sum(each.repeat for each in scenarios)
    mutator = f", and the mutator {config.model}" if config.model is not None else ""
    return (
        f"models may be called: at most {plural(runs, 'run')} of {plural(len(scenarios), 'scenario')} with "
        f"{plural(genomes, 'genome')}{mutator}; budget: {budget}"
    )


@dataclass
class ScenarioRuns:
    """A callable that runs scenarios, in this process or in workers. Use it as a context manager."""

    projects: Projects
    workers: Executor | None = None
    _folder: tempfile.TemporaryDirectory[str] = field(default_factory=tempfile.TemporaryDirectory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.workers is not None:
            self.workers.close()
        self._folder.cleanup()

    def __call__(self, scenarios: Sequence[Scenario], folder: Path | None) -> Sequence[dict[str, Any]]:
        """Run scenarios and return their lines of results, in order. With `folder`, also write the results there.

        Raises:
            KeyboardInterrupt: the run was asked to end.
            FormatError: results cannot be written.
        """
        lines = io.BytesIO()
        session = Session(
            self.projects,
            ResultsWriter(folder or self._folder.name),
            ProgressReporter(open_console()),  # shows nothing unless it is started
            lines,
            quiet=True,
            workers=self.workers,
        )
        files = tuple(dict.fromkeys(each.file for each in scenarios))
        session.run(Selection(tuple(scenarios), {}, files))
        if session.interrupted:
            raise KeyboardInterrupt
        return [json.loads(line) for line in lines.getvalue().splitlines()]
