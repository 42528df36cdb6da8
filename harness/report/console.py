"""A run on the terminal: progress while it goes on, what failed, and one compact block at the end.

Colours only on a terminal, and not with `NO_COLOR`; everything fits 80 columns. Texts of scenarios and
manifests are never read as markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final

from harness.report.cause import fault
from harness.report.failure import Detail, failed_checks, failure_text, title
from harness.report.formatting import cost, distinct, percent, plural, seconds
from harness.report.shorten import short_name, short_words
from harness.source.display import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from harness.scenario.outcome import Outcome

__all__ = ["RunReporter", "failure_text", "open_console", "print_summary"]

_STYLES: Final = {"passed": "green", "failed": "red", "error": "magenta", "skipped": "yellow"}
_MOST_FAILURES: Final = 20
_MOST_NAMES: Final = 3
_MOST_MISSING: Final = 6


def open_console(file: IO[str] | None = None) -> Console:
    """A console on this stream (standard output by default); characters it cannot show become escapes."""
    import sys

    from rich.console import Console

    stream = file or sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    return Console(file=stream, markup=False, highlight=False, emoji=False)


def print_summary(summary: Mapping[str, Any], console: Console, *, coverage: bool = False) -> None:
    """The results of a run as one block of label and value; with `coverage`, a line for each graph.

    No line ends in blanks: a table of rich would pad them.
    """
    from rich.text import Text

    facts = [("not whole", summary["reason"])] if summary["reason"] else []
    facts += [*_totals(summary["total"]), *_names(summary)]
    facts += _coverage(summary["coverage"]) if coverage else []
    console.print()
    console.print(_counts(summary["total"]))
    indent = max((len(label) for label, _ in facts), default=0) + 2
    for label, value in facts:
        for number, line in enumerate(Text(value).wrap(console, console.width - indent)):
            line.rstrip()
            console.print(Text.assemble((f"{'' if number else label:<{indent}}", "dim"), line))


def _counts(total: Mapping[str, Any]) -> Any:
    from rich.text import Text

    counts = [(f"{total['passed']} passed", "green" if total["passed"] else "dim")]
    counts += [(f"{total['failed']} failed", "bold red")] if total["failed"] else []
    counts += [(plural(total["errors"], "error"), "bold magenta")] if total["errors"] else []
    counts += [(f"{total['skipped']} skipped", "yellow")] if total["skipped"] else []
    text = Text(" · ").join(Text(count, style) for count, style in counts)
    return text + Text(
        f"   ({plural(total['runs'], 'run')} of {plural(total['scenarios'], 'scenario')})", "dim"
    )


def _totals(total: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if total["pass_rate"] is None:
        return
    low, high = total["pass_rate_interval"]
    yield "pass rate", f"{percent(total['pass_rate'])}  (95 % interval {percent(low)} to {percent(high)})"
    yield "fitness", f"{total['fitness']:.3f}"
    if text := distinct(total):
        yield "distinct", text
    repeats = max(map(int, total["pass_at_k"]), default=1)
    if repeats > 1:
        at, hat = total["pass_at_k"][str(repeats)], total["pass_hat_k"][str(repeats)]
        yield "repeats", f"pass@{repeats} {percent(at)} · pass^{repeats} {percent(hat)}"
    latency = total["latency"]
    if latency["p50"] is not None:
        shown = " · ".join(f"{name} {seconds(latency[name])}" for name in ("p50", "p95", "max"))
        yield "latency", f"{shown}  (virtual)"
    tokens = total["tokens"]
    yield "tokens", f"{tokens['input']:,} in · {tokens['output']:,} out · cost {cost(total['cost'])}"
    if total["warnings"]:
        yield "warnings", f"{total['warnings']:,}"
    yield "real time", seconds(total["wall"])


def _names(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Scenarios worth a look: flaky ones, and the slowest."""
    flaky = summary["total"]["flaky"]
    for i, entry in enumerate(flaky[:_MOST_NAMES]):
        yield "" if i else "flaky", f"{_name(entry)}  ({entry['passed']} of {entry['runs']} passed)"
    if len(flaky) > _MOST_NAMES:
        yield "", f"… and {len(flaky) - _MOST_NAMES} more"
    slow = [entry for entry in summary["slowest"][:_MOST_NAMES] if entry["latency"] > 0]
    for i, entry in enumerate(slow if summary["total"]["runs"] > 1 else []):
        yield "" if i else "slowest", f"{seconds(entry['latency'])}  {_name(entry)}"


