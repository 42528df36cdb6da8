"""`harness mutate`: make one small fault at a time in the agents, and see which of them the scenarios notice."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from harness.cli import completion
from harness.cli import output as exit_code
from harness.cli.options import (
    Parsed,
    chosen_settings,
    cluster_option,
    flag,
    jobs_option,
    path_option,
    paths_and_ref,
    share,
    start_workers,
    words_option,
)
from harness.cli.output import check_writable, deliver_json, stdout_to_stderr
from harness.errors import FormatError, Problem
from harness.settings import Projects, RecordMode

if TYPE_CHECKING:
    from harness.cli.selection import Selection
    from harness.mutation.execution import Chain
    from harness.mutation.mutant import Mutant
    from harness.mutation.result import Mutation, Result
    from harness.mutation.unchanged import Unchanged
    from harness.selection.changes import ChangedLines

_EPILOG = """\b
Operators:
  route   a condition negated, targets swapped, a branch, default or edge
          dropped, conditions in another order
  node    skipped, or run twice
  state   a key of an update dropped, a reducer or a default changed
  call    a tool, a response schema, a parameter dropped, a name changed
  prompt  a sentence or a placeholder dropped, the whole emptied
  guard   a retry, time-out, fallback, handler, approval or pause dropped,
          a limit raised
  output  a key dropped or renamed, its schema loosened

\b
Examples:
  harness mutate scenarios/billing.scenario.yaml
  harness mutate --changed=main --fail-under 0.8 -j auto
  harness accept --mutant ID            add the expectation that notices it

\b
Exit codes, the first that applies:
  2  a file or an argument is wrong
  3  a scenario does not pass without a mutant, or the run was interrupted
  1  the score is below --fail-under
  0  otherwise
