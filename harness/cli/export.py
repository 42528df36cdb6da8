"""`harness export`: write a run as OpenTelemetry spans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from harness.cli.options import Parsed, flag, run_argument
from harness.cli.output import unwritable
from harness.errors import FormatError, Problem
from harness.report.formatting import plural
from harness.settings import load_settings
from harness.source.display import escape_json_commands
from harness.source.document import shown_path
from harness.time.real import real

if TYPE_CHECKING:
    from harness.report.otel.spans import RunSpans

_NANO: Final = 1_000_000_000
_EXAMPLES = """\b
Examples:
  harness export --file spans.jsonl
  harness export reports/latest --otlp http://localhost:4318 --start now
"""


def _parse_time(text: str) -> int:
    """Parse a time, ISO 8601 or `now`, into nanoseconds since 1970."""
    if text == "now":
        return real.time_ns()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"'{text}' is neither a time such as 2026-01-31T12:00:00Z nor 'now'") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    seconds = int(moment.timestamp())
    if seconds < 0:
        raise ValueError(f"'{text}' is before 1970")
    return seconds * _NANO + moment.microsecond * 1000


@click.command("export", epilog=_EXAMPLES)
@run_argument
@click.option("--otlp", metavar="URL", help="Send the spans to this OTLP/HTTP collector.")
@click.option(
    "--file", metavar="FILE", help="Write the spans as OTLP JSON, one request per line; - is stdout."
)
@flag("--content", help="Include prompts, replies, arguments, results and error messages.")
@click.option(
    "--start",
    type=Parsed("time", _parse_time),
    metavar="TIME",
    help="Start of virtual time: ISO 8601, or 'now' (default: that of each run).",
)
def command(run: Path | None, otlp: str | None, file: str | None, content: bool, start: int | None) -> None:
    """Write a run as OpenTelemetry spans, with the names of the GenAI semantic conventions.

    RUN is a folder of results (default: the last run of this project). Each run of a scenario becomes a trace: a
    span for the run, one for each node, and one for each call. They are made from traces/, and nothing is sent
    anywhere unless --otlp is given. Needs: pip install "agent-scenarios[otel]"
    """
    from harness.report.otel.collector import Collector, batches, json_line, require_extra

    if (otlp is None) == (file is None):
        raise click.UsageError("say where the spans go: --otlp URL or --file FILE")
    require_extra()
    found = _Export(run or load_settings().report, content)
    requests = batches(found.runs(), start, content=content)
    if otlp is not None:
        collector = Collector(otlp)
        for spans in requests:
            collector.send(spans)
    elif file is not None:
        try:
            with click.open_file(file, "w", encoding="utf-8") as output:
                output.writelines(escape_json_commands(json_line(spans)) + "\n" for spans in requests)
        except OSError as error:
            raise unwritable(Path(file), error) from None
    for text in found.notes():
        click.echo(text, err=True)
    if not found.traces and found.damage is None:
        message = f"no run in {shown_path(found.report)} has a trace"
        raise FormatError(Problem("trace-missing", message, hint="run with --traces all"))
    click.echo(f"{plural(found.traces, 'trace')}, {plural(found.spans, 'span')}", err=file == "-")
    if found.damage is not None:
        raise found.damage


@dataclass
class _Export:
    """The runs of a report that have a trace, and counts of the others.

    never_ran  number of runs that were skipped or refused
    not_kept   number of runs without a trace for another reason
    damage     the first error in reading a trace
    """

    report: Path
    content: bool
    traces: int = 0
    spans: int = 0
    never_ran: int = 0
    not_kept: int = 0
    damage: FormatError | None = None

    def runs(self) -> Iterator[RunSpans]:
        """Yield the spans of each run.

        Raises:
            FormatError: there are no results, or they cannot be read.
        """
        from harness.report.otel.spans import run_spans
        from harness.report.reading import read_lines
        from harness.report.traces import read_trace

        folder = self.report if self.report.is_dir() else self.report.parent
        for line in read_lines(self.report):
            if line.get("trace") is None:
                ran = line["path"] or line["status"] not in ("skipped", "invalid")
                self.not_kept += bool(ran)
                self.never_ran += not ran
                continue
            try:
                trace = read_trace(folder / str(line["trace"]))
            except FormatError as error:
                self.damage = self.damage or error
                continue
            self.damage = self.damage or trace.damage
            try:
                made = run_spans(trace, line, content=self.content)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                missing = f"it has no {error}" if isinstance(error, KeyError) else str(error)
                message = f"{line['trace']} is not the trace of a run: {missing}"
                self.damage = self.damage or FormatError(Problem("trace-damaged", message))
                continue
            self.traces += 1
            self.spans += len(made.spans)
            yield made

    def notes(self) -> Iterator[str]:
        """Yield a line for each reason why runs have no spans."""
        for count, why in ((self.never_ran, "never began"), (self.not_kept, "did not keep it")):
            if count:
                yield f"without a trace: {plural(count, 'run')} that {why}"
