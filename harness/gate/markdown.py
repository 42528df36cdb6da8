"""The verdict of a gate as GitHub-flavoured Markdown, for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.errors import Problem
from harness.gate.figures import bound_text, change_text, figure_text
from harness.gate.judge import Verdict
from harness.gate.ruling import Ruling
from harness.gate.text import checks_once, headline, limited, rule_label
from harness.report.formatting import plural
from harness.report.markdown_text import bounded, code, escape
from harness.source.display import clip

_MAX_SCENARIOS = 25
_MESSAGE_LENGTH = 300


def markdown(verdict: Verdict) -> str:
    """Return the verdict: a table of the rules, then the affected scenarios of those that fail."""
    title, printed = headline(verdict), set[str]()
    rows = [_row(ruling) for ruling in verdict.rulings]
    head = "| | rule | found | bound |\n|---|---|--:|---|"
    against = f" against {code(verdict.baseline)}" if verdict.baseline else ""
    parts = [
        f"## {title[0].upper()}{title[1:]}",
        f"{code(verdict.run)}{against}",
        "\n".join([head, *rows]),
        *("\n".join(_failed(ruling, printed)) for ruling in verdict.rulings if not ruling.passed),
        *(["\n".join(f"- {escape(note)}" for note in verdict.notes)] if verdict.notes else []),
    ]
    return bounded("\n\n".join(parts) + "\n")


def refused_markdown(problems: Sequence[Problem]) -> str:
    """Return the text if nothing could be judged."""
    return bounded("## Gate: not judged\n\n" + "".join(f"- {escape(each.one_line)}\n" for each in problems))


def _row(ruling: Ruling) -> str:
    cells = [
        code(rule_label(ruling)),
        escape(figure_text(ruling) + (f" ({ruling.note})" if ruling.note else "")),
        escape(bound_text(ruling)),
    ]
    return f"| {'passed' if ruling.passed else '**failed**'} | {' | '.join(cells)} |"


def _failed(ruling: Ruling, printed: set[str]) -> Iterator[str]:
    yield f"### {code(rule_label(ruling))}\n"
    yield from (f"- {escape(line)}" for line in limited(list(ruling.details)))
    for scenario in ruling.scenarios[:_MAX_SCENARIOS]:
        yield f"- {code(scenario.label)}: {escape(change_text(ruling, scenario))}"
        yield from (f"  - {escape(clip(check, _MESSAGE_LENGTH))}" for check in checks_once(scenario, printed))
    if len(ruling.scenarios) > _MAX_SCENARIOS:
        yield f"- … and {plural(len(ruling.scenarios) - _MAX_SCENARIOS, 'more scenario')}"
