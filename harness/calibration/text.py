"""The figures of a judge as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.calibration.asking import GradedRow
from harness.calibration.measure import Figures
from harness.report.formatting import plural
from harness.scenario.score import wilson
from harness.source.display import clip, printable
from harness.source.document import shown_path

_MAX_ROWS: Final = 10
_REASON: Final = 200


def lines(figures: Figures) -> Iterator[str]:
    """Yield the lines to print."""
    yield from _figures(figures)
    yield from _rows(figures)
    yield from _advice(figures)


def _figures(figures: Figures) -> Iterator[str]:
    question, ratings, count = figures.labels.question, figures.ratings, figures.ratings.items
    of = question.metric or f"rubric '{printable(clip(question.rubric or '', 60))}'"
    judge = f"{of}, model {printable(question.model)}, threshold {question.threshold:g}"
    yield f"{shown_path(figures.labels.file)}: {plural(count, 'row')} judged by {judge}"
    yield ""
    if figures.agreement is not None:
        same = ratings.both_pass + ratings.both_fail
        low, high = wilson(same, count)
        yield f"agreement  {figures.agreement:.3f}  ({same} of {count}; 95 % interval {low:.3f} to {high:.3f})"
    if figures.kappa is None or figures.interval is None:
        yield f"kappa      not reported: {figures.silent}"
    else:
        low, high = figures.interval
        yield f"kappa      {figures.kappa:.3f}  (95 % interval {low:.3f} to {high:.3f})"
    if figures.labels.graded and figures.error is not None:
        found = (
            "none: one of the two never varies"
            if figures.correlation is None
            else f"{figures.correlation:.3f}"
        )
        yield f"grades     correlation {found}, mean absolute error {figures.error:.3f}"
    width = max(5, *(len(str(cell)) for cell in ratings))
    yield ""
    yield f"              judge pass  {'judge fail':>10}"
    yield f"people pass   {ratings.both_pass:>10}  {ratings.first_passes:>{max(10, width)}}"
    yield f"people fail   {ratings.second_passes:>10}  {ratings.both_fail:>{max(10, width)}}"
    yield ""
    yield f"of what the judge fails, people fail {_share(figures.precision)}  (precision of fail)"
    yield f"of what people fail, the judge fails {_share(figures.recall)}  (recall of fail)"


def _share(value: float | None) -> str:
    return "– (no such row)" if value is None else f"{value:.3f}"


def _rows(figures: Figures) -> Iterator[str]:
    apart = figures.disagreements
    if apart:
        yield f"\n{plural(len(apart), 'row')} rated differently, the furthest apart first:"
        yield from (_line(each, figures.labels.graded) for each in apart[:_MAX_ROWS])
        if len(apart) > _MAX_ROWS:
            yield f"  … {len(apart) - _MAX_ROWS} more (--json has all)"
    if figures.missing:
        yield f"\n{plural(len(figures.missing), 'row')} not judged:"
        for each in figures.missing[:_MAX_ROWS]:
            yield f"  {each.row.span}  {printable(clip(each.reason, _REASON))}"
        if len(figures.missing) > _MAX_ROWS:
            yield f"  … {len(figures.missing) - _MAX_ROWS} more (--json has all)"


def _line(each: GradedRow, graded: bool) -> str:
    name = f"  {printable(clip(each.row.name, 40))}" if each.row.name else ""
    label = f"{each.row.label:g}" if graded else "pass" if each.row.label else "fail"
    return (
        f"  {each.row.span.file}:{each.row.span.line}{name}  people {label}, judge {each.grade or 0:g}: "
        f"{printable(clip(each.reason, _REASON))}"
    )


def _advice(figures: Figures) -> Iterator[str]:
    ratings, threshold = figures.ratings, figures.labels.question.threshold
    if figures.unreadable:
        yield f"\n{plural(figures.unreadable, 'answer')} without a grade, which counts as 0: look at the prompt"
    if figures.interval is not None and figures.interval[0] <= 0:
        yield "\nthese rows do not show more agreement than chance would give: label more, or improve the judge"
    if ratings.second_passes > ratings.first_passes:
        yield "\nthe judge is milder than people: say in its prompt what fails, or raise the threshold"
    elif ratings.first_passes > ratings.second_passes:
        yield "\nthe judge is stricter than people: say in its prompt what still passes, or lower the threshold"
    if figures.best is not None:
        best, share = figures.best
        yield f"\na threshold of {best:g} in place of {threshold:g} would agree in {share:.3f} of these rows."
        yield "  It was chosen from them: check it on other rows"
