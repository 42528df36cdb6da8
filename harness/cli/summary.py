"""`harness summary`: print the figures of one run, or of several combined."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli import completion
from harness.cli.options import PATH, flag
from harness.cli.output import deliver, deliver_json, warnings_at_end
from harness.settings import load_settings

if TYPE_CHECKING:
    from harness.report.runs import GroupedRuns

_EXAMPLES = """\b
Examples:
  harness summary                                 the last run
  harness summary reports/monday reports/tuesday  both combined
  harness summary --by tag,model                  a line for each tag and model
  harness summary --by variant --csv -            the same figures for a spreadsheet
  harness summary --by tag --markdown             Markdown for a comment
  harness summary reports/* --json - | jq .total.pass_rate
"""
_BY = """\
Group the table by these instead of by suite: suite, scenario, tag, model, variant, manifest, agent, dialect, verdict,
status, run.
"""


@click.command("summary", epilog=_EXAMPLES)
@click.argument("runs", nargs=-1, type=PATH, metavar="[RUN]...")
@click.option("--by", metavar="KEY,…", help=_BY, shell_complete=completion.group_keys)
@flag("--coverage", help="Print the nodes, edges and branches of each graph that no scenario covers.")
@flag("--markdown", "as_markdown", help="Print Markdown, as in summary.md.")
@click.option(
    "--json", "as_json", metavar="FILE", help="Write everything as JSON, as in summary.json; - is stdout."
)
@click.option(
    "--csv", "as_csv", metavar="FILE", help="Write the groups (of suites without --by) as CSV; - is stdout."
)
def command(
    runs: tuple[Path, ...],
    by: str | None,
    coverage: bool,
    as_markdown: bool,
    as_json: str | None,
    as_csv: str | None,
) -> None:
    """Print the figures of one run, or of several combined.

    RUN is a folder of results, or a results.jsonl (default: the last run of this project). The results of several
    runs are added up: a scenario in more than one of them counts as repeated. So they should be of the same
    agents; `harness compare` shows changes. The exit code is 0 even if scenarios failed.
    """
    from harness.report.markdown import markdown
    from harness.report.runs import GroupedRuns, csv_of, parse_keys, summarise_runs

    if [as_markdown, as_json == "-", as_csv == "-"].count(True) > 1:
        raise click.UsageError("only one of --markdown, --json - and --csv - can print to standard output")
    keys = parse_keys(key.strip() for key in by.split(",")) if by is not None else ()
    grouped = GroupedRuns(keys or ("suite",)) if keys or as_csv else None
    with warnings_at_end():
        summary = summarise_runs(runs or [load_settings().report], grouped)
    if as_json:
        groups = {"groups": grouped.as_json()} if grouped and keys else {}
        deliver_json(summary | groups, as_json)
    if as_csv and grouped:
        deliver(csv_of(grouped), None if as_csv == "-" else Path(as_csv))
    if as_markdown:
        click.echo(markdown(summary, grouped=grouped if keys else None), nl=False)
    elif not as_json and not as_csv:
        _print(summary, grouped, coverage)


def _print(summary: dict[str, Any], grouped: GroupedRuns | None, coverage: bool) -> None:
    from harness.report.console import open_console, print_summary, terminal_width
    from harness.report.summary_text import failures

    console = open_console()
    for line in failures(summary, terminal_width(console)):
        console.print(line, soft_wrap=True)
    print_summary(summary, console, coverage=coverage, grouped=grouped)
