"""`harness gate`: decide if a run is good enough."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli.options import flag, path_option, run_argument
from harness.cli.output import FAILED, NOT_JUDGED, OK, deliver, warnings_at_end
from harness.errors import FormatError
from harness.settings import load_settings

_EXIT_CODES = """\b
Exit codes, the first that applies:
  2  a file or an argument is wrong: no run, no baseline, a rule that applies to nothing
  3  more scenarios than max_errors could not be judged
  1  a rule failed
  0  all rules hold
"""


@click.command("gate", epilog=_EXIT_CODES)
@run_argument
@path_option(
    "--baseline",
    metavar="RUN|FILE",
    help="The run to compare with: a folder of results, or a file of `harness baseline save`.",
)
@path_option(
    "--policy",
    help="A YAML file with the rules, under `gate:` (default: [tool.harness.gate] in pyproject.toml).",
)
@click.option("--json", "as_json", metavar="FILE", help="Write the verdict as JSON; - is stdout.")
@click.option(
    "--markdown",
    metavar="FILE",
    help="Write the verdict as Markdown, for a comment on a pull request; - is stdout.",
)
@flag("--partial", help="Accept an incomplete run, and judge only what it ran.")
def command(
    run: Path | None,
    baseline: Path | None,
    policy: Path | None,
    as_json: str | None,
    markdown: str | None,
    partial: bool,
) -> int:
    """Check a run against rules, and against an earlier run, and report the rules that fail.

    RUN is a folder with results (default: the last run of this project). Without rules, all scenarios must pass;
    with a baseline, no scenario that passed there may fail or be missing.
    """
    from harness.gate.judge import judge, refused_json
    from harness.gate.policy import read_policy
    from harness.gate.text import lines, refused_markdown
    from harness.gate.text import markdown as as_markdown

    if as_json == markdown == "-":
        raise click.UsageError("--json and --markdown cannot both be written to standard output")
    try:
        settings = load_settings()
        with warnings_at_end():
            verdict = judge(
                run or settings.report,
                read_policy(policy, settings.project),
                baseline,
                partial=partial,
                history=settings.history,
            )
    except FormatError as error:  # files of an earlier gate must not pass for the verdict of this one
        _write(as_json, _json_text(refused_json(error.problems)))
        _write(markdown, refused_markdown(error.problems))
        raise
    for line in lines(verdict):
        click.echo(line, err="-" in (as_json, markdown))
    _write(as_json, _json_text(verdict.as_json()))
    _write(markdown, as_markdown(verdict))
    if verdict.unjudged:
        return NOT_JUDGED
    return OK if verdict.passed else FAILED


def _json_text(verdict: dict[str, Any]) -> str:
    from harness.report.encoding import encode

    return encode(verdict, indented=True) + "\n"


def _write(file: str | None, text: str) -> None:
    if file is not None:
        deliver(text, None if file == "-" else Path(file))
