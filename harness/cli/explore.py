"""`harness explore`: draw what the world could answer, and look for a run that breaks what must hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli import completion
from harness.cli import output as exit_code
from harness.cli.interruption import raised_once
from harness.cli.load_options import with_env_option
from harness.cli.options import (
    Parsed,
    chosen_settings,
    cluster_option,
    env_option,
    jobs_option,
    path_option,
    words_option,
)
from harness.cli.output import check_writable, deliver_json, print_problems
from harness.errors import FormatError, ManifestError, Problem
from harness.scenario import SUFFIXES
from harness.settings import Projects
from harness.source.display import did_you_mean, printable
from harness.source.document import relative_path
from harness.source.imports import import_extra

if TYPE_CHECKING:
    from harness.explore.exploration import Explored
    from harness.explore.subject import Subject

DEFAULT_RUNS = 800
_EPILOG = """\b
Exit codes:
  0  nothing was found
  1  a finding: its scenario file says what happens
  2  a file or an argument is wrong
  3  a part of it could not be explored: the manifest is refused, something is
     called that cannot be drawn, a process ended, or it was interrupted
"""


def _faults(text: str) -> tuple[str, ...]:
    from harness.explore.drawn import KINDS_OF_FAULTS

    if text == "none":
        return ()
    given = tuple(part.strip().replace("-", "_") for part in text.split(","))
    for kind in given:
        if kind not in KINDS_OF_FAULTS:
            hint = did_you_mean(kind, KINDS_OF_FAULTS)
            raise ValueError(f"'{kind}' is no fault ({hint or 'known: none, ' + ', '.join(KINDS_OF_FAULTS)})")
    return given


@click.command("explore", epilog=_EPILOG)
@click.argument(
    "targets", nargs=-1, required=True, metavar="TARGET...", shell_complete=completion.scenario_paths
)
@click.option(
    "--agent", metavar="NAME", help="Agent, entry point or flow inside the manifest (default: each)."
)
@click.option(
    "--runs", type=click.IntRange(min=1), metavar="N", help=f"Number of runs (default: {DEFAULT_RUNS})."
)
@click.option(
    "--time",
    "seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="S",
    help="Seconds to search, instead of a number of runs.",
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of everything drawn.")
@click.option(
    "--faults",
    type=Parsed("faults", _faults),
    metavar="KIND,…|none",
    help="Faults to draw: rate_limit, timeout, connection, server_error, malformed, content_filter (default: all).",
)
@jobs_option
@cluster_option
@env_option
@path_option("--out", metavar="DIR", help="Folder for the scenarios of findings (default: scenarios/found).")
@path_option("--cover", metavar="FILE", help="Write the fewest scenarios that take all that was reached.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the result as JSON; - is standard output.")
@words_option
def command(
    targets: tuple[str, ...],
    agent: str | None,
    runs: int | None,
    seconds: float | None,
    seed: int,
    faults: tuple[str, ...] | None,
    jobs: int | None,
    cluster: str | None,
    env: dict[str, str],
    out: Path | None,
    cover: Path | None,
    json_file: str | None,
    words: str,
) -> int:
    """Look for a conversation that breaks an agent, and write it down as a scenario.

    TARGET is a manifest, or scenario files. The answers of models, tools, people and services are drawn, and
    the search steers towards parts of the graph that nothing reached. Every run must end, without exceptions,
    with a valid output; `explore:` in a scenario adds what no run may do. What breaks that is shrunk to the
    shortest scenario. Of a scenario, what its stubs answer stays as written, and the rest is drawn. With --runs,
    a seed gives the same findings on any machine.
    """
    if runs is not None and seconds is not None:
        raise click.UsageError("--runs and --time are mutually exclusive")
    check_writable(json_file)
    import_extra("hypothesis", "explore", "to draw answers")
    from harness.cli.executors import executor_of, threads_of
    from harness.explore.attempt import STREAMS, Plan
    from harness.explore.drawn import KINDS_OF_FAULTS
    from harness.explore.exploration import explore
    from harness.explore.report import Report, as_json

    projects = Projects(chosen=chosen_settings(cluster=cluster), given_env=env)
    report = Report(quiet=json_file == "-")
    try:
        subjects = list(_subjects(targets, agent, words, projects))
    except ManifestError as error:
        print_problems(map(with_env_option, error.problems))
        return exit_code.NOT_JUDGED
    if not subjects:
        raise FormatError(Problem("no-scenarios", "nothing is explored: each selected scenario is skipped"))
    at_once = min(threads_of(jobs, projects), STREAMS)
    plan = Plan(
        runs=None if seconds is not None else runs or DEFAULT_RUNS,
        seconds=None if seconds is None else seconds * at_once / STREAMS / len(subjects),
        seed=seed,
        faults=KINDS_OF_FAULTS if faults is None else faults,
        faults_given=bool(faults),
    )
    project = projects.around(Path.cwd()).project
    folder = out or Path(relative_path(project, Path.cwd())) / "scenarios" / "found"
    done: list[Explored] = []
    try:
        with raised_once():
            for subject in subjects:
                done.append(
                    explore(
                        *(subject, plan, projects, project),
                        out=folder,
                        cover=cover,
                        watch=report.progress,
                        open_executor=partial(executor_of, jobs or 1, projects, subject.scenario),
                    )
                )
                report.show(done[-1])
                if done[-1].interrupted:
                    break
    except ManifestError as error:
        report.stop()
        print_problems(map(with_env_option, error.problems))
        return exit_code.NOT_JUDGED
    if json_file is not None:
        deliver_json(as_json(done, seed), json_file)
    if any(each.interrupted or each.problems for each in done):
        return exit_code.NOT_JUDGED
    return exit_code.FAILED if any(each.findings for each in done) else exit_code.OK


def _subjects(targets: Sequence[str], agent: str | None, words: str, projects: Projects) -> Iterator[Subject]:
    """Yield what the targets name: agents of manifests, and scenarios.

    Raises:
        ManifestError: a manifest is refused.
        FormatError: there is no such file, or nothing to explore in it.
    """
    from harness.cli.selection import check_exists, select
    from harness.explore.subject import of_manifest, of_scenario

    files = [each for each in targets if _names_scenarios(each)]
    for target in targets:
        path = Path(target)
        if target in files:
            continue
        check_exists(path)
        yield from of_manifest(path, agent, projects)
    if files:
        selection = select(tuple(files), projects, words=words, strict=True)
        if not selection.scenarios:
            raise FormatError(Problem("no-scenarios", "no scenario is selected"))
        for scenario in selection.scenarios:
            if scenario.skip is None:
                yield of_scenario(scenario, projects.of(scenario.file))
            else:
                click.echo(f"skipped: {printable(f'{scenario.id}: {scenario.skip}')}", err=True)


def _names_scenarios(target: str) -> bool:
    path = Path(target.partition("::")[0])
    return path.name.endswith(SUFFIXES) or (path.is_dir() and not _is_manifest(path))


def _is_manifest(folder: Path) -> bool:
    """True for a folder that is an agent, as an app or a mesh is one."""
    from harness.dialects.registry import dialect_of

    try:
        return dialect_of(folder) is not None
    except ManifestError:
        return False
