"""`harness cassettes`: list recordings and their problems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli import completion
from harness.cli import output as exit_code
from harness.cli.output import print_problems
from harness.report.formatting import plural
from harness.source.document import shown_path

if TYPE_CHECKING:
    from harness.scenario.inventory import CassetteStatus

_EXIT_CODES = """\b
Exit codes:
  0  every cassette replays completely and is up to date
  1  at least one cassette has a remark
  2  a file or an argument is wrong
"""


@click.command("cassettes", epilog=_EXIT_CODES)
@click.argument("paths", nargs=-1, metavar="[PATH...]", shell_complete=completion.scenario_paths)
@click.option("--prune", is_flag=True, help="Delete the cassettes that no scenario names.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def command(paths: tuple[str, ...], prune: bool, as_json: bool) -> int:
    """List recordings with their age, and those that are stale, unused or orphaned.

    PATH is a scenario file or a folder of them (default: the whole project). Scenarios with a cassette are
    replayed, offline, to see which recorded calls they use. With PATH, only cassettes that these scenarios
    name are listed. A cassette is orphaned if no scenario of the project names it.
    """
    from harness.cli.selection import scenarios_below, select
    from harness.recording.folder import CassetteFolder
    from harness.scenario.inventory import inventory
    from harness.settings import Projects

    if prune and paths:
        raise click.UsageError("--prune looks at the whole project: give no PATH with it")
    projects = Projects()
    project = projects.around(Path.cwd()).project
    selection = select(paths or (str(project),), projects)
    for error in selection.refused.values():
        print_problems(error.problems)
    listed = inventory(selection.scenarios, projects, orphans_of=None if paths else Path.cwd())
    refused = [*selection.refused]
    if not paths and any(each.orphaned for each in listed):
        own, unreadable = scenarios_below(project, projects)  # these may name them
        listed = inventory([*selection.scenarios, *own], projects, orphans_of=Path.cwd())
        refused += unreadable
    if prune and not refused:
        for orphan in [each for each in listed if each.orphaned]:
            CassetteFolder(projects.around(Path.cwd()).cassettes, orphan.name).remove()
            listed.remove(orphan)
            click.echo(f"removed {shown_path(orphan.folder)}", err=as_json)
    elif prune:
        files = ", ".join(map(shown_path, refused))
        click.echo(f"nothing is removed while there are files that cannot be read: {files}", err=True)
    if as_json:
        data = [
            {**vars(each), "folder": shown_path(each.folder), "orphaned": each.orphaned} for each in listed
        ]
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        _print(listed)
    if selection.refused:
        return exit_code.BAD_INPUT
    return exit_code.OK if all(each.is_healthy for each in listed) else exit_code.FAILED


def _print(listed: list[CassetteStatus]) -> None:
    from rich.table import Table
    from rich.text import Text

    from harness.report.console import open_console

    console = open_console()
    if not listed:
        text = "no cassettes: `harness record` makes them, for scenarios with `cassette: NAME`"
        console.print(text, soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("cassette", "age", "recordings", "calls", ""):
        table.add_column(title, justify="right" if title in ("age", "recordings", "calls") else "left")
    for each in listed:
        state = "; ".join(_remarks(each)) or "ok"
        shown = Text(state, style="green" if each.is_healthy else "yellow", overflow="fold")
        name = Text(each.name, overflow="fold")
        table.add_row(name, _age(each.age_days), str(each.recordings), str(each.calls), shown)
    console.print(table)
    for each in listed:
        if each.problem:
            console.print()
            console.print(Text(f"{each.name}: {each.problem}"), soft_wrap=True)


def _age(days: int | None) -> str:
    if days is None:
        return "?"
    return "today" if days < 1 else f"{days} d"


def _remarks(each: CassetteStatus) -> list[str]:
    remarks = ["orphaned: no scenario names it"] if each.orphaned else []
    if each.changed:
        remarks.append(f"stale: {', '.join(each.changed)} changed since")
    if each.too_old:
        remarks.append("too old" if each.age_days is not None else "its age is not known")
    if each.problem:
        remarks.append("does not replay, see below" if each.recordings else each.problem.splitlines()[0])
    if each.unused and not each.problem:
        remarks.append(f"{each.unused} of {each.calls} calls unused")
    if each.unfinished:
        calls = plural(each.unfinished, "call")
        remarks.append(
            f"{calls} of a recording that did not end: record again to use them, or delete .unfinished"
        )
    return remarks
