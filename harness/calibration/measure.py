"""The figures of a judge compared with labels of people, and their JSON (`harness-judge-check/1`)."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import comb
from typing import Any, Final, NamedTuple

from harness.calibration.asking import GradedRow
from harness.calibration.document import LabelFile
from harness.judges.request import is_unreadable
from harness.source.display import clip
from harness.source.document import shown_path
from harness.statistics.paired_difference import ALPHA

FORMAT: Final = "harness-judge-check/1"
MIN_ROWS: Final = 10
"""With fewer rows kappa is not reported: its interval would be nearly as wide as its range."""
MAX_REASON_LENGTH: Final = 500
_PRECISION: Final = 9
_STEPS: Final = 3
"""Decimals of a suggested threshold."""


@dataclass(frozen=True)
class Figures:
    """The agreement of judge and people, over the rows that the judge graded. The people are the first rater.

    missing        the rows without a grade
    kappa          None if it is not meaningful, for the reason in `silent`
    interval       the 95 % interval of kappa
    precision      the share of the rows failed by the judge that people fail, too; None if it fails none
    recall         the share of the rows failed by people that the judge fails, too; None if they fail none
    correlation    of grades with graded labels (Pearson's); None if one of them is constant
    error          the mean absolute difference of grades and graded labels
    best           the threshold with the best agreement, and that agreement; None if it is not significantly better
                   than the current one
    """

    labels: LabelFile
    graded: tuple[GradedRow, ...]
    missing: tuple[GradedRow, ...]
    ratings: Ratings
    kappa: float | None
    interval: tuple[float, float] | None
    silent: str
    precision: float | None
    recall: float | None
    correlation: float | None
    error: float | None
    best: tuple[float, float] | None

    @property
    def agreement(self) -> float | None:
        """The share of rows that both rate alike; None if the judge graded none."""
        return agreement(self.ratings) if self.graded else None

    @property
    def disagreements(self) -> list[GradedRow]:
        """The rows that judge and people rate differently, the largest difference first."""
        threshold = self.labels.question.threshold
        apart = [
            each
            for each in self.graded
            if _passes(each.row.label, threshold) != _passes(each.grade, threshold)
        ]
        return sorted(apart, key=lambda each: -abs((each.grade or 0.0) - each.row.label))

    @property
    def unreadable(self) -> int:
        """Number of answers without a readable grade, which count as 0."""
        return sum(is_unreadable(each.reason) for each in self.graded)

    def as_json(self) -> dict[str, Any]:
        """Return all figures as documented in docs/judges.md."""
        question, ratings = self.labels.question, self.ratings
        interval = self.interval or (None, None)
        return {
            "format": FORMAT,
            "file": shown_path(self.labels.file),
            "judge": {
                "metric": question.metric,
                "rubric": question.rubric,
                "model": question.model,
                "threshold": question.threshold,
            },
            "rows": len(self.graded) + len(self.missing),
            "judged": len(self.graded),
            "unreadable": self.unreadable,
            "agreement": _rounded(self.agreement),
            "kappa": {
                "value": _rounded(self.kappa),
                "low": _rounded(interval[0]),
                "high": _rounded(interval[1]),
                "silent": self.silent,
            },
            "confusion": {
                "people_pass": {"judge_pass": ratings.both_pass, "judge_fail": ratings.first_passes},
                "people_fail": {"judge_pass": ratings.second_passes, "judge_fail": ratings.both_fail},
            },
            "fail": {"precision": _rounded(self.precision), "recall": _rounded(self.recall)},
            "graded": (
                {"correlation": _rounded(self.correlation), "mean_absolute_error": _rounded(self.error)}
                if self.labels.graded
                else None
            ),
            "best_threshold": (
                {"threshold": self.best[0], "agreement": _rounded(self.best[1])} if self.best else None
            ),
            "disagreements": [_row_json(each) for each in self.disagreements],
            "not_judged": [_row_json(each) for each in self.missing],
        }


def measure(labels: LabelFile, graded: Sequence[GradedRow]) -> Figures:
    """Compute the figures of these rows."""
    judged = tuple(each for each in graded if each.grade is not None)
    threshold = labels.question.threshold
    pairs = [(each.row.label, float(each.grade or 0.0)) for each in judged]
    ratings = _ratings(pairs, threshold, threshold)
    silent = _why_no_kappa(ratings)
    judge_fails = ratings.first_passes + ratings.both_fail
    people_fail = ratings.second_passes + ratings.both_fail
    apart = [abs(label - grade) for label, grade in pairs] if labels.graded else []
    return Figures(
        labels=labels,
        graded=judged,
        missing=tuple(each for each in graded if each.grade is None),
        ratings=ratings,
        kappa=None if silent else kappa(ratings),
        interval=None if silent else kappa_interval(ratings),
        silent=silent,
        precision=ratings.both_fail / judge_fails if judge_fails else None,
        recall=ratings.both_fail / people_fail if people_fail else None,
        correlation=_correlation(pairs) if labels.graded else None,
        error=statistics.fmean(apart) if apart else None,
        best=best_threshold(pairs, threshold),
    )


def _passes(grade: float | None, threshold: float) -> bool:
    return grade is not None and grade >= threshold


def _ratings(pairs: Sequence[tuple[float, float]], of_people: float, of_judge: float) -> Ratings:
    verdicts = [(_passes(label, of_people), _passes(grade, of_judge)) for label, grade in pairs]
    return Ratings(
        *(verdicts.count(pair) for pair in ((True, True), (True, False), (False, True), (False, False)))
    )


def _why_no_kappa(ratings: Ratings) -> str:
    """Return the reason why kappa is not meaningful for these rows; "" if it is."""
    people_pass = ratings.both_pass + ratings.first_passes
    if not ratings.items:
        return "no row was judged"
    if people_pass in (0, ratings.items):
        return f"people say '{'pass' if people_pass else 'fail'}' of every row: label some of the other kind"
    if ratings.items < MIN_ROWS:
        return f"{ratings.items} rows are too few: label at least {MIN_ROWS}, preferably 50"
    return ""


def _correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    labels, grades = [label for label, _ in pairs], [grade for _, grade in pairs]
    if len(set(labels)) < 2 or len(set(grades)) < 2:
        return None
    return statistics.correlation(labels, grades)


def best_threshold(pairs: Sequence[tuple[float, float]], threshold: float) -> tuple[float, float] | None:
    """Return the threshold with the best agreement, and that agreement; None if it is not significantly better.

    The best of many thresholds agrees better by chance alone. So the rows that it rates otherwise are tested (exact
    sign test, one-sided), and the p-value is multiplied by the number of thresholds (Bonferroni).
    """
    verdicts = Counter((_passes(label, threshold), round(grade, _STEPS)) for label, grade in pairs)
    grades = sorted({grade for _, grade in verdicts})

    def alike(tried: float) -> int:
        return sum(count for (passes, grade), count in verdicts.items() if passes == _passes(grade, tried))

    middles = (round((low + high) / 2, _STEPS) for low, high in pairwise(grades))
    between = [middle for middle in middles if middle]
    best = max((threshold, *between), key=lambda tried: (alike(tried), -abs(tried - threshold)))
    right = [
        (_passes(grade, best) == _passes(label, threshold))
        for label, grade in pairs
        if _passes(grade, best) != _passes(grade, threshold)
    ]
    by_chance = sum(comb(len(right), more) for more in range(sum(right), len(right) + 1)) / 2 ** len(right)
    if not right or by_chance * len(between) > ALPHA:
        return None
    return best, agreement(_ratings(pairs, threshold, best))


def _row_json(each: GradedRow) -> dict[str, Any]:
    return {
        "row": each.row.number,
        "name": each.row.name or None,
        "file": each.row.span.file,
        "line": each.row.span.line,
        "label": each.row.label,
        "grade": each.grade,
        "reason": clip(each.reason, MAX_REASON_LENGTH),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _PRECISION)


DRAWS: Final = 20_000
_KAPPA_SEED: Final = 1960
_PRIOR: Final = 0.5


class Ratings(NamedTuple):
    """Numbers of items by the verdicts of two raters; `first_passes` counts those that only the first passes."""

    both_pass: int
    first_passes: int
    second_passes: int
    both_fail: int

    @property
    def items(self) -> int:
        """The total number of items."""
        return sum(self)


def agreement(ratings: Ratings) -> float:
    """Return the share of items with equal ratings; there must be at least one item.

    >>> agreement(Ratings(3, 1, 0, 1))
    0.8
    """
    return (ratings.both_pass + ratings.both_fail) / ratings.items


def kappa(ratings: Ratings) -> float | None:
    """Return Cohen's kappa, -1 to 1; None if both rate all items the same, since chance would agree as well.

    >>> kappa(Ratings(20, 5, 10, 15))
    0.4
    """
    n = ratings.items
    first, second = ratings.both_pass + ratings.first_passes, ratings.both_pass + ratings.second_passes
    # In integers, so that perfect agreement gives exactly 1.
    by_chance = first * second + (n - first) * (n - second)
    if by_chance == n * n:
        return None
    return ((ratings.both_pass + ratings.both_fail) * n - by_chance) / (n * n - by_chance)


@lru_cache(maxsize=64)
def kappa_interval(ratings: Ratings) -> tuple[float, float]:
    """Return the 95 % interval of kappa. Swapping the raters, or pass and fail, does not change it."""
    import numpy as np

    a, b, c, d = ratings
    (a, d), (b, c) = sorted((a, d)), sorted((b, c))
    random = np.random.default_rng(_KAPPA_SEED)
    both, only_first, only_second, neither = random.dirichlet(np.add((a, b, c, d), _PRIOR), DRAWS).T
    first, second = both + only_first, both + only_second
    by_chance = first * second + (1 - first) * (1 - second)
    drawn = (both + neither - by_chance) / (1 - by_chance)
    low, high = (float(bound) for bound in np.quantile(drawn, (0.025, 0.975)))
    estimate = kappa(ratings)
    if estimate is None:
        return low, high
    return min(low, estimate), max(high, estimate)
