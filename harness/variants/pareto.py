"""The Pareto front of variants: those that no other is at least as good as in everything, and better in something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from harness.report.scenario_runs import Pair
from harness.statistics.ratio_interval import PairedValues, relative_change
from harness.variants.compared_runs import counting_repeats

_DIGITS: Final = 12
"""Decimals of compared figures: sums of floats in another order differ in the digits after them."""


def pareto_front(aims: Mapping[str, Sequence[float]]) -> list[str]:
    """Return the names whose aims, figures to minimize, are on the front."""
    rounded = {name: tuple(round(figure, _DIGITS) for figure in aim) for name, aim in aims.items()}
    return [
        name
        for name, aim in rounded.items()
        if not any(
            other != aim and all(theirs <= ours for theirs, ours in zip(other, aim, strict=True))
            for other in rounded.values()
        )
    ]


def latency_is_noise(pairs: Sequence[Pair]) -> bool:
    """True if latencies vary from run to run, and their difference is not significant."""
    found = []
    for pair in pairs:
        values = [
            (before.latency, after.latency)
            for before, after in counting_repeats(pair).values()
            if before.latency is not None and after.latency is not None
        ]
        found += [(pair.before.varies or pair.after.varies, PairedValues(values))] if values else []
    if not any(varies for varies, _ in found):
        return False
    change = relative_change([values for _, values in found])
    return change.low <= 0 <= change.high
