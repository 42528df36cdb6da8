"""`harness judge-check`: measure how far a judge agrees with people."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli import completion
from harness.cli import output as exit_code
from harness.cli.options import (
    JOBS_WHILE_RECORDING,
    PATH,
    may_call_models,
    path_option,
    record_mode_option,
    yes_option,
)
from harness.cli.output import check_writable, deliver_json
from harness.errors import CassetteError
from harness.report.formatting import plural
from harness.settings import Projects, RecordMode, Settings
from harness.source.document import shown_path

if TYPE_CHECKING:
    from harness.calibration.asking import Answers
    from harness.calibration.document import LabelFile
    from harness.calibration.measure import Figures
    from harness.secrets import Secrets

_EXIT_CODES = """\b
Exit codes, the first that applies:
  2  a file or an argument is wrong, or the judge would be called without a
     terminal to ask at and without --yes
  3  a row could not be judged, kappa is required but undefined, or the
     command was interrupted or not started
  1  agreement or kappa is below the required value
  0  otherwise
"""
_SHARE = click.FloatRange(0, 1)


@click.command("judge-check", epilog=_EXIT_CODES)
@click.argument("file", type=PATH)
@click.option(
    "--metric",
    metavar="NAME",
    shell_complete=completion.judges,
    help="The built-in judge to measure (see `harness judges`).",
)
@click.option("--rubric", metavar="TEXT", help="A rubric to measure, instead of a metric.")
@click.option("--model", metavar="NAME", help="The judge's model (default: judge_model of the settings).")
@path_option("--prompt", help="A file with a prompt that replaces the metric's.")
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="X",
    help="Minimum grade to pass (default: 0.5).",
)
@record_mode_option("How to handle calls that the cassette beside FILE does not answer.")
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    default=JOBS_WHILE_RECORDING,
    show_default=True,
    metavar="N",
    help="Ask a real judge for N rows at once.",
)
@yes_option
@click.option(
    "--require-agreement", type=_SHARE, metavar="X", help="Exit with 1 if the agreement is below X."
)
@click.option(
    "--require-kappa", type=click.FloatRange(-1, 1), metavar="X", help="Exit with 1 if kappa is below X."
)
@click.option("--json", "json_", metavar="FILE", help="Write the figures as JSON to FILE; - is stdout.")
def command(
    file: Path,
    record_mode: str,
    jobs: int,
    yes: bool,
    require_agreement: float | None,
    require_kappa: float | None,
    json_: str | None,
    **options: Any,
) -> int:
    """Measure a judge against labels of people.

    FILE has a row for each output that people have labelled: CSV, JSON Lines, YAML or JSON with `output`, `label`
    (pass or fail, true or false, or a grade from 0 to 1), and the other inputs of the judge: `input`, `context`,
    `tools`, `tool_calls`. The judge is chosen by the options, or by `judge` in FILE. Its answers are recorded in
    the folder FILE.cassette with --record-mode=new_episodes, and replayed from then on.
    """
    from harness.calibration.document import read_labels
    from harness.scenario.redaction import secrets_of_process

    check_writable(json_)
    settings = Projects(record_mode=RecordMode(record_mode)).of(file)
    labels = read_labels(file, options, settings)
    secrets = secrets_of_process(settings)
    again = _recording_command(file, options)
    if _will_ask(labels, settings, secrets, again):
        rows = plural(len(labels.rows), "row")
        click.echo(f"the judge {labels.question.model} will be called, for at most {rows}", err=True)
        if not may_call_models(yes):
            return exit_code.NOT_JUDGED
    answers, figures = _ask_and_measure(labels, settings, secrets, again, jobs)
    if answers.stopped:
        click.echo(f"the judge cannot be called: {secrets.text(answers.stopped)}", err=True)
        return exit_code.NOT_JUDGED
    _show(figures, answers, secrets, json_)
    return _exit_code(figures, require_agreement, require_kappa)


def _will_ask(labels: LabelFile, settings: Settings, secrets: Secrets, again: str) -> bool:
    """True if the judge will be called for real: neither stubs nor the cassette answer for every row."""
    from harness.calibration.asking import Answers, ask, open_cassette
    from harness.scenario.cassette import ONLY_MISSING, effective_record_mode

    try:
        with open_cassette(labels.file, settings, secrets, again) as cassette:
            if not cassette.backend.is_real:
                return False
        if effective_record_mode(settings) not in ONLY_MISSING:
            return True
        answers, replay = Answers(), replace(settings, record_mode=RecordMode.NONE)
        with open_cassette(labels.file, replay, secrets, again) as cassette:
            ask(labels, cassette, answers, lambda: None)
    except CassetteError:  # told when the answers are asked for
        return False
    return bool(answers.stopped)


def _ask_and_measure(
    labels: LabelFile, settings: Settings, secrets: Secrets, again: str, jobs: int
) -> tuple[Answers, Figures]:
    """Ask the judge, with progress on standard error, and save its answers even if it is interrupted."""
    from harness.calibration.asking import Answers, ask, open_cassette
    from harness.calibration.measure import measure
    from harness.recording.permits import Permits, permits_from
    from harness.recording.spending import Spending
    from harness.scenario.outcome import PriceList

    answers, permits = Answers(), Permits(Spending(PriceList(settings.prices).cost), settings.max_connections)
    try:
        with (
            permits as source,
            permits_from(source),
            open_cassette(labels.file, settings, secrets, again) as cassette,
        ):
            whole = False
            try:
                with click.progressbar(
                    length=len(labels.rows),
                    label="asking the judge",
                    file=sys.stderr,
                    hidden=not sys.stderr.isatty(),
                ) as bar:
                    ask(labels, cassette, answers, lambda: bar.update(1), at_once=jobs)
                whole = not answers.stopped
            finally:
                if cassette.save(whole=whole):
                    judged = f"{len(answers.graded)} of {len(labels.rows)} rows were judged"
                    left = "" if whole else f": {judged}; --record-mode=new_episodes goes on"
                    click.echo(f"recorded in {cassette.place}{left}", err=True)
    except CassetteError as error:
        answers.stopped = str(error)
    return answers, measure(labels, answers.graded)


def _recording_command(file: Path, options: Mapping[str, Any]) -> str:
    """Return the command that asks for the answers that are not recorded yet."""
    given = [f"--{name}={value}" for name, value in options.items() if value is not None]
    return shlex.join(["harness", "judge-check", shown_path(file), *given, "--record-mode=new_episodes"])


def _show(figures: Figures, answers: Answers, secrets: Secrets, json_: str | None) -> None:
    from harness.calibration.text import lines

    for text in (*answers.cut, *answers.unused):
        click.echo(f"warning: {secrets.text(text)}", err=True)
    for line in lines(figures):
        click.echo(secrets.text(line), err=json_ == "-")
    if json_ is not None:
        deliver_json(secrets.data(figures.as_json()), json_)


def _exit_code(figures: Figures, require_agreement: float | None, require_kappa: float | None) -> int:
    if figures.missing:
        click.echo("some rows could not be judged", err=True)
        return exit_code.NOT_JUDGED
    if require_kappa is not None and figures.kappa is None:
        click.echo(f"kappa {require_kappa:g} is required, but not reported: {figures.silent}", err=True)
        return exit_code.NOT_JUDGED
    required = (("agreement", require_agreement, figures.agreement), ("kappa", require_kappa, figures.kappa))
    missed = [
        (name, least, found) for name, least, found in required if least is not None and (found or 0) < least
    ]
    for name, least, found in missed:
        click.echo(f"{name} {found:.3f} is below the required {least:g}", err=True)
    return exit_code.FAILED if missed else exit_code.OK
