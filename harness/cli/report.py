"""`harness report`: write the HTML report of a run again from its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from harness.cli.options import path_option, run_argument
from harness.cli.output import deliver, warnings_at_end
from harness.settings import load_settings
from harness.source.document import shown_path


@click.command("report")
@run_argument
@path_option(
    "--baseline", metavar="RUN", help="An earlier run, to show what is new, fixed or took another path since."
)
@path_option(
    "--history", help="A history file, for the view of earlier runs (default: `history` of [tool.harness])."
)
@path_option("-o", "--output", help="The page to write (default: report.html in RUN).")
@click.option(
    "--markdown",
    "as_markdown",
    metavar="FILE",
    help="Also write a Markdown summary for a comment on a pull request; - is stdout.",
)
def command(
    run: Path | None,
    baseline: Path | None,
    history: Path | None,
    output: Path | None,
    as_markdown: str | None,
) -> None:
    """Write report.html of a run: one page that opens from disk, without a server.

    RUN is a folder of results, or a results.jsonl (default: the last run of this project). A run writes its page and
    its summary.md itself; this command writes them again, compared with a baseline or to another file.
    """
    from harness.report.history.file import read_history
    from harness.report.html.overview import Baseline
    from harness.report.html.page import PAGE, page
    from harness.report.summary import summary_of

    settings = load_settings()
    run = run or settings.report
    if history is not None:
        # Raises if the first line is not one of a history; the page reports later bad lines.
        next(read_history(history), None)
    elif settings.history is not None and settings.history.is_file():
        history = settings.history
    file = output or (run if run.is_dir() else run.parent) / PAGE
    with warnings_at_end():
        before = None if baseline is None else Baseline.read(baseline)
        summary = summary_of(run)
        text = page(run, summary, before, history)
        comment = None if as_markdown is None else _markdown(run, summary, baseline)
    deliver(text, file)
    click.echo(shown_path(file), err=as_markdown == "-")
    if comment is not None:
        deliver(comment, None if as_markdown == "-" else Path(str(as_markdown)))
        if as_markdown != "-":
            click.echo(as_markdown)


def _markdown(run: Path, summary: Mapping[str, Any], baseline: Path | None) -> str:
    from harness.report.markdown import markdown, since_baseline

    if baseline is None:
        return markdown(summary)
    from harness.report.compare.comparison import Side, compare

    return markdown(summary, since_baseline(compare(Side.read(baseline), Side.read(run))))
