"""`harness history`: show the figures of a project from run to run, and when each scenario changed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.options import PATH, path_option
from harness.cli.output import deliver_json, warnings_at_end
from harness.errors import FormatError, Problem
from harness.settings import load_settings
from harness.source.document import shown_path

if TYPE_CHECKING:
    from harness.report.history.trends import Trends

_DEFAULT_RUNS = 20
_DEFAULT_RUNS_IN_JSON = 1_000
_EXAMPLES = """\b
Examples:
  harness run scenarios/ --history history.jsonl     append a run
  harness history --file history.jsonl               show its runs
  harness history reports/monday reports/tuesday     compare folders of results
  harness history --json - | jq '.scenarios[] | select(.state == "flaky").id'
"""


@click.command("history", epilog=_EXAMPLES)
@click.argument("runs", nargs=-1, type=PATH, metavar="[RUN]...")
@path_option("--file", help="The history file (default: `history` of [tool.harness]).")
@click.option(
    "--last",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Show the last N runs (default: {_DEFAULT_RUNS}; as JSON, {_DEFAULT_RUNS_IN_JSON:,}).",
)
@click.option("--json", "as_json", metavar="FILE", help="Write the runs and scenarios as JSON; - is stdout.")
def command(runs: tuple[Path, ...], file: Path | None, last: int | None, as_json: str | None) -> None:
    """Show the figures from run to run, and when each scenario changed.

    The runs are those of a history file, to which `harness run --history FILE` appends, or folders of results
    (RUN, the oldest first). Incomplete runs are marked, and no run is compared with them. The state of a scenario
    does not depend on the number of runs that are shown.
    """
    from harness.report.console import open_console, terminal_width
    from harness.report.history.text import history_lines

    trends = _read(runs, file, last or (_DEFAULT_RUNS_IN_JSON if as_json else _DEFAULT_RUNS))
    if as_json:
        deliver_json(trends.as_json(), as_json)
        return
    plain = not _supports_curves(sys.stdout.encoding)
    console = open_console()
    for line in history_lines(trends, terminal_width(console), ascii_only=plain):
        console.out(line, highlight=False)


def _read(runs: tuple[Path, ...], file: Path | None, last: int) -> Trends:
    """Read the trends of these runs, or of the history if none are given.

    Raises:
        FormatError: there is no history, it cannot be read, or it has no runs.
    """
    from harness.report.history.file import read_history
    from harness.report.history.record import record_of
    from harness.report.history.trends import Trends

    trends = Trends(last)
    with warnings_at_end():
        file = file or (None if runs else load_settings().history)
        if file is not None:
            trends.extend(read_history(file))
        for run in runs:
            trends.add(record_of(run), shown_path(run))
    if not trends.count:
        what = "no history is configured" if file is None else f"no run is in {shown_path(file)}"
        hint = "`harness run --history FILE` appends runs to one; `history` in [tool.harness] names it once"
        raise FormatError(Problem("history-missing", what, hint=hint))
    return trends


def _supports_curves(encoding: str | None) -> bool:
    """True if this encoding has the characters of the curves."""
    try:
        "▁█✓✗".encode(encoding or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True
