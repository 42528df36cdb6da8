"""The result of a check function, to which `run_checks` adds a name and a weight."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from harness.matchers.plain import ABSENT
from harness.matchers.value import Comparison, Mismatch, compare, is_matcher
from harness.scenario.outcome import JSON
from harness.source.display import clip, truncated

TOLERANCE: Final = 1e-9
"""Allowed excess over a bound, since sums of floats are inexact: 0.1 + 0.2 is within 0.3."""
LONGEST_TEXT = 500
MOST_ITEMS = 50
_SCALARS = frozenset({int, bool, float, type(None)})
_PLAIN_KEY: Final = re.compile(r"(?!(?i:yes|no|on|off|true|false|null)$)[$A-Za-z_]\w{0,99}", re.ASCII)
"""A key that YAML reads as text without quotes."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check function.

    Attributes:
        score: from 0 to 1; 1 if the check holds.
        actual: the part of the run that was checked.
        message: what was expected and what was found, if the check does not hold.
        broken: the check could not be evaluated: it neither holds nor fails.
    """

    score: float
    actual: JSON
    message: str = ""
    broken: bool = False


def pass_or_fail(holds: bool, actual: JSON, message: str) -> Finding:
    """Return the finding of a check without partial credit; `message` is used if it does not hold."""
    return Finding(1.0, actual) if holds else Finding(0.0, actual, message)


def partial_credit(faults: Iterable[str | None], actual: JSON) -> Finding:
    """Return the share of parts that hold. `faults` has None for a part that holds, or else the reason."""
    parts = list(faults)
    wrong = [fault for fault in parts if fault is not None]
    score = (len(parts) - len(wrong)) / len(parts) if parts else 1.0
    return Finding(score, actual, "\n".join(wrong))


def as_list(expected: Any) -> list[Any]:
    """Return an expected value that may be a single item or a list, as a list."""
    return list(expected) if isinstance(expected, list | tuple) else [expected]


def trim(value: JSON) -> JSON:
    """Return the value with long texts and lists cut; it is still JSON."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}… ({len(value)} characters)"
    if type(value) in _SCALARS:
        return value
    if type(value) is dict or isinstance(value, Mapping):
        return {key: trim(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        kept = [trim(item) for item in value[:MOST_ITEMS]]
        return kept if len(value) <= MOST_ITEMS else [*kept, f"… {len(value) - MOST_ITEMS} more"]
    return value


WIDTH = 100
MOST_MISMATCHES = 10
CONTEXT = 20


def readable_diff(expected: Any, actual: Any) -> str:
    """Return one block of text for each place where `actual` does not match `expected`; empty if there is none.

    Raises:
        FormatError: a matcher in `expected` is malformed.
    """
    return difference_text(compare(expected, actual))


def difference_text(compared: Comparison) -> str:
    """Return the first mismatches of a comparison as text, and the number of further ones; empty if there is none."""
    shown = compared.mismatches[:MOST_MISMATCHES]
    blocks = [_on_one_line(mismatch) for mismatch in shown]
    if any(len(block) > WIDTH for block in blocks):  # all in the same form
        blocks = [_on_several_lines(mismatch) for mismatch in shown]
    if compared.mismatch_count > MOST_MISMATCHES:
        blocks.append(f"… and {compared.mismatch_count - MOST_MISMATCHES} more")
    return "\n".join(blocks)


def one_line(value: Any, width: int = WIDTH) -> str:
    """Return a value as YAML on one line of at most `width` characters, with each text in quotes."""
    return clip(_yaml(value), width)


def _on_one_line(mismatch: Mismatch) -> str:
    label = f"{mismatch.path}: " if mismatch.path else ""
    why = f" ({reason})" if (reason := _reason(mismatch)) else ""
    return f"{label}expected {_text(mismatch.expected)}, was {_text(mismatch.actual)}{why}"


def _on_several_lines(mismatch: Mismatch) -> str:
    expected, actual = _pair(mismatch.expected, mismatch.actual)
    reason = _reason(mismatch)
    lines = [f"expected: {expected}", f"actual:   {actual}"]
    lines += [f"because:  {clip(reason, WIDTH)}"] if reason else []
    return "\n  ".join([f"{mismatch.path}:", *lines]) if mismatch.path else "\n".join(lines)


def _reason(mismatch: Mismatch) -> str:
    needed = is_matcher(mismatch.expected) or isinstance(mismatch.expected, list | tuple)
    reason = mismatch.reason if needed and mismatch.actual is not ABSENT else ""
    return "; ".join(filter(None, (reason, mismatch.hint)))


def _pair(expected: Any, actual: Any) -> tuple[str, str]:
    """Return both values as text; two long texts start near their first difference."""
    one, other = _text(expected), _text(actual)
    if isinstance(expected, str) and isinstance(actual, str) and max(len(one), len(other)) > WIDTH:
        start = max(0, _common_prefix_length(expected, actual) - CONTEXT)
        lead = "…" if start else ""
        one, other = (lead + _text(text[start : start + 2 * WIDTH]) for text in (expected, actual))
    return clip(one, WIDTH), clip(other, WIDTH)


def _common_prefix_length(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    start, end = 0, min(len(one), len(other))
    while start < end:  # the texts are equal up to `start`, and not beyond `end`
        middle = (start + end + 1) // 2
        if one[start:middle] == other[start:middle]:
            start = middle
        else:
            end = middle - 1
    return start


def _text(value: Any) -> str:
    return "nothing" if value is ABSENT else _yaml(value)


class _Quoting(yaml.SafeDumper):
    """Puts every text into quotes, but no key that does without."""

    def represent_mapping(self, *args: Any, **kwargs: Any) -> yaml.MappingNode:
        node = super().represent_mapping(*args, **kwargs)
        for key, _ in node.value:
            key.style = None
        return node


def _quoted_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if text.isprintable() else '"')


_Quoting.add_representer(str, _quoted_text)


def _yaml(value: Any) -> str:
    """Return the beginning of a value in YAML flow style, or in JSON if YAML needs several lines."""
    value = truncated(value, 10 * WIDTH)
    if (plain := _plain_yaml(value)) is not None:
        return plain
    try:
        text = yaml.dump(
            value, None, _Quoting, default_flow_style=True, allow_unicode=True, width=10**9, sort_keys=False
        )
    except yaml.YAMLError:
        return json.dumps(value, ensure_ascii=False, default=str)
    text = text.removesuffix("\n").removesuffix("\n...")
    return json.dumps(value, ensure_ascii=False, default=str) if "\n" in text else text


def _plain_yaml(value: Any) -> str | None:
    """Return what the library makes of a plain value, in a tenth of the time; None if it may need an escape."""
    kind = type(value)
    if kind is str:
        return "'" + value.replace("'", "''") + "'" if value.isprintable() else None
    if kind is int:
        return str(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return None if set(text := repr(value)) & {"e", "n"} else text
    if kind is list:
        items = [_plain_yaml(item) for item in value]
        return None if None in items else f"[{', '.join(items)}]"  # type: ignore[arg-type]
    if kind is dict and all(type(key) is str and _PLAIN_KEY.fullmatch(key) for key in value):
        items = [_plain_yaml(item) for item in value.values()]
        pairs = (f"{key}: {item}" for key, item in zip(value, items, strict=True))
        return None if None in items else f"{{{', '.join(pairs)}}}"
    return None
