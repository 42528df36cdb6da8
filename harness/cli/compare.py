"""`harness compare`: what differs between two runs, and where in their traces it began."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from harness.cli.output import deliver_json, warnings_at_end
from harness.errors import FormatError, Problem
from harness.source.suggest import did_you_mean

if TYPE_CHECKING:
    from harness.report.compare.comparison import Change, Comparison
    from harness.report.compare.explained import Explained
    from harness.report.compare.text import Line

_MOST_SHOWN: Final = 20
"""Scenarios of each kind that are printed."""
_MOST_READ: Final = 100
"""Scenarios of each kind whose traces are read, to tell which have the same first difference."""
_MOST_IN_JSON: Final = 2_000
_STYLES: Final = {
    "": "",
    "bold": "bold",
    "dim": "dim",
    "worse": "red",
    "better": "green",
    "before": "red",
    "after": "green",
    "words": "yellow",
}
_EXAMPLES = """\b
Examples:
  harness compare reports/main                    against the last run
  harness compare reports/latest/last-whole reports/latest
  harness compare reports/main --scenario "triage.scenario.yaml::a double charge"
  harness compare reports/main reports/mine --json - | jq .counts

\b
Exit codes:
  0  whatever differs: this is a view; `harness gate` decides
  2  a run cannot be read, or an argument is wrong
"""


@click.command("compare", epilog=_EXAMPLES)
@click.argument("arguments", nargs=-1, required=True, metavar="A [B] [FILE::NAME]")
@click.option("--scenario", metavar="FILE::NAME", help="Tell this scenario in full.")
@click.option("--json", "as_json", metavar="FILE", help="Write the comparison as JSON; - is stdout.")
@click.option("-v", "--verbose", is_flag=True, help="Print long texts to their end.")
def command(arguments: tuple[str, ...], scenario: str | None, as_json: str | None, verbose: bool) -> None:
    """Tell what differs between two runs: what got worse, better, is new, gone, or changed all the same.

    A and B are folders of results, or files of `harness baseline save` (default for B: the last run).
    Each scenario has its verdict, score, latency, tokens and cost before and now, the checks that
    changed, and the first event where the traces differ: a route, a prompt, a reply, a call, an update
    of the state, with the line of the manifest. With FILE::NAME one scenario is shown in full, with both
    conversations.
    """
    from harness.report.compare.comparison import Side, compare
    from harness.report.compare.explained import explain
    from harness.report.compare.text import as_json as data
    from harness.report.encoding import encode

    runs, scenario = _arguments(arguments, scenario)
    with warnings_at_end():
        comparison = compare(*map(Side.read, runs))
        changes = [change for change in comparison.changes if change.kind != "same"]
        if scenario is not None:
            changes = [_found(comparison, scenario)]
        if as_json:
            kept = changes[:_MOST_IN_JSON]
            text = encode(
                data(comparison, explain(comparison, kept), len(changes) - len(kept)), indented=True
            )
            deliver_json(text, as_json)
        elif scenario is not None:
            _print(_in_full(comparison, changes[0], verbose))
        else:
            _print(_lines(comparison))


def _arguments(arguments: Sequence[str], scenario: str | None) -> tuple[list[Path], str | None]:
    """The two runs, and the scenario that is asked for."""
    from harness.settings import load_settings

    named = [text for text in arguments if "::" in text and not Path(text).exists()]
    runs = [Path(text) for text in arguments if text not in named]
    asked = [*named, *([scenario] if scenario else [])]
    if not 1 <= len(runs) <= 2:
        raise click.UsageError(f"expected one run or two, A and B; found {len(runs)}")
    if len(asked) > 1:
        raise click.UsageError(f"one scenario is shown in full; found {' and '.join(asked)}")
    if len(runs) == 1:
        runs.append(load_settings().report)
    return runs, asked[0] if asked else None


def _found(comparison: Comparison, scenario: str) -> Change:
    """The change of a scenario.

    Raises:
        FormatError: no run has it.
    """
    found = [
        change for change in comparison.changes if scenario in (change.scenario.id, change.scenario.label)
    ]
    if len(found) == 1:
        return found[0]
    labels = [change.scenario.label for change in found or comparison.changes]
    if found:
        message, hint = f"'{scenario}' has several variants", f"name one of: {', '.join(labels)}"
    else:
        message, hint = f"neither run has a scenario '{scenario}'", did_you_mean(scenario, labels)
    raise FormatError(Problem("unknown-scenario", message, hint=hint))


def _lines(comparison: Comparison) -> Iterator[Line]:
    from harness.report.compare.comparison import KINDS
    from harness.report.compare.explained import explain
    from harness.report.compare.text import entry_lines, heading, section

    yield from heading(comparison)
    by_kind = {kind: comparison.of(kind) for kind in KINDS[:-1]}
    explained = [*explain(comparison, [each for found in by_kind.values() for each in found[:_MOST_READ]])]
    for kind, changes in by_kind.items():
        if not changes:
            continue
        yield from section(kind, len(changes), comparison)
        groups = _grouped(each for each in explained if each.change.kind == kind)
        for first, *alike in groups[:_MOST_SHOWN]:
            yield from entry_lines(first, [each.change for each in alike])
        left = len(changes) - sum(map(len, groups[:_MOST_SHOWN]))
        if left:
            yield f"  … and {left} more (--json has up to {_MOST_IN_JSON:,})", "dim"


def _grouped(found: Iterable[Explained]) -> list[list[Explained]]:
    """Those with the same first difference and the same changed checks together, in the order of the first."""
    groups: dict[Any, list[Explained]] = {}
    for number, each in enumerate(found):
        groups.setdefault(_likeness(each) or number, []).append(each)
    return [*groups.values()]


def _likeness(found: Explained) -> Any:
    """What those have in common that are shown once; None for one that is shown by itself."""
    from harness.report.encoding import encode

    if found.difference is None:
        return None
    shown = found.difference.as_json() | {"at": None, "times": None, "where": found.where}
    checks = [(check.name, (check.after or {}).get("message")) for check in found.checks]
    return encode([shown, checks])


def _in_full(comparison: Comparison, change: Change, verbose: bool) -> Iterator[Line]:
    from harness.report.compare.explained import explain, trace_of
    from harness.report.compare.text import heading
    from harness.report.compare.whole import whole_lines

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
    """Print lines, within the width of a terminal."""
    from rich.text import Text

    from harness.report.console import open_console, terminal_width
    from harness.report.wrap import hanging

    console = open_console()
    width = terminal_width(console)
    for line, style in lines:
        for part in [line] if width is None else hanging(line, max(width, 30)):
            console.print(Text(part, _STYLES[style]), soft_wrap=True)
