"""The verdict of a gate for a terminal and as Markdown: the rules, and the affected scenarios of those that fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.errors import Problem
from harness.gate.judge import Verdict
from harness.gate.policy import RULES
from harness.gate.ruling import AffectedScenario, Ruling
from harness.report.formatting import plural
from harness.report.markdown import bounded, code, escape
from harness.source.display import clip, printable


def figure_text(ruling: Ruling) -> str:
    """Return the figure of a rule, with its unit."""
    return RULES[ruling.rule].figure_text(ruling)


def bound_text(ruling: Ruling) -> str:
    """Return the bound of a rule."""
    return RULES[ruling.rule].bound_text(ruling)


def change_text(ruling: Ruling, affected: AffectedScenario) -> str:
    """Return the figure of a scenario before and now, or only now if the former is not known."""
    before, after = (
        RULES[ruling.rule].scenario_text(ruling, value) for value in (affected.before, affected.after)
    )
    return after if affected.before is None else f"{before} → {after}"


MAX_SCENARIOS = 10
MAX_CHECKS = 3
_MESSAGE_LENGTH = 200


def lines(verdict: Verdict) -> Iterator[str]:
    """Yield the lines of the verdict."""
    against = f" against {verdict.baseline}" if verdict.baseline else ""
    yield printable(f"gate: {verdict.run}{against}, rules of {verdict.policy or 'the harness (no policy)'}")
    rows = [(ruling.label, figure_text(ruling), bound_text(ruling)) for ruling in verdict.rulings]
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
    yield from (printable(f"warning: {warning.message}") for warning in verdict.warnings)
    yield headline(verdict)


def headline(verdict: Verdict) -> str:
    """Return the verdict as one line."""
    failed = sum(not ruling.passed for ruling in verdict.rulings)
    if not failed:
        return f"gate passed: {plural(len(verdict.rulings), 'rule')}"
    return f"gate failed: {failed} of {plural(len(verdict.rulings), 'rule')}"


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


_MAX_SCENARIOS = 25
_MAX_MESSAGE = 300


def markdown(verdict: Verdict) -> str:
    """Return the verdict: a table of the rules, then the affected scenarios of those that fail."""
    title, printed = headline(verdict), set[str]()
    rows = [_row(ruling) for ruling in verdict.rulings]
    head = "| | rule | found | bound |\n|---|---|--:|---|"
    against = f" against {code(verdict.baseline)}" if verdict.baseline else ""
    remarks = [f"**warning**: {escape(warning.message)}" for warning in verdict.warnings]
    remarks += [escape(note) for note in verdict.notes]
    parts = [
        f"## {title[0].upper()}{title[1:]}",
        f"{code(verdict.run)}{against}",
        "\n".join([head, *rows]),
        *("\n".join(_failed(ruling, printed)) for ruling in verdict.rulings if not ruling.passed),
        *(["\n".join(f"- {remark}" for remark in remarks)] if remarks else []),
    ]
    return bounded("\n\n".join(parts) + "\n")


def refused_markdown(problems: Sequence[Problem]) -> str:
    """Return the text if nothing could be judged."""
    return bounded("## Gate: not judged\n\n" + "".join(f"- {escape(each.one_line)}\n" for each in problems))


def _row(ruling: Ruling) -> str:
    cells = [
        code(ruling.label),
        escape(figure_text(ruling) + (f" ({ruling.note})" if ruling.note else "")),
        escape(bound_text(ruling)),
    ]
    return f"| {'passed' if ruling.passed else '**failed**'} | {' | '.join(cells)} |"


def _failed(ruling: Ruling, printed: set[str]) -> Iterator[str]:
    yield f"### {code(ruling.label)}\n"
    yield from (f"- {escape(line)}" for line in limited(list(ruling.details)))
    for scenario in ruling.scenarios[:_MAX_SCENARIOS]:
        yield f"- {code(scenario.label)}: {escape(change_text(ruling, scenario))}"
        yield from (f"  - {escape(clip(check, _MAX_MESSAGE))}" for check in checks_once(scenario, printed))
    if len(ruling.scenarios) > _MAX_SCENARIOS:
        yield f"- … and {plural(len(ruling.scenarios) - _MAX_SCENARIOS, 'more scenario')}"
