"""`harness compare`: list the differences between two runs, with the first event where their traces differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from harness.cli import completion
from harness.cli.output import deliver_json, warnings_at_end
from harness.cli.trace import one_trace, trace_file
from harness.errors import FormatError, Problem
from harness.source.display import did_you_mean

if TYPE_CHECKING:
    from harness.report.compare.comparison import Change, Comparison
    from harness.report.compare.explanation import Explanation
    from harness.report.compare.text import Line
    from harness.report.traces import RunTrace

_MAX_SHOWN: Final = 20
"""Number of scenarios of each kind that are printed."""
_MAX_READ: Final = 100
"""Number of scenarios of each kind whose traces are read, to group those with the same first difference."""
_MAX_IN_JSON: Final = 2_000
_STYLES: Final = {"worse": "red", "better": "green", "before": "red", "after": "green", "words": "yellow"}
_EXAMPLES = """\b
Examples:
  harness compare reports/main                    against the last run
  harness compare reports/latest/last-whole reports/latest
  harness compare reports/main --scenario "triage.scenario.yaml::a double charge"
  harness compare reports/main reports/mine --json - | jq .counts
  harness compare reports/main/traces/17.jsonl.gz langsmith.json

\b
Exit codes:
  0  always, whatever differs (`harness gate` decides)
  2  a run cannot be read, or an argument is wrong
