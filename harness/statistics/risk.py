"""Risk: scores that spread more than those of another variant, although their means do not differ.

The test is that of the sign-flip test, of the squared distances of scores from their means: if the variants are
equal, each scenario's difference of them is equally likely to have the other sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

from harness.statistics.paired_difference import sign_flip_p
from harness.statistics.relative_change import PairedValues, means


class Risk(NamedTuple):
    """The standard deviations of the scores of scenarios before and after, and the p-value of their difference."""

    before: float
    after: float
    p: float


def greater_risk(scenarios: Sequence[PairedValues], level: float) -> Risk | None:
    """Return the risk if scores spread more after than before, significantly at `level`; None otherwise."""
    scores = means(scenarios)
    before, after = (scores - scores.mean(axis=1, keepdims=True)) ** 2
    p = sign_flip_p(after - before)
    if p > level or after.sum() <= before.sum():
        return None
    return Risk(sqrt(before.mean()), sqrt(after.mean()), p)
