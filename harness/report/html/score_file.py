"""The types of score.json, which `harness score` writes: format "harness-score/1" (docs/variants.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, NotRequired, TypedDict

import msgspec
from msgspec import Meta

from harness.errors import FormatError, Problem, Span
from harness.report.decoding_problem import decoding_problem
from harness.report.line import Amount, Count, Share
from harness.source.document import shown_path

SCORE: Final = "score.json"

Signed = Annotated[float, Meta(ge=-1e15, le=1e15)]


class Latency(TypedDict):
    """Latency in virtual seconds."""

    p50: Amount | None
    p95: Amount | None


class Difference(TypedDict):
    """The difference in fitness to the baseline."""

    fitness: Signed
    low: Signed | None
    high: Signed | None
    p: float
    verdict: Literal["better", "worse", "no evidence"] | None
    scenarios: NotRequired[Count]
    needed: NotRequired[Count | None]


class Variant(TypedDict):
    """The results of a variant. `stopped` says why it did not run through all scenarios."""

    name: str
    runs: Count
    pass_rate: Share | None
    fitness: Share | None
    latency: Latency
    tokens: Count
    cost: Amount | None
    difference: Difference | None
    answers: NotRequired[dict[str, Count]]
    note: NotRequired[str | None]
    stopped: NotRequired[str | None]


class ScenarioChange(TypedDict):
    """A scenario with another score or verdict than with the baseline, and the checks that caused it."""

    id: str
    variant: str
    before: Share
    after: Share
    verdicts: NotRequired[tuple[str, str]]
    checks: NotRequired[list[str]]


class Score(TypedDict):
    """The score of variants, the baseline first."""

    format: Literal["harness-score/1"]
    baseline: str
    variants: Annotated[list[Variant], Meta(min_length=1)]
    changed: list[ScenarioChange]
    pareto: list[str]


def read_score(folder: Path) -> Score | None:
    """Read the score in a results folder; None if there is none.

    Raises:
        FormatError: it cannot be read (`score-damaged`).
    """
    file = folder / SCORE
    if not file.is_file():
        return None
    try:
        raw = file.read_bytes()
    except OSError as error:
        message = f"cannot read the score {shown_path(file)}: {error.strerror or error}"
        raise FormatError(Problem("score-damaged", message)) from None
    try:
        return msgspec.json.decode(raw, type=Score)
    except (ValueError, RecursionError) as error:
        found = decoding_problem(raw, error, "harness-score/1")
        text = f"not {found.expected or 'a score'}: {found.text}"
        place = Span(shown_path(file), found.line, found.column)
        hint = found.hint or "run `harness score` again"
        raise FormatError(Problem("score-damaged", text, place, hint)) from None
