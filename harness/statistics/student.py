"""Student's t distribution, for degrees of freedom that need not be whole numbers."""

from __future__ import annotations

from functools import lru_cache
from math import exp, inf, lgamma, log
from typing import Final

_TERMS: Final = 300
_SMALLEST: Final = 1e-300


def upper_tail(t: float, degrees: float) -> float:
    """Return the probability of a value above `t`, which is at least 0.

    >>> round(upper_tail(2.262, 9), 4), round(upper_tail(1.0, 1), 4)
    (0.025, 0.25)
    """
    if t == inf:
        return 0.0
    return 0.5 * _incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5)


@lru_cache(maxsize=1_000)
def student_quantile(share: float, degrees: float) -> float:
    """Return the value that a `share` of 0.5 or more of the distribution lies below; infinite beyond 10^9.

    >>> round(student_quantile(0.975, 1), 3), round(student_quantile(0.975, 9.0), 3)
    (12.706, 2.262)
    """
    low, high = 0.0, 1.0
    while upper_tail(high, degrees) > 1 - share:
        low, high = high, 2 * high
        if high > 1e9:
            return inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if upper_tail(middle, degrees) > 1 - share else (low, middle)
    return high


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function by its continued fraction (DLMF 8.17.22, Lentz's method)."""
    if x <= 0.0 or x >= 1.0:
        return min(1.0, max(0.0, x))
    if x > (a + 1) / (a + b + 2):  # where the fraction of the complement converges faster
        return 1 - _incomplete_beta(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x)) / a
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / _not_zero(1 + term * d), _not_zero(1 + term / c)
            fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * fraction


def _not_zero(value: float) -> float:
    return value if abs(value) > _SMALLEST else _SMALLEST