"""
_SCENARIOS = "scenarios"


@click.command("mutate", epilog=_EPILOG)
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=completion.scenario_paths)
@click.option("--manifest", "glob", metavar="GLOB", help="Only manifests whose path or file name matches.")
@click.option(
    "--operator", "operators", multiple=True, metavar="NAME", help="Only this operator; may be repeated."
)
@click.option(
    "--changed",
    is_flag=False,
    flag_value="HEAD",
    metavar="[REF]",
    help="Only parts that have changed since the commit REF (default: uncommitted changes).",
)
@click.option(
    "--sample", type=click.IntRange(min=1), metavar="N", help="Only N mutants; always the same ones."
)
@click.option(
    "--time", "seconds", type=float, metavar="S", help="Begin no mutant after S seconds; in random order."
)
@words_option
@jobs_option
@cluster_option
@click.option(
    "--fail-under", "bound", type=Parsed("share", share), metavar="X", help="Exit with 1 below this score."
)
@flag("--fresh", help="Run all mutants again, also those whose result is known.")
@click.option("--json", "json_", metavar="FILE", help="Write the results as JSON to FILE; - is stdout.")
@path_option("--report", metavar="DIR", help="Folder for results (default: reports/mutation).")
def command(
    paths: tuple[str, ...],
    words: str,
    jobs: int | None,
    cluster: str | None,
    bound: float | None,
    json_: str | None,
    report: Path | None,
    **chosen: Any,
) -> int:
    """Make one small fault at a time in the agents, and see which of them the scenarios notice.

    PATH is a scenario file, a folder of them, or FILE::NAME (default: scenarios, or the current folder). Each fault,
    a mutant, is made in memory; the scenarios that reach its part run, until one fails. For each mutant that none
    notices, the expectation that would have is printed, ready to paste. Results are kept in .harness/mutate:
    only what changed is run again, and an interrupted run goes on.
    """
    plan = _Plan(**chosen)
    if plan.sample is not None and plan.seconds is not None:
        raise click.UsageError("--sample and --time are mutually exclusive")
    start_workers(jobs, RecordMode.NONE)

    from harness.cli.selection import select
    from harness.mutation.operators import check_operators
    from harness.mutation.result import score_of, write_report
    from harness.mutation.text import lines, shown_score
    from harness.report.folder_check import refuse_foreign

    plan = plan._replace(operators=check_operators(plan.operators))
    check_writable(json_)
    given = paths or ((_SCENARIOS,) if Path(_SCENARIOS).is_dir() else (".",))
    if plan.changed is not None:
        given, ref = paths_and_ref(paths if os.path.lexists(plan.changed) else given, plan.changed)
        plan = plan._replace(changed=ref)
    projects, to_stderr = Projects(chosen=chosen_settings(cluster=cluster)), json_ == "-"
    selection = select(given, projects, words=words, changed=plan.changed)
    if selection.refused:
        raise FormatError([problem for each in selection.refused.values() for problem in each.problems])
    folder = report or projects.common(selection.files).report.with_name("mutation")
    refuse_foreign(folder)
    session = _Session(selection, projects, plan, to_stderr=to_stderr)
    mutation = session.run(jobs)
    if not mutation.complete and not mutation.results:
        return exit_code.NOT_JUDGED
    write_report(folder, mutation, session.shapes())
    for line in lines(mutation):
        click.echo(line, err=to_stderr)
    if json_ is not None:
        deliver_json(json.dumps(mutation.as_json(), indent=2, ensure_ascii=False), json_)
    click.echo(f"results: {folder}", err=to_stderr)
    session.annotate(mutation)
    score = score_of(mutation.results)
    if not mutation.complete or mutation.unusable:
        return exit_code.NOT_JUDGED
    if bound is not None and score is not None and score < bound:
        click.echo(f"the score {shown_score(score)} is below {bound:g}", err=True)
        return exit_code.FAILED
    return exit_code.OK


class _Plan(NamedTuple):
    """The options that choose mutants."""

    operators: Sequence[str]
    glob: str | None
    changed: str | None
    sample: int | None
    seconds: float | None
    fresh: bool


class _Session:
    """The runs of the scenarios without and with mutants."""

    def __init__(self, selection: Selection, projects: Projects, plan: _Plan, *, to_stderr: bool) -> None:
        self._selection, self._projects, self._plan = selection, projects, plan
        self._to_stderr = to_stderr
        self._runs: dict[int, Unchanged] = {}
        self._changed: ChangedLines | None = None

    def run(self, jobs: int | None) -> Mutation:
        """Run the mutants, and return their results; those so far if the run is interrupted."""
        from harness.cli.executors import open_executor
        from harness.cli.interruption import between_scenarios
        from harness.mutation.result import Mutation
        from harness.scenario.app_process import close_apps
        from harness.scenario.redaction import secrets_of_process
        from harness.secrets.output import redacted_process

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
        from harness.report.github import annotate_survivors

        if self._changed is not None:
            annotate_survivors(
                mutation.as_json()["mutants"], lambda text: click.echo(text, err=self._to_stderr)
            )

    def _ended(self, chains: Iterator[Chain[Any]], total: int) -> Iterator[Any]:
        """Yield the results of chains, with a bar."""
        from harness.mutation.execution import run_chains
        from harness.report.console import Progress, open_console

        status = self._workers.status if self._workers is not None else None
        progress = Progress(open_console(), total, calls=status)
        try:
            with closing(
                run_chains(chains, self._projects, self._selection.scenarios, self._workers)
            ) as ended:
                for each in ended:
                    yield each
                    progress.add("failed" if getattr(each, "outcome", "") == "survived" else "passed")
                    self._interruption.raise_if_requested()
        finally:
            progress.stop()

    def _run_unchanged(self, mutation: Mutation) -> None:
        from harness.mutation.plan import matches_manifest
        from harness.mutation.unchanged import unchanged
        from harness.report.failure import failed_checks
        from harness.report.repeats import NOT_PASSED

        plan, glob = self._plan, self._plan.glob
        scenarios = [each for each in self._selection.scenarios if each.skip is None]
        if glob is not None:
            scenarios = [each for each in scenarios if matches_manifest(each.manifests[0], glob)]
        if not scenarios and plan.changed is None:
            text = (
                f"no manifest that the scenarios run matches '{glob}'"
                if glob
                else "all scenarios are skipped"
            )
            raise FormatError(Problem("no-scenarios", text))
        chains = (unchanged(at, each, self._projects) for at, each in enumerate(scenarios))
        found = {each.number: each for each in self._ended(chains, len(scenarios))}
        self._runs = dict(sorted(found.items()))
        for each in self._runs.values():
            failed = next((run.outcome for run in each.runs if run.outcome.verdict in NOT_PASSED), None)
            if failed is not None:
                mutation.unusable[each.scenario.id] = failed_checks(failed)

    def _run_mutants(self, mutation: Mutation) -> None:
        from harness.mutation.agent import mutants
        from harness.mutation.journal import Journal
        from harness.mutation.plan import drawn, in_changed_parts
        from harness.mutation.unchanged import agents_of
        from harness.selection.changes import ChangedLines
        from harness.variants.fingerprint import fingerprints

        plan, projects, files = self._plan, self._projects, self._selection.files
        project = projects.common(files).project
        judging = [each for each in self._runs.values() if each.judges]
        found = mutants(agents_of(judging), projects, plan.operators, project)
        if plan.changed is not None:
            self._changed = ChangedLines([projects.of(file).project for file in files], plan.changed)
            found = in_changed_parts(found, self._changed)
        chosen = drawn(found, plan.sample) if plan.sample or plan.seconds else found
        inputs = fingerprints([each.scenario for each in judging], projects)
        numbered = {each.number: of for each, of in zip(judging, inputs, strict=True)}
        results: dict[str, Result] = {}
        with closing(Journal(project, numbered, fresh=plan.fresh)) as journal:
            known = {each.id: result for each in chosen if (result := journal.result(each)) is not None}
            results |= known
            if known:
                click.echo(f"{len(known)} results are known (--fresh runs them again)", err=True)
            left = {each.id: each for each in chosen if each.id not in known}
            try:
                for result in self._ended(self._trials([*left.values()]), len(left)):
                    journal.add(left[result.id], result)
                    results[result.id] = result
            finally:
                mutation.results = [results[each.id] for each in found if each.id in results]
                mutation.left_out = len(found) - len(results)

    def _trials(self, mutants: Sequence[Mutant]) -> Iterator[Chain[Result]]:
        from harness.mutation.trial import trial
        from harness.time.real import real

        began = real.monotonic()
        for each in mutants:
            if self._plan.seconds is not None and real.monotonic() - began >= self._plan.seconds:
                return
            yield trial(each, self._runs, self._projects)