def _name(entry: Mapping[str, Any]) -> str:
    return printable(entry["id"] + (f" [{entry['variant']}]" if entry["variant"] else ""))


def _coverage(graphs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for i, (manifest, parts) in enumerate(graphs.items()):
        shares = " · ".join(f"{part} {found['taken']}/{found['all']}" for part, found in parts.items())
        yield "" if i else "coverage", f"{printable(manifest)}  {shares}"
        missing = [_item(item) for item in parts["edges"]["missing"] or parts["branches"]["missing"]]
        more = ", …" if len(missing) > _MOST_MISSING else ""
        if missing:
            yield "", f"  not taken: {', '.join(missing[:_MOST_MISSING])}{more}"


def _item(item: Any) -> str:
    return " → ".join(map(short_name, item)) if isinstance(item, list) else printable(short_words(str(item)))


class RunReporter:
    """Shows a run while it goes on: `start`, `done` for each scenario, `finish` (or `stop`) at the end.

    On a terminal a progress bar, with a line above it for each scenario that did not pass; elsewhere a line
    for each scenario.
    """

    def __init__(self, console: Console, *, coverage: bool = False, detail: Detail = "normal") -> None:
        self._console, self._coverage, self._detail = console, coverage, detail
        self._not_passed = 0
        self._failures: dict[Any, tuple[Outcome, list[str]]] = {}
        self._verdicts = dict.fromkeys(_STYLES, 0)
        self._total = 0
        self._progress: Progress | None = None

    def start(self, total: int) -> None:
        """Begin; so many runs are to come."""
        self._total = total
        if self._console.is_terminal and not self._console.is_dumb_terminal and total > 1:
            self._progress = _progress(self._console, total)
            self._progress.start()

    def done(self, outcome: Outcome) -> None:
        """A scenario run has ended."""
        self._verdicts[outcome.verdict] += 1
        not_passed = outcome.verdict in ("failed", "error")
        if self._progress is None or not_passed:
            self._print_line(outcome)
        if not_passed:
            self._keep(outcome)
        if self._progress is not None:
            counts = ", ".join(f"{count} {verdict}" for verdict, count in self._verdicts.items() if count)
            self._progress.update(self._progress.task_ids[0], advance=1, description=counts, refresh=True)

    def _keep(self, outcome: Outcome) -> None:
        """Keep a failure for the end; of those with the same reason the first, and the names of the others."""
        self._not_passed += 1
        reason = fault(outcome) or self._not_passed
        if reason in self._failures:
            self._failures[reason][1].append(f"{outcome.suite}::{title(outcome)}")
        elif len(self._failures) < _MOST_FAILURES:
            self._failures[reason] = (outcome, [])

    def _print_line(self, outcome: Outcome) -> None:
        from rich.text import Text

        took = seconds(outcome.observed.latency.get("total"))
        line = Text.assemble(
            (f"{outcome.verdict:<7}", _STYLES[outcome.verdict]),
            (f" {took:>9}  ", "dim"),
            f"{printable(outcome.suite)}::{title(outcome)}",
        )
        if outcome.verdict in ("failed", "error"):
            known = fault(outcome) in self._failures
            line.append(f"  {'the same as above' if known else failed_checks(outcome)}", "dim")
            if self._console.is_terminal:
                line.truncate(self._console.width, overflow="ellipsis")
        self._console.print(line, soft_wrap=True)

    def stop(self) -> None:
        """Take the progress bar away; needed only when `finish` is not called."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Keep the progress bar off the terminal, while somebody is asked there."""
        if self._progress is not None:
            self._progress.stop()
        try:
            yield
        finally:
            if self._progress is not None:
                self._progress.start()

    def finish(self, summary: Mapping[str, Any]) -> None:
        """End: what failed, whether runs are missing (Ctrl-C), and the summary."""
        from rich.rule import Rule
        from rich.text import Text

        self.stop()
        for failure, same in self._failures.values():
            self._console.print(Rule(style="dim"))
            self._console.print(Text(failure_text(failure, self._detail, same)), soft_wrap=True)
        told = sum(1 + len(same) for _, same in self._failures.values())
        if self._failures:
            self._console.print(Rule(style="dim"))
        if self._not_passed > told:
            self._console.print(f"… and {self._not_passed - told} more that did not pass")
        print_summary(summary, self._console, coverage=self._coverage)


def _progress(console: Console, total: int) -> Progress:
    """A progress bar without a thread that refreshes it."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    progress = Progress(*columns, console=console, auto_refresh=False, transient=True)
    progress.add_task("", total=total)
    return progress
