"""The verdict of a gate for a terminal: a line per rule, and the affected scenarios below a rule that fails."""

from __future__ import annotations

from collections.abc import Iterator

from harness.gate.figures import bound_text, change_text, figure_text
from harness.gate.judge import Verdict
from harness.gate.ruling import AffectedScenario, Ruling
from harness.report.formatting import plural
from harness.source.display import clip, printable

MAX_SCENARIOS = 10
MAX_CHECKS = 3
_MESSAGE_LENGTH = 200


def lines(verdict: Verdict) -> Iterator[str]:
    """Yield the lines of the verdict."""
    against = f" against {verdict.baseline}" if verdict.baseline else ""
    yield printable(f"gate: {verdict.run}{against}, rules of {verdict.policy or 'the harness (no policy)'}")
    rows = [(rule_label(ruling), figure_text(ruling), bound_text(ruling)) for ruling in verdict.rulings]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(2)]
    printed: set[str] = set()
    for ruling, row in zip(verdict.rulings, rows, strict=True):
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=False)]
        result = "passed" if ruling.passed else "failed"
        yield printable(
            f"{result}  {'  '.join(cells)}  {row[2]}" + (f"  ({ruling.note})" if ruling.note else "")
        )
        if not ruling.passed:
            yield from (f"        {printable(line)}" for line in _affected(ruling, printed))
    yield from (printable(f"note: {note}") for note in verdict.notes)
    yield headline(verdict)


def headline(verdict: Verdict) -> str:
    """Return the verdict as one line."""
    failed = sum(not ruling.passed for ruling in verdict.rulings)
    if not failed:
        return f"gate passed: {plural(len(verdict.rulings), 'rule')}"
    return f"gate failed: {failed} of {plural(len(verdict.rulings), 'rule')}"


def rule_label(ruling: Ruling) -> str:
    """Return the name of the rule, and of the part it applies to."""
    return ruling.rule + (f" [{ruling.scope[0]} {ruling.scope[1]}]" if ruling.scope else "")


def checks_once(scenario: AffectedScenario, printed: set[str]) -> list[str]:
    """Return the checks of a scenario, one line each; nothing if the scenario has been printed before."""
    if scenario.label in printed:
        return []
    printed.add(scenario.label)
    some = [check.partition("\n")[0] for check in scenario.checks[:MAX_CHECKS]]
    more = len(scenario.checks) - MAX_CHECKS
    return [*some, *([f"… and {plural(more, 'more check')}"] if more > 0 else [])]


def _affected(ruling: Ruling, printed: set[str]) -> Iterator[str]:
    yield from limited(list(ruling.details))
    for scenario in ruling.scenarios[:MAX_SCENARIOS]:
        yield f"{scenario.label}: {change_text(ruling, scenario)}"
        yield from (f"  {clip(check, _MESSAGE_LENGTH)}" for check in checks_once(scenario, printed))
    if len(ruling.scenarios) > MAX_SCENARIOS:
        yield f"… and {plural(len(ruling.scenarios) - MAX_SCENARIOS, 'more scenario')}"


def limited(details: list[str]) -> Iterator[str]:
    """Yield the first lines, and the number of the others."""
    yield from details[:MAX_SCENARIOS]
    if len(details) > MAX_SCENARIOS:
        yield f"… and {len(details) - MAX_SCENARIOS} more"
