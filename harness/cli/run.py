"""`harness run`: run scenarios without pytest."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli import completion
from harness.cli import output as exit_code
from harness.cli.options import (
    Parsed,
    changed_option,
    chosen_settings,
    cluster_option,
    env_option,
    exit_first_option,
    flag,
    jobs_option,
    last_failed_option,
    now_option,
    path_option,
    paths_and_ref,
    quiet_option,
    record_mode_option,
    repeat_option,
    report_option,
    selection_options,
    shard_option,
    share,
    start_workers,
)
from harness.cli.output import print_problems
from harness.settings import Projects, RecordMode, Traces

if TYPE_CHECKING:
    from harness.cli.selection import Selection
    from harness.cli.session import Session
    from harness.selection.keywords import Shard
    from harness.variants.schedule import ResumeState, Schedule


def _fail_under(report: Path, bound: float, *, to_stderr: bool = False) -> int:
    """Compare the fitness of the run in a folder with `bound`, print the verdict and return the exit code.

    The run may be incomplete.

    Raises:
        FormatError: the run has no scenario that can be judged.
    """
    from harness.gate.judge import judge
    from harness.gate.policy import Policy, Rules
    from harness.gate.text import lines

    verdict = judge(report, Policy(Rules(min_fitness=bound), source="--fail-under"), partial=True)
    for line in lines(verdict):
        click.echo(line, err=to_stderr)
    return exit_code.OK if verdict.passed else exit_code.FAILED


def _plan(
    selection: Selection, projects: Projects, folder: Path, *, to_stderr: bool
) -> tuple[Schedule, ResumeState]:
    """Plan a run on a cluster, which goes on if it is interrupted: what arrived counts where its inputs are the same.

    Returned are the scenarios that are left to run, and the state that is kept in case they are interrupted.

    Raises:
        FormatError: the results in the folder are damaged, or are being written.
    """
    from harness.budget import Budget
    from harness.recording.spending import Spending
    from harness.report.formatting import plural
    from harness.scenario.outcome import PriceList
    from harness.source.document import shown_path
    from harness.variants.estimate import Estimate
    from harness.variants.fingerprint import fingerprints
    from harness.variants.schedule import ResumeState, Schedule

    scenarios = selection.scenarios
    state = ResumeState(folder, scenarios, fingerprints(scenarios, projects))
    taken = state.taken_over()
    if taken:
        runs = plural(sum(map(len, taken.values())), "run")
        anew = f"remove {shown_path(folder)} to start anew"
        click.echo(f"{runs} taken over from the run that was interrupted ({anew})", err=to_stderr)
    spending = Spending(PriceList(projects.common(selection.files).prices).cost, Budget())
    schedule = Schedule(scenarios, Estimate({}, []), spending, taken=taken, on_taken_over=state.discard_old)
    return schedule, state


_EXIT_CODES = """\b
Exit codes, the first that applies:
  2  a file or an argument is wrong (the other files are run)
  3  a scenario could not be judged, or the run was interrupted
  1  a scenario failed, or the fitness is below --fail-under
  0  all scenarios passed, or none was selected
