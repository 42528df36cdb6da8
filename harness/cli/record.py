"""`harness record`: run scenarios against the real thing and record it, to be replayed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from harness.cli.options import (
    exit_first_option,
    quiet_option,
    report_option,
    tags_option,
    words_option,
)
from harness.settings import RecordMode

_MODES = """\b
Record modes:
  once          only scenarios that have no cassette yet
  new_episodes  play what is recorded, and add what is not (the default)
  all           ask anew for everything, and keep what was not asked for
  rewrite       ask anew for everything, in place of the whole cassette

\b
Exit codes are those of `harness run`. A cassette is written when its scenario
has ended, and stays as it was where the run broke off.
"""


@click.command("record", epilog=_MODES)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@words_option
@tags_option
@click.option(
    "--record-mode",
    "--mode",
    type=click.Choice(["once", "new_episodes", "all", "rewrite"]),
    help="What becomes of a cassette that is there.",
)
@click.option("--rewrite", is_flag=True, help="Ask for everything again: --record-mode rewrite.")
@exit_first_option
@report_option
@quiet_option
def command(
    paths: tuple[str, ...],
    words: str,
    tags: tuple[str, ...],
    record_mode: str | None,
    rewrite: bool,
    exit_first: bool,
    report: Path | None,
    quiet: bool,
) -> int:
    """Record scenarios against the real thing, to be replayed from then on.

    PATH is a scenario file (*.scenario.yaml), a folder of them, or FILE::NAME for one scenario.
    The test scenarios in a LeafMesh mesh file have a cassette each, named after file and scenario.
    Scenarios that have a cassette run with the network open: what neither a stub nor the cassette
    answers is really asked, and goes to cassettes/NAME without secrets; with --rewrite all of it is
    asked again. Keys are read from the environment, such as OPENAI_API_KEY. Where a person is asked
    and there is a terminal, you are. At the end it says what was asked and what was written.
    """
    from harness.cli.run_selection import run_selection
    from harness.cli.selection import select
    from harness.errors import FormatError, Problem
    from harness.report.formatting import plural
    from harness.scenario.cassette import cassette_name
    from harness.settings import Projects

    if rewrite and record_mode not in (None, "rewrite"):
        raise click.UsageError("--rewrite and --record-mode exclude each other")
    projects = Projects(
        chosen={"report": str(report)} if report else None,
        record_mode=RecordMode("rewrite" if rewrite else record_mode or "new_episodes"),
        record_in_ci=True,
    )
    selection = select(paths, projects, words=words, tags=tags)
    kept = tuple(
        each for each in selection.scenarios if cassette_name(each, projects.of(each.file)) is not None
    )
    if not kept and not selection.refused:
        text = f"{plural(len(selection.scenarios), 'scenario')} and no cassette: nothing to record"
        hint = "write `cassette: NAME` in the scenario, or `record = true` under [tool.harness]"
        raise FormatError(Problem("no-cassette", text, selection.scenarios[0].span, hint))
    if len(kept) < len(selection.scenarios) and not quiet:
        left = len(selection.scenarios) - len(kept)
        click.echo(f"{plural(left, 'scenario')} without a cassette left out", err=True)
    return run_selection(
        replace(selection, scenarios=kept), projects, exit_first=exit_first, quiet=quiet
    ).code
