"""Format numbers, names and paths for reports, and wrap their lines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any, Final, NamedTuple

from harness.source.display import clip, cut_around, printable

_LONGEST: Final = 20
"""The most steps of a cycle that is found."""
_FEWEST: Final = 3
"""The number of times that steps must repeat to count as a cycle."""


class Segment(NamedTuple):
    """Steps `start` to `end` (exclusive) of a sequence. They repeat every `period` steps; 0 for no repetition."""

    start: int
    end: int
    period: int

    @property
    def rounds(self) -> int:
        """The number of times that the segment returns to its first step."""
        return (self.end - self.start - 1) // self.period if self.period else 0


def split_cycles(steps: Sequence[Any]) -> Iterator[Segment]:
    """Split a sequence into its cycles and the segments between them."""
    plain = at = 0
    while at < len(steps):
        found = _cycle_at(steps, at)
        if found is None:
            at += 1
            continue
        if plain < at:
            yield Segment(plain, at, 0)
        yield found
        plain = at = found.end
    if plain < len(steps):
        yield Segment(plain, len(steps), 0)


def _cycle_at(steps: Sequence[Any], start: int) -> Segment | None:
    """Return the shortest cycle that begins at `start`, or None."""
    for length in range(1, min(_LONGEST, (len(steps) - start) // _FEWEST) + 1):
        if steps[start : start + length] != steps[start + length : start + 2 * length]:
            continue
        end = start + length
        while end < len(steps) and steps[end] == steps[end - length]:
            end += 1
        if end - start >= _FEWEST * length:
            return Segment(start, end, length)
    return None


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

    >>> cost(0), cost(0.00042), cost(0.000035), cost(12.5)
    ('0', '0.00042', '0.000035', '12.50')
    """
    if value == 0:
        return "0"
    return f"{value:.2f}" if value >= 1 else f"{Decimal(f'{value:.2g}'):f}"


def dollars(value: float | None) -> str:
    """Return an amount of US dollars with its sign; None is the cost of a model without a price."""
    return "no price" if value is None else f"${cost(value)}"


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


NAME_LENGTH: Final = 60
_WORD_LENGTH: Final = 200

_LONG_WORD: Final = re.compile(rf"\S{{{_WORD_LENGTH + 1},}}")


def short_name(name: Any) -> str:
    """Return at most 60 characters of the name of a node, a tool or a check, on one line."""
    return printable(clip(str(name), NAME_LENGTH))


def cut(text: str, most: int) -> str:
    """Return the first `most` characters of a text, and the number of the others."""
    return text if len(text) <= most else f"{text[:most]} … {len(text) - most:,} more characters"


def short_words(text: str) -> str:
    """Return the text with each word cut to 200 characters.

    >>> short_words(f"known: a, {'b' * 10_000}")[-5:]
    'bbbb…'
    """
    return _LONG_WORD.sub(lambda found: clip(found[0], _WORD_LENGTH), text)


_MAX_STEPS: Final = 30


def path_text(path: Sequence[Any]) -> str:
    """Return the steps in order. Cycles are shown once with their count; of a long path only the end is shown.

    >>> path_text(["a", "b", "b", "b", "b"])
    'a → b → b × 3'
    >>> path_text(["a", "b", "c", "b", "c", "b", "c", "d"])
    'a → (b → c → b) × 2 → c → d'
    """
    if not path:
        return "(no node ran)"
    steps: list[str] = []
    for found in split_cycles(path):
        part = [_step(step) for step in path[found.start : found.end]]
        if found.period:
            cycle = " → ".join(part[: found.period + 1])
            steps.append(f"{cycle if found.period == 1 else f'({cycle})'} × {found.rounds}")
            part = part[found.rounds * found.period + 1 :]
        steps += part
    if len(steps) > _MAX_STEPS:
        steps = [f"… {plural(len(steps) - _MAX_STEPS, 'step')}", *steps[-_MAX_STEPS:]]
    return " → ".join(steps)


def _step(step: Any) -> str:
    return f"[{', '.join(map(short_name, step))}]" if isinstance(step, list) else short_name(step)


_CARET: Final = re.compile(r"(\s*)(\^~*)")
_COMMANDS: Final = ("  rerun ", "  trace ")
_FURTHER: Final = 2
"""Additional indentation of continuation lines."""
_LAST_PART: Final = re.compile(r"(?<=::)|(?<=[/\s])")


def wrapped(text: str, width: int | None) -> str:
    """Wrap text to lines of at most `width` characters; None returns it unchanged.

    Words are never broken: one that is too long exceeds the width. A source line with a caret below it is cut around
    the caret. Commands to be copied (`rerun`, `trace`) are left as they are.
    """
    return "\n".join(line for _, pieces in wrapped_lines(text, width) for line in pieces)


def wrapped_lines(text: str, width: int | None) -> Iterator[tuple[str, list[str]]]:
    """Yield each line of the text, and the lines that `wrapped` makes of it."""
    lines = text.split("\n")
    if width is None:
        yield from ((line, [line]) for line in lines)
        return
    skip = False
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        caret = _CARET.fullmatch(following)
        if skip:
            skip = False
        elif (len(line) <= width and len(following if caret else "") <= width) or line.startswith(_COMMANDS):
            yield line, [line]
        elif caret:
            indent = re.match(r" *", line)
            blanks = min(len(indent[0]) if indent else 0, 4)
            source, start, end = cut_around(
                line[blanks:], len(caret[1]) - blanks, caret.end() - blanks, width - blanks - 1
            )
            shown = " " * blanks + source.rstrip()
            yield line, [shown, " " * (blanks + start) + "^" + "~" * (end - start - 1)]
            skip = True
        else:
            yield line, hanging(line, width)


def hanging(line: str, width: int) -> list[str]:
    """Wrap one line between words, with continuation lines indented a little more."""
    own = len(line) - len(line.lstrip(" "))
    return textwrap.wrap(
        line[own:],
        width,
        initial_indent=line[:own],
        subsequent_indent=" " * min(own + _FURTHER, width // 2),
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
    ) or [""]


def keep_end(name: str, width: int) -> str:
    """Return the end of a name that is longer than `width`, from the beginning of a word where possible.

    >>> keep_end("triage.scenario.yaml::a double charge goes to billing", 30)
    '…charge goes to billing'
    >>> keep_end("triage.scenario.yaml::pays", 12)
    '….yaml::pays'
    """
    if len(name) <= width:
        return name
    tail = name[len(name) - max(width - 1, 1) :]
    begins = [found.start() for found in _LAST_PART.finditer(tail) if found.start() > 0]
    at = begins[0] if begins and begins[0] <= len(tail) // 2 else 0
    return "…" + tail[at:]


def keep_ends(name: str, width: int) -> str:
    """Return the beginning and the end of a name that is longer than `width`.

    >>> keep_ends("terse-and-cheap", 9)
    'ters…heap'
    """
    end = (width - 1) // 2
    return name if len(name) <= width else f"{name[: width - 1 - end]}…{name[len(name) - end :]}"
