"""The results of mutants as text: the survivors with what would notice them, and the figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.mutation.result import Mutation, Result, counts_of, score_of
from harness.report.formatting import plural
from harness.source.display import clip

_MOST_SHOWN: Final = 20
_MOST_LINES: Final = 12
_LONGEST: Final = 200


def shown_score(score: float | None) -> str:
    """Return a score as text."""
    return "–" if score is None else f"{score:.2f}"


def lines(mutation: Mutation) -> Iterator[str]:
    """Yield the results of mutants, those that nobody noticed in full."""
    left = [each for each in mutation.results if each.outcome == "survived"]
    for result in left[:_MOST_SHOWN]:
        yield from _survivor(result)
    if len(left) > _MOST_SHOWN:
        yield f"… {len(left) - _MOST_SHOWN} more survived: see mutation.json"
        yield ""
    unrun = [each for each in mutation.results if each.outcome == "no_coverage"]
    for text in dict.fromkeys(each.suggestion for each in unrun):
        same = [each.id for each in unrun if each.suggestion == text]
        yield f"no coverage  {plural(len(same), 'mutant')}, such as {same[0]}: {text}"
    yield from [""] if unrun else []
    for id_, why in mutation.unusable.items():
        yield f"does not pass without a mutant, and judges none: {id_}: {why}"
    yield from _figures(mutation)


def _survivor(result: Result) -> Iterator[str]:
    yield f"survived  {result.where}  {result.id}"
    shown = [line for line in result.diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    yield from (f"  {clip(line, _LONGEST)}" for line in shown[:_MOST_LINES])
    if result.scenarios:
        names = ", ".join(result.scenarios[:3])
        yield f"  ran in {names}" + (
            f" and {len(result.scenarios) - 3} more" if len(result.scenarios) > 3 else ""
        )
    if result.difference is not None:
        yield f"  first event that differs: {result.difference['what']}"
        for part in result.difference["parts"][:2]:
            told = [line for line in part["diff"] if line[1:].strip()]
            yield from (f"    {clip(line, _LONGEST)}" for line in told[:4])
    if result.suggested_for is not None:
        yield f"  noticed by this expectation of {result.suggested_for}:"
        yield from (f"    {line}" for line in (result.suggestion or "").splitlines())
    elif result.suggestion:
        yield f"  {result.suggestion}"
    yield ""


def _figures(mutation: Mutation) -> Iterator[str]:
    results, counts = mutation.results, counts_of(mutation.results)
    by_error = {"of these by an error": sum(each.by_error for each in results)}
    told = {"killed": counts.pop("killed")} | by_error | counts
    if len({each.operator for each in results}) > 1:
        for operator in dict.fromkeys(each.operator for each in results):
            of = [each for each in results if each.operator == operator]
            yield f"{operator:<8} {shown_score(score_of(of)):>5}  {plural(len(of), 'mutant')}"
    figures = " · ".join(f"{n} {name.replace('_', ' ')}" for name, n in told.items() if n)
    yield ": ".join(filter(None, (plural(len(results), "mutant"), figures)))
    if mutation.left_out:
        yield f"left out: {plural(mutation.left_out, 'mutant')}"
    yield f"score  {shown_score(score_of(results))}"
