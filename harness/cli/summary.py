"""`harness summary`: print the figures of one run, or of several combined."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli.options import PATH, flag
from harness.cli.output import deliver_json, warnings_at_end
from harness.report.encoding import encode
from harness.report.summary import GROUPS
from harness.settings import load_settings

_EXAMPLES = """\b
Examples:
  harness summary                                 the last run
  harness summary reports/monday reports/tuesday  both combined
  harness summary --by tag --markdown             Markdown for a comment
  harness summary reports/* --json - | jq .total.pass_rate
"""
_FIELDS = {word: field for field, word in GROUPS.items()}


@click.command("summary", epilog=_EXAMPLES)
@click.argument("runs", nargs=-1, type=PATH, metavar="[RUN]...")
@click.option("--by", type=click.Choice([*_FIELDS]), help="Group the table by this instead of by suite.")
@flag("--coverage", help="Print the nodes, edges and branches of each graph that no scenario covers.")
@flag("--markdown", "as_markdown", help="Print Markdown, as in summary.md.")
@click.option(
    "--json", "as_json", metavar="FILE", help="Write everything as JSON, as in summary.json; - is stdout."
)
def command(
    runs: tuple[Path, ...], by: str | None, coverage: bool, as_markdown: bool, as_json: str | None
) -> None:
    """Print the figures of one run, or of several combined.

    RUN is a folder of results, or a results.jsonl (default: the last run of this project). The results of several
    runs are added up: a scenario in more than one of them counts as repeated. So they should be of the same
    agents; `harness compare` shows changes. The exit code is 0 even if scenarios failed.
    """
    from harness.report.markdown import markdown
    from harness.report.runs import summarise_runs

    if as_markdown and as_json == "-":
        raise click.UsageError("--markdown and --json - both print to standard output")
    with warnings_at_end():
        summary = summarise_runs(runs or [load_settings().report])
    if as_json:
        deliver_json(encode(summary, indented=True), as_json)
    if as_markdown:
        click.echo(markdown(summary, by=_FIELDS[by or "suite"]), nl=False)
    elif not as_json:
        _print(summary, None if by is None else _FIELDS[by], coverage)


def _print(summary: dict[str, Any], by: str | None, coverage: bool) -> None:
    from harness.report.console import open_console, print_summary, terminal_width
    from harness.report.summary_text import failures

    console = open_console()
    for line in failures(summary, terminal_width(console)):
        console.print(line, soft_wrap=True)
    print_summary(summary, console, coverage=coverage, by=by)