"""


@click.command("run", epilog=_EXIT_CODES)
@click.argument("paths", nargs=-1, metavar="PATH...", shell_complete=completion.scenario_paths)
@selection_options
@changed_option
@last_failed_option
@shard_option
@flag("--watch", help="Keep running: rerun the scenarios that a saved file affects. Ctrl-C ends.")
@repeat_option
@jobs_option
@cluster_option
@click.option(
    "--fail-under",
    "fitness",
    type=Parsed("share", share),
    metavar="X",
    help="Exit with 1 if the fitness is below X (0 to 1), as the rule min_fitness of `harness gate`.",
)
@exit_first_option
@env_option
@click.option("--json", "lines", metavar="FILE", help="Also write results.jsonl to FILE; - is stdout.")
@report_option
@record_mode_option(
    "How to handle calls that no stub answers, in scenarios with a cassette; see `harness record`."
)
@flag("--live", help="Make calls that no stub answers for real; cassettes are not used or written.")
@click.option(
    "--traces",
    type=click.Choice([kept.value for kept in Traces]),
    help="Which runs keep their traces, for `harness trace` (default: all).",
)
@path_option("--history", help="Append the figures of this run to FILE; see `harness history`.")
@quiet_option
@flag(
    "-v",
    "--verbose",
    help="Also print why --changed runs each scenario, and every node, edge and branch without coverage.",
)
@flag(
    "--narrate", help="Print each run step by step on stderr, and the time of its nodes, the slowest first."
)
@now_option
@flag("--debug", help="Print every check of a failure, and complete tracebacks.")
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[str, ...],
    words: str,
    tags: tuple[str, ...],
    changed: str | None,
    last_failed: bool,
    shard: Shard | None,
    watch: bool,
    repeat: int | None,
    jobs: int | None,
    cluster: str | None,
    fitness: float | None,
    exit_first: bool,
    env: dict[str, str],
    lines: str | None,
    report: Path | None,
    record_mode: str,
    live: bool,
    traces: str | None,
    history: Path | None,
    now: str | None,
    quiet: bool,
    verbose: bool,
    narrate: bool,
    debug: bool,
) -> int:
    """Run scenarios and report which pass.

    PATH is a scenario file (*.scenario.yaml), a folder of them, or FILE::NAME for one scenario.
    A LeafMesh mesh file runs its own test scenarios (evolution.test_scenarios).
    Results are written to reports/latest in the project of the scenarios, unless --report or
    [tool.harness] says otherwise. They are the same, and in the same order, for any number of jobs.
    With --json - everything but the results goes to stderr.
    """
    if live and record_mode != "none":
        raise click.UsageError("--live and --record-mode are mutually exclusive")
    mode = RecordMode.LIVE if live else RecordMode(record_mode)
    again = "harness run --live" if live else "harness run"
    again += "" if record_mode == "none" else f" --record-mode {record_mode}"
    if watch and (lines is not None or fitness is not None or last_failed or mode is not RecordMode.NONE):
        raise click.UsageError(
            "--watch cannot be combined with --json, --fail-under, --last-failed, --live or --record-mode"
        )
    start_workers(jobs, mode)

    from harness.cli.executors import open_executor
    from harness.cli.selection import misnamed, select
    from harness.cli.session import run_selection

    paths, changed = paths_and_ref(paths, changed)
    chosen = chosen_settings(report=report, traces=traces, history=history, now=now, cluster=cluster)

    read_projects = partial(Projects, chosen=chosen, record_mode=mode, narrate=narrate, given_env=env)
    run = partial(
        run_selection,
        lines=lines,
        exit_first=exit_first,
        quiet=quiet,
        verbose=verbose,
        debug=debug or ctx.find_root().params.get("debug", False),
        command=again,
    )

    print_problems(misnamed(path for path in map(Path, paths) if path.is_dir()))

    def choose(projects: Projects) -> Selection:
        selection = select(
            paths,
            projects,
            words=words,
            tags=tags,
            changed=changed,
            shard=shard,
            last_failed=last_failed,
        )
        return selection.repeated(repeat) if repeat is not None else selection

    if watch:
        from harness.cli.watch import Watch

        def in_new_processes(selection: Selection, projects: Projects) -> Session:
            return run(selection, projects, workers=open_executor(jobs, projects, selection, always=True))

        return Watch(read_projects, choose, in_new_processes).loop()
    projects = read_projects()
    selection = choose(projects)
    if last_failed and selection.is_empty:  # what failed is to be remembered
        click.echo(f"nothing to run: {selection.part}", err=True)
        return exit_code.OK
    workers = open_executor(jobs or (1 if exit_first else None), projects, selection, to_stderr=lines == "-")
    settings = projects.common(selection.files)
    if not settings.cluster or mode is not RecordMode.NONE:
        finished = run(selection, projects, workers=workers)
    else:
        schedule, state = _plan(selection, projects, settings.report, to_stderr=lines == "-")
        state.begin()
        finished = run(selection, projects, workers=workers, schedule=schedule)
        if not finished.interrupted:
            state.end()
    if fitness is None or finished.interrupted or not selection.scenarios:
        return finished.code
    return finished.code or _fail_under(finished.report, fitness, to_stderr=lines == "-")
