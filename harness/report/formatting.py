"""Format numbers for reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final

from harness.source.display import printable

_MAX_NAMES: Final = 5
_ANSWERS: Final = {
    "scripted": "scripted",
    "replayed": "replayed from recordings",
    "asked": "asked anew",
    "unrecorded": "not recorded",
}


def percent(share: float | None) -> str:
    """Return a share between 0 and 1 as a percentage. Only 1 becomes 100 %, and only 0 becomes 0 %.

    >>> percent(0.9999), percent(1.0), percent(None)
    ('99.9 %', '100 %', '–')
    """
    if share is None:
        return "–"
    if share in (0.0, 1.0):
        return f"{share:.0%}".replace("%", " %")
    return f"{min(max(share * 100, 0.1), 99.9):.1f} %"


def seconds(value: float | None) -> str:
    """Return a duration in seconds with a suitable unit.

    >>> seconds(0.0123), seconds(2.5), seconds(3725.0), seconds(0.0)
    ('12 ms', '2.50 s', '1 h 2 min', '0 s')
    """
    if value is None:
        return "–"
    if value == 0:
        return "0 s"
    if value < 0.9995:
        return f"{value * 1000:.0f} ms" if value >= 0.0095 else f"{value * 1000:.1f} ms"
    if value < 99.995:
        return f"{value:.2f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def cost(value: float) -> str:
    """Return an amount in US dollars, with as many digits as needed.

    >>> cost(0), cost(0.00042), cost(12.5)
    ('0', '0.00042', '12.50')
    """
    if value == 0:
        return "0"
    return f"{value:.2f}" if value >= 1 else f"{value:.2g}"


def score(value: float | None) -> str:
    """Return a score or a fitness with three digits."""
    return "–" if value is None else f"{value:.3f}"


def with_interval(estimate: float, low: float | None, high: float | None) -> str:
    """Return a signed difference with its interval. Missing or infinite bounds leave the interval out.

    >>> with_interval(0.1, -0.05, 0.25), with_interval(0.1, None, None)
    ('+0.100 (-0.050 to +0.250)', '+0.100')
    """
    has_interval = low is not None and high is not None and isfinite(low) and isfinite(high)
    return f"{estimate:+.3f}" + (f" ({low:+.3f} to {high:+.3f})" if has_interval else "")


def p_value(value: float) -> str:
    """Return a p-value; very small ones as an upper bound.

    >>> p_value(0.023), p_value(0.00001)
    ('0.023', '< 0.001')
    """
    return f"{value:.3f}" if value >= 0.0005 else "< 0.001"


def cost_of(total: Mapping[str, Any]) -> str:
    """Return the cost of a group, and the models that have no price and count as 0 in it.

    >>> cost_of({"cost": 0.5, "models": {"gpt-4o": {"cost": 0.5}, "ours": {"cost": None}}})
    '0.5 (no price of ours)'
    """
    return cost(total["cost"]) + (f" ({text})" if (text := unpriced(total)) else "")


def unpriced(total: Mapping[str, Any]) -> str:
    """Return the models of a group that have no price, and count as 0 in its cost; "" if all have one."""
    names = [printable(name) for name, model in total.get("models", {}).items() if model["cost"] is None]
    return f"no price of {some_of(names, _MAX_NAMES)}" if names else ""


def distinct(total: Mapping[str, Any]) -> str:
    """Return the number of runs that count if repeats that cannot differ count once; "" if all count."""
    if total["distinct_runs"] == total["runs"]:
        return ""
    runs = plural(total["runs"], "run")
    return f"{total['distinct_runs']} of {runs}; repeats with the same answers and nothing random count once"


def some_of(names: Sequence[str], most: int) -> str:
    """Return the first `most` names, and the number of the others.

    >>> some_of(["a", "b", "c", "d"], 2)
    'a, b and 2 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "run"), plural(2, "run")
    ('1 run', '2 runs')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def answers(counted: Mapping[str, int]) -> str:
    """Return how the runs of a variant were answered: by stubs, from recordings, by real calls, or not at all.

    >>> answers({"scripted": 2, "asked": 1})
    '2 runs scripted, 1 run asked anew'
    """
    found = [f"{plural(count, 'run')} {_ANSWERS.get(kind, kind)}" for kind, count in counted.items() if count]
    return ", ".join(found) or "no runs"
