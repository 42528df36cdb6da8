"""The runs of `harness mutate`: scenarios without any mutant, then those that each mutant reaches."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from harness.cli.executors import open_executor
from harness.cli.interruption import between_scenarios
from harness.cli.output import stdout_to_stderr
from harness.cli.selection import Selection
from harness.errors import FormatError, Problem
from harness.mutation.agent import mutants
from harness.mutation.execution import Chain, run_chains
from harness.mutation.mutant import Mutant
from harness.mutation.result import Journal, Mutation, Result
from harness.mutation.trial import trial
from harness.mutation.unchanged import Unchanged, agents_of, unchanged
from harness.report.console import open_console
from harness.report.failure import failed_checks
from harness.report.github import annotate_survivors
from harness.report.progress import Progress
from harness.report.repeats import NOT_PASSED
from harness.scenario.app_process import close_apps
from harness.scenario.redaction import secrets_of_process
from harness.secrets.output import redacted_process
from harness.selection.changes import ChangedLines
from harness.settings import Projects
from harness.source.document import real_path
from harness.time.real import real
from harness.variants.application import is_named
from harness.variants.fingerprint import fingerprints

_SEED: Final = "mutants"


class Plan(NamedTuple):
    """The options that choose mutants."""

    operators: Sequence[str]
    glob: str | None
    changed: str | None
    sample: int | None
    seconds: float | None
    fresh: bool


class Session:
    """The runs of the scenarios without and with mutants."""

    def __init__(self, selection: Selection, projects: Projects, plan: Plan, *, to_stderr: bool) -> None:
        self._selection, self._projects, self._plan = selection, projects, plan
        self._to_stderr = to_stderr
        self._runs: dict[int, Unchanged] = {}

    def run(self, jobs: int | None) -> Mutation:
        """Run the mutants, and return their results; those so far if the run is interrupted."""
        settings = self._projects.common(self._selection.files)
        mutation = Mutation()
        with ExitStack() as stack:
            stack.enter_context(stdout_to_stderr(self._to_stderr))
            stack.enter_context(redacted_process(secrets_of_process(settings).text))
            stack.callback(close_apps)
            self._workers = open_executor(jobs, self._projects, self._selection, to_stderr=self._to_stderr)
            if self._workers is not None:
                stack.enter_context(closing(self._workers))
            self._interruption = stack.enter_context(between_scenarios())
            try:
                self._run_unchanged(mutation)
                self._run_mutants(mutation)
            except KeyboardInterrupt:
                mutation.complete = False
                click.echo("interrupted: the results so far are kept; the same command goes on", err=True)
        return mutation

    def shapes(self) -> dict[str, Any]:
        """Return the graph of each manifest."""
        return {run.runs[0].outcome.manifest: run.runs[0].outcome.shape for run in self._runs.values()}

    def annotate(self, mutation: Mutation) -> None:
        """Write annotations for survivors in changed lines, in GitHub Actions."""
        if self._plan.changed is not None:
            survivors = mutation.as_json()["mutants"]
            annotate_survivors(survivors, lambda text: click.echo(text, err=self._to_stderr))

    def _ended(self, chains: Iterator[Chain[Any]], total: int) -> Iterator[Any]:
        """Yield the results of chains, with a bar."""
        status = self._workers.status if self._workers is not None else None
        progress = Progress(open_console(), total, calls=status)
        runs = run_chains(chains, self._projects, self._selection.scenarios, self._workers)
        with ExitStack() as stack:
            stack.callback(progress.stop)
            for each in stack.enter_context(closing(runs)):
                yield each
                progress.add("failed" if getattr(each, "outcome", "") == "survived" else "passed")
                self._interruption.raise_if_requested()

    def _run_unchanged(self, mutation: Mutation) -> None:
        glob = self._plan.glob
        scenarios = [each for each in self._selection.scenarios if each.skip is None]
        told = "all scenarios are skipped"
        if glob is not None:
            scenarios = [each for each in scenarios if is_named(each.manifests[0], [glob])]
            told = f"no manifest that the scenarios run matches '{glob}'"
        if not scenarios and self._plan.changed is None:
            raise FormatError(Problem("no-scenarios", told))
        chains = (unchanged(at, each, self._projects) for at, each in enumerate(scenarios))
        found = {each.number: each for each in self._ended(chains, len(scenarios))}
        self._runs = dict(sorted(found.items()))
        for each in self._runs.values():
            failed = next((run.outcome for run in each.runs if run.outcome.verdict in NOT_PASSED), None)
            if failed is not None:
                mutation.unusable[each.scenario.id] = failed_checks(failed)

    def _run_mutants(self, mutation: Mutation) -> None:
        plan, projects, files = self._plan, self._projects, self._selection.files
        project = projects.common(files).project
        judging = [each for each in self._runs.values() if each.judges]
        found = mutants(agents_of(judging), projects, plan.operators, project)
        if plan.changed is not None:
            changed = ChangedLines([projects.of(file).project for file in files], plan.changed)
            found = [m for m in found if changed.touches(real_path(Path(m.where.file)), *m.lines)]
        inputs = fingerprints([each.scenario for each in judging], projects)
        numbered = {each.number: of for each, of in zip(judging, inputs, strict=True)}
        results: dict[str, Result] = {}
        with closing(Journal(project, numbered, fresh=plan.fresh)) as journal:
            chosen = self._chosen(found)
            results |= {m.id: known for m in chosen if (known := journal.result(m)) is not None}
            if results:
                click.echo(f"{len(results)} results are known (--fresh runs them again)", err=True)
            left = {each.id: each for each in chosen if each.id not in results}
            try:
                for result in self._ended(self._trials([*left.values()]), len(left)):
                    journal.add(left[result.id], result)
                    results[result.id] = result
            finally:
                mutation.results = [results[each.id] for each in found if each.id in results]
                mutation.left_out = len(found) - len(results)

    def _chosen(self, found: Sequence[Mutant]) -> Sequence[Mutant]:
        """Return the mutants to run: all of them, or in random order a sample, always the same one."""
        if self._plan.sample is None and self._plan.seconds is None:
            return found
        return sorted(found, key=lambda each: random.Random(f"{_SEED} {each.id}").random())[
            : self._plan.sample
        ]

    def _trials(self, chosen: Sequence[Mutant]) -> Iterator[Chain[Result]]:
        began = real.monotonic()
        for each in chosen:
            if self._plan.seconds is not None and real.monotonic() - began >= self._plan.seconds:
                return
            yield trial(each, self._runs, self._projects)
