"""`harness trace`: print what happened in a run, as a conversation."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from harness.cli import completion
from harness.cli.options import PATH, flag
from harness.errors import FormatError, Problem
from harness.report.encoding import encode
from harness.report.formatting import plural, seconds
from harness.report.reading import RESULTS, read_lines
from harness.report.repeats import NOT_PASSED
from harness.report.summary import nothing_ran
from harness.report.traces import LAST_WHOLE, RunTrace, read_trace
from harness.source.display import did_you_mean, escape_json_commands, nearest_names, printable
from harness.source.document import shown_path

if TYPE_CHECKING:
    from harness.report.traces import RunTrace


Line = dict[str, Any]


@click.command("trace")
@click.argument("scenario", metavar="FILE[::NAME]", shell_complete=completion.scenario_paths)
@click.argument("run", required=False, type=PATH, metavar="[RUN]")
@click.option(
    "--repeat",
    type=click.IntRange(min=0),
    metavar="N",
    help="The repeat to show, from 0 (default: the first that did not pass).",
)
@click.option("--variant", metavar="NAME", help="The variant to show.")
@flag("--json", "as_json", help="Print the events as JSON, one per line, with all messages in full.")
@flag("-v", "--verbose", help="Do not shorten long texts.")
def command(
    scenario: str, run: Path | None, repeat: int | None, variant: str | None, as_json: bool, verbose: bool
) -> None:
    """Print what happened in a run of a scenario, as a conversation.

    It shows nodes, prompts, replies, calls and their results, and the routes with their conditions; the virtual
    time is in the margin. RUN is a folder with results (default: reports/latest in the project).
    Of several repeats, the first that did not pass is shown, or else the first.

    FILE may also be a trace: of a run of ours (…/traces/*.jsonl.gz), or an export of OpenTelemetry (OTLP as JSON),
    LangSmith, Langfuse, the OpenAI Agents SDK or Yagra. What the export lacks is listed at the end. If it has
    several conversations they are listed; ::NAME shows one.
    """
    if run is None and (file := trace_file(scenario)):
        traces = traces_named(*file)
        if len(traces) > 1:
            _list(file[0], traces)
        else:
            _show(traces[0], _title_of(traces[0].head), as_json, verbose)
        return
    if "::" not in scenario and (scenario.endswith(".jsonl") or Path(scenario).is_dir()):
        hint = f"the scenario comes before the run: harness trace FILE::NAME {scenario}"
        raise FormatError(Problem("unknown-scenario", f"'{scenario}' is not FILE::NAME", hint=hint))
    trace, line, lines = trace_of(scenario, run, repeat, variant)
    _show(trace, _title(line, lines), as_json, verbose)


def _show(trace: RunTrace, title: Sequence[str], as_json: bool, verbose: bool) -> None:
    from harness.report.console import open_console, terminal_width
    from harness.report.conversation import print_rows, rows

    if as_json:
        head = {**trace.head, "missing": trace.missing} if trace.missing else trace.head
        for event in (head, *trace.events):
            click.echo(escape_json_commands(encode(event)))
    else:
        console = open_console()
        width = terminal_width(console)
        for text in title:
            console.print(text, soft_wrap=True)
        print_rows(rows(trace.events, trace.head.get("kinds", {})), console, width, whole=verbose)
        if trace.missing:
            console.print("\nmissing in this export:", soft_wrap=True)
        for text in trace.missing:
            console.print(printable(f"  {text}"), soft_wrap=True)
    if trace.damage is not None:
        raise trace.damage


def trace_of(
    scenario: str, run: Path | None = None, repeat: int | None = None, variant: str | None = None
) -> tuple[RunTrace, Line, list[Line]]:
    """Return the trace of a run of a scenario, its results line, and those of its repeats and variants.

    Raises:
        FormatError: the run has no such scenario, or no trace of it.
    """
    folder = _folder(scenario, run)
    lines = _lines_of(scenario, folder, variant)
    line = _choose_repeat(lines, repeat)
    if line.get("trace") is None:
        raise FormatError(_not_kept(line, folder))
    return read_trace(folder / str(line["trace"])), line, lines


def _list(path: Path, traces: Sequence[RunTrace]) -> None:
    """Print the names of the conversations of a file."""
    click.echo(f"{printable(shown_path(path))} has {plural(len(traces), 'conversation')}:")
    for trace in traces:
        counts = Counter(event["kind"] for event in trace.events if event["event"] == "call")
        calls = ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "no calls"
        named = shlex.quote(f"{shown_path(path)}::{name_of(trace)}")
        click.echo(printable(f"  {named}  ({calls})"))


def _title_of(head: Mapping[str, Any]) -> list[str]:
    """Return the title of a trace that was given as a file."""
    facts = [head.get("verdict"), head.get("status"), head.get("manifest"), head.get("format")]
    return [printable(str(head.get("id"))), printable("  ".join(str(fact) for fact in facts if fact)), ""]


def _folder(scenario: str, run: Path | None) -> Path:
    """Return the folder of the run."""
    from harness.report.failure import default_report

    if run is not None:
        return run.parent if run.name == RESULTS else run
    return default_report(Path(scenario.partition("::")[0]))


def _lines_of(scenario: str, folder: Path, variant: str | None) -> list[Line]:
    """Return the result lines of a scenario: its repeats and variants.

    Raises:
        FormatError: the run has no such scenario, several match, or nothing ran.
    """
    file, separator, name = scenario.partition("::")
    named: list[Line] = []
    known: dict[tuple[str, str], None] = {}  # names only: there may be many lines of other scenarios
    for line in read_lines(folder):
        known[line["suite"], line["scenario"]] = None
        if line["scenario"] == name:
            named.append(line)
    found = [line for line in named if line["suite"] == file] or [
        line for line in named if _may_be_same_file(line["suite"], file)
    ]
    if not known and not (folder / LAST_WHOLE).is_dir():
        raise nothing_ran(folder)
    if not separator or not found:
        raise FormatError(_unknown(scenario, folder, known))
    ids = sorted({line["id"] for line in found})
    if len(ids) > 1:
        message = f"'{scenario}' may be one of {len(ids)} scenarios"
        raise FormatError(Problem("unknown-scenario", message, hint=f"name one of: {', '.join(ids)}"))
    variants = [line["variant"] for line in found]
    if variant is not None and variant not in variants:
        hint = did_you_mean(variant, [each for each in variants if each])
        raise FormatError(Problem("unknown-scenario", f"'{scenario}' has no variant '{variant}'", hint=hint))
    return [line for line in found if variant is None or line["variant"] == variant]


def _may_be_same_file(one: str, other: str) -> bool:
    """True if two relative paths, from two folders, may be the same file: the longer ends with the shorter."""
    parts, others = Path(one).parts, Path(other).parts
    common = min(len(parts), len(others))
    return common > 0 and parts[-common:] == others[-common:]


def _unknown(scenario: str, folder: Path, known: Collection[tuple[str, str]]) -> Problem:
    file, separator, name = scenario.partition("::")
    whole = folder / LAST_WHOLE
    if (whole / RESULTS).is_file() and any(line["id"] == scenario for line in read_lines(whole)):
        hint = f"the last whole run has it: harness trace '{scenario}' {shown_path(whole)}"
    elif names := [each for suite, each in known if _may_be_same_file(suite, file)]:
        hint = nearest_names(name, names)
    else:
        hint = did_you_mean(file, [suite for suite, _ in known])
    missing = f"no scenario '{scenario}' in the results of {shown_path(folder)}"
    message = missing if separator else f"'{scenario}' is not FILE::NAME"
    return Problem("unknown-scenario", message, hint=hint)


def _choose_repeat(lines: Sequence[Line], repeat: int | None) -> Line:
    if repeat is None:
        return next((line for line in lines if line["verdict"] in NOT_PASSED), lines[0])
    found = next((line for line in lines if line["repeat"] == repeat), None)
    if found is None:
        message = f"'{lines[0]['id']}' has no repeat {repeat}"
        known = dict.fromkeys(str(line["repeat"]) for line in lines)  # each variant has the same repeats
        raise FormatError(Problem("unknown-scenario", message, hint=f"repeats: {', '.join(known)}"))
    return found


def _not_kept(line: Line, folder: Path) -> Problem:
    """Return the problem that a run has no trace, with the reason if its results tell."""
    message = f"no trace of '{line['id']}' is in {shown_path(folder)}"
    if line["verdict"] == "skipped":
        return Problem("trace-missing", f"{message}: it was skipped", hint=line["reason"])
    if not line["path"] and line["error"]:
        return Problem("trace-missing", f"{message}: it failed before it ran", hint=line["error"]["message"])
    return Problem("trace-missing", message, hint="it is kept with --traces all, up to `traces_limit`")


def _title(line: Line, lines: Sequence[Line]) -> list[str]:
    ran = [
        line["verdict"] + (f" (score {line['score']:.2f})" if line["score"] < 1 else ""),
        f"{line['manifest']} ({line['dialect']})",
        f"seed {line['seed']}",
        f"{seconds(line['latency']['total'])} of virtual time",
    ]
    title = [printable(line["id"]), printable("  ".join(ran))]
    names = list(dict.fromkeys(each["variant"] for each in lines))
    if len(names) > 1:
        others = ", ".join(str(name) for name in names if name != line["variant"])
        title.append(printable(f"as variant {line['variant']}; others with --variant: {others}"))
        lines = [each for each in lines if each["variant"] == line["variant"]]
    if len(lines) > 1:
        counts = Counter(each["verdict"] for each in lines)
        others = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        runs = plural(len(lines), "run")
        title.append(f"repeat {line['repeat']} of {runs} ({others}); another: --repeat N")
    return [*title, ""]


_SCENARIOS: Final = (".yaml", ".yml")
_TRACES: Final = (".json", ".jsonl", ".gz")


def trace_file(argument: str) -> tuple[Path, str] | None:
    """Return the file and the name in an argument; None if it names something else, such as a scenario or a run."""
    file, _, name = argument.partition("::")
    path = Path(file)
    if path.suffix in _SCENARIOS or path.name == RESULTS or path.is_dir():
        return None
    return (path, name) if path.is_file() or path.suffix in _TRACES else None


def traces_named(path: Path, name: str) -> list[RunTrace]:
    """Return the conversations of a file: all without a name, else the one of that name.

    Raises:
        FormatError: the file cannot be read, or has no conversation of that name (`unknown-scenario`).
    """
    from harness.traces.reading import read_traces

    traces = read_traces(path)
    names = [name_of(trace) for trace in traces]
    if not name:
        return traces
    if name not in names:
        message = f"{shown_path(path)} has no conversation '{name}'"
        raise FormatError(Problem("unknown-scenario", message, hint=did_you_mean(name, names)))
    return [traces[names.index(name)]]


def name_of(trace: RunTrace) -> str:
    """Return the name of a conversation, or of the scenario that a run was of."""
    return str(trace.head.get("scenario") or trace.head.get("id"))


def one_trace(path: Path, name: str) -> RunTrace:
    """Return the only conversation of a file, or the one of that name.

    Raises:
        FormatError: as `traces_named`, or it has several and none is named.
    """
    traces = traces_named(path, name)
    if len(traces) > 1:
        message = f"{shown_path(path)} has {len(traces)} conversations"
        names = ", ".join(f"'{shown_path(path)}::{name_of(trace)}'" for trace in traces[:10])
        raise FormatError(Problem("unknown-scenario", message, hint=f"name one: {names}"))
    return traces[0]
