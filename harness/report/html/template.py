"""Parts of a page: templates with automatic escaping, assets, and the content security policy."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.report.figures import BRIEF, FIGURES
from harness.report.formatting import cut, dollars, plural, score, seconds
from harness.report.html.overview import shown

if TYPE_CHECKING:
    from jinja2 import Template


_ASSETS: Final = Path(__file__).parent / "assets"
_FILTERS: Final = {"dollars": dollars, "folded": cut, "score": score, "seconds": seconds, "shown": shown}


def policy(style: str, script: str = "") -> str:
    """Return the content security policy of a page: it allows only this style and this script, by their hashes."""
    allowed = f"script-src '{_hash(script)}'; connect-src 'self'; " if script else ""
    return (
        f"default-src 'none'; {allowed}style-src '{_hash(style)}'; base-uri 'none'; form-action 'none';"
        " require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def asset(name: str) -> str:
    """Return the text of an asset: a script or a style sheet."""
    return (_ASSETS / name).read_text(encoding="utf-8")


@cache
def template(name: str) -> Template:
    """Return a template."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= _FILTERS
    environment.globals |= {"plural": plural, "figures": FIGURES, "brief": BRIEF}
    return environment.get_template(name)


def safe(text: str) -> Any:
    """Mark a text of this package as safe, so that templates do not escape it."""
    from markupsafe import Markup

    return Markup(text)


def inert(json_text: str) -> Any:
    r"""Escape JSON for a script element: `<` becomes `\u003c`, and JavaScript's line separators are escaped too."""
    escaped = json_text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return safe(escaped)


LINE: Final = 14
"""Height of a label, in pixels."""
_LETTER: Final = 6.6
"""Approximate width of a letter of a label, in pixels."""


@dataclass(frozen=True)
class Scale:
    """Maps values from `low` to `high` onto `start` to `end`. If all values are equal, they are in the middle."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def of(cls, values: Sequence[float], start: float, end: float) -> Scale:
        """Return the scale from the lowest to the highest of these values."""
        return cls(min(values), max(values), start, end)

    def __call__(self, value: float) -> float:
        """Return the coordinate of a value."""
        if self.high == self.low:
            return (self.start + self.end) / 2
        return round(self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low), 1)

    @property
    def ends(self) -> list[float]:
        """The lowest and the highest value, once if they are equal."""
        return [*dict.fromkeys((self.low, self.high))]


@dataclass(frozen=True)
class Label:
    """The position of a label. `left` means that its text ends at the position, instead of starting there."""

    x: float
    y: float
    left: bool


def labels(points: Sequence[tuple[float, float, str]], width: float, height: float) -> list[Label]:
    """Return a position for the text of each point: beside it, without overlaps, towards the middle of the plot."""
    placed: list[tuple[float, float, float]] = []
    found: dict[int, Label] = {}
    for at in sorted(range(len(points)), key=lambda at: abs(points[at][1] - height / 2), reverse=True):
        x, y, text = points[at]
        long, left = _LETTER * len(text), x > width * 0.6
        begin = x - 10 - long if left else x + 10
        line, step = y + 4, 1 if y < height / 2 else -1
        while any(
            abs(line - other) < LINE and begin < end and first < begin + long for first, end, other in placed
        ):
            line += step
        placed.append((begin, begin + long, line))
        found[at] = Label(x - 10 if left else x + 10, line, left)
    return [found[at] for at in range(len(points))]