"""


@click.command("compare", epilog=_EXAMPLES)
@click.argument(
    "arguments",
    nargs=-1,
    required=True,
    metavar="A [B] [FILE::NAME]",
    shell_complete=completion.scenario_paths,
)
@click.option(
    "--scenario",
    metavar="FILE::NAME",
    shell_complete=completion.scenario_paths,
    help="Show this scenario in full, with both conversations.",
)
@click.option("--json", "as_json", metavar="FILE", help="Write the comparison as JSON; - is stdout.")
@click.option("-v", "--verbose", is_flag=True, help="Do not shorten long texts.")
def command(arguments: tuple[str, ...], scenario: str | None, as_json: str | None, verbose: bool) -> None:
    """List the differences between two runs: scenarios that are worse, better, new, gone, or otherwise changed.

    A and B are folders of results, or files of `harness baseline save` (default for B: the last run).
    For each scenario: its verdict, score, latency, tokens and cost before and now, the checks that
    changed, and the first event where the traces differ (a route, prompt, reply, call or state update),
    with the line of the manifest. With FILE::NAME one scenario is shown in full, with both conversations.

    A and B may also be two traces, as `harness trace` reads them: of runs (…/traces/*.jsonl.gz) or of other tools.
    """
    from harness.report.compare.comparison import Side, compare
    from harness.report.compare.explanation import explain
    from harness.report.compare.first_difference import first_difference
    from harness.report.compare.text import as_json as data
    from harness.report.compare.text import trace_lines

    if scenario is None and (traces := _traces(arguments)):
        if as_json:
            difference = first_difference(*(trace.events for trace in traces))
            names = {
                side: trace.head.get("id") for side, trace in zip(("before", "after"), traces, strict=True)
            }
            found = {
                "format": "harness-compare/1",
                **names,
                "difference": difference and difference.as_json(),
            }
            deliver_json(found, as_json)
        else:
            _print(trace_lines(*traces, unfolded=verbose))
        return
    runs, scenario = _arguments(arguments, scenario)
    with warnings_at_end():
        comparison = compare(*map(Side.read, runs))
        changes = [change for change in comparison.changes if change.kind != "same"]
        if scenario is not None:
            changes = [_change_of(comparison, scenario)]
        if as_json:
            kept = changes[:_MAX_IN_JSON]
            found = data(comparison, explain(comparison, kept), len(changes) - len(kept))
            deliver_json(found, as_json)
        elif scenario is not None:
            _print(_full_lines(comparison, changes[0], verbose))
        else:
            _print(_overview_lines(comparison))


def _traces(arguments: Sequence[str]) -> tuple[RunTrace, RunTrace] | None:
    """Return the two traces that the arguments name; None if they name runs."""
    from harness.report.baseline_file import is_baseline_file
    from harness.traces.comparable import comparable

    files = [file for file in map(trace_file, arguments) if file and not is_baseline_file(file[0])]
    if len(files) != 2 or len(arguments) != 2:
        return None
    try:
        return comparable(one_trace(*files[0]), one_trace(*files[1]))
    except FormatError as error:
        if error.code == "trace-unknown" and not any(name for _, name in files):
            return None  # results under another name
        raise


def _arguments(arguments: Sequence[str], scenario: str | None) -> tuple[list[Path], str | None]:
    """Split the arguments into the two runs and the scenario to show in full."""
    from harness.settings import load_settings

    named = [text for text in arguments if "::" in text and not Path(text).exists()]
    runs = [Path(text) for text in arguments if text not in named]
    scenarios = [*named, *([scenario] if scenario else [])]
    if not 1 <= len(runs) <= 2:
        raise click.UsageError(f"expected one run or two, A and B; found {len(runs)}")
    if len(scenarios) > 1:
        raise click.UsageError(f"one scenario is shown in full; found {' and '.join(scenarios)}")
    if len(runs) == 1:
        runs.append(load_settings().report)
    return runs, scenarios[0] if scenarios else None


def _change_of(comparison: Comparison, scenario: str) -> Change:
    """Return the change of a scenario.

    Raises:
        FormatError: neither run has it, or it has several variants.
    """
    found = [each for each in comparison.changes if scenario in (each.scenario.id, each.scenario.label)]
    if len(found) == 1:
        return found[0]
    labels = [change.scenario.label for change in found or comparison.changes]
    if found:
        message, hint = f"'{scenario}' has several variants", f"name one of: {', '.join(labels)}"
    else:
        message, hint = f"neither run has a scenario '{scenario}'", did_you_mean(scenario, labels)
    raise FormatError(Problem("unknown-scenario", message, hint=hint))


def _overview_lines(comparison: Comparison) -> Iterator[Line]:
    from harness.report.compare.comparison import KINDS
    from harness.report.compare.explanation import explain
    from harness.report.compare.text import entry_lines, heading, section

    yield from heading(comparison)
    by_kind = {kind: comparison.of(kind) for kind in KINDS[:-1]}
    explained = [*explain(comparison, [each for found in by_kind.values() for each in found[:_MAX_READ]])]
    for kind, changes in by_kind.items():
        if not changes:
            continue
        yield from section(kind, len(changes), comparison)
        groups = _group(each for each in explained if each.change.kind == kind)
        for first, *alike in groups[:_MAX_SHOWN]:
            yield from entry_lines(first, [each.change for each in alike])
        left = len(changes) - sum(map(len, groups[:_MAX_SHOWN]))
        if left:
            yield f"  … and {left} more (--json has up to {_MAX_IN_JSON:,})", "dim"


def _group(found: Iterable[Explanation]) -> list[list[Explanation]]:
    """Group scenarios with the same first difference and the same changed checks, in order of first appearance."""
    from harness.report.encoding import encode

    groups: dict[Any, list[Explanation]] = {}
    for number, each in enumerate(found):
        same: Any = number  # without a first difference, a scenario is shown alone
        if each.difference is not None:
            shown = each.difference.as_json() | {"at": None, "times": None, "where": each.where}
            same = encode(
                [shown, [(check.name, (check.after or {}).get("message")) for check in each.checks]]
            )
        groups.setdefault(same, []).append(each)
    return [*groups.values()]


def _full_lines(comparison: Comparison, change: Change, verbose: bool) -> Iterator[Line]:
    from harness.report.compare.explanation import explain, trace_of
    from harness.report.compare.text import heading, whole_lines

    yield from [*heading(comparison)][:1]
    found = next(explain(comparison, [change]))
    traces = []
    for line, side in zip(found.lines, (comparison.before, comparison.after), strict=True):
        trace = None if line is None else trace_of(line, side.folder)
        if trace is not None and not isinstance(trace, str):
            traces.append(trace)
    if change.kind == "same":
        yield "the same in both runs", ""
    yield from whole_lines(found, traces, unfolded=verbose)


def _print(lines: Iterable[Line]) -> None:
    """Print lines, wrapped to the width of the terminal."""
    from rich.text import Text

    from harness.report.console import open_console, terminal_width
    from harness.report.formatting import hanging

    console = open_console()
    width = terminal_width(console)
    for line, style in lines:
        for part in [line] if width is None else hanging(line, max(width, 30)):
            console.print(Text(part, _STYLES.get(style, style)), soft_wrap=True)
