"""What differs between an expected and an actual value, as text for people.

    intent: expected billing, was refund
    order.total: expected {$gt: 10}, was 3 (is not > 10)
    messages[2].content:
      expected: …your refund was issued today.
      actual:   …your refund was refused.

Only what differs is shown, values in YAML on one line; two long texts from shortly before the first
character that differs.
"""

from __future__ import annotations

import json
from typing import Any

import yaml

from harness.matchers.plain import ABSENT
from harness.matchers.value import Comparison, Mismatch, compare, is_matcher
from harness.source.display import beginning, clip

WIDTH = 100
MOST_MISMATCHES = 10
CONTEXT = 20


def readable_diff(expected: Any, actual: Any) -> str:
    """The places where `actual` is not what `expected` says, one block a place; empty when there is none.

    Raises:
        FormatError: a matcher in `expected` is malformed.
    """
    return difference_text(compare(expected, actual))


def difference_text(compared: Comparison) -> str:
    """The first places of a comparison that differ, and how many there are besides; empty when there is none."""
    blocks = [_block(mismatch) for mismatch in compared.mismatches[:MOST_MISMATCHES]]
    if compared.mismatch_count > MOST_MISMATCHES:
        blocks.append(f"… and {compared.mismatch_count - MOST_MISMATCHES} more")
    return "\n".join(blocks)


def one_line(value: Any, width: int = WIDTH) -> str:
    """A value as YAML on one line of at most `width` characters."""
    return clip(_yaml(value), width)


def _block(mismatch: Mismatch) -> str:
    expected, actual = _pair(mismatch.expected, mismatch.actual)
    needs_reason = is_matcher(mismatch.expected) or isinstance(mismatch.expected, list | tuple)
    reason = f" ({mismatch.reason})" if needs_reason and mismatch.actual is not ABSENT else ""
    label = f"{mismatch.path}: " if mismatch.path else ""
    hint = f" ({mismatch.hint})" if mismatch.hint else ""
    line = f"{label}expected {expected}, was {actual}{reason}{hint}"
    if len(line) <= WIDTH:
        return line
    head = [f"{mismatch.path}:"] if mismatch.path else []
    why = [f"  because:  {clip(mismatch.reason, WIDTH)}"] if reason else []
    return "\n".join([*head, f"  expected: {expected}", f"  actual:   {actual}", *why])


def _pair(expected: Any, actual: Any) -> tuple[str, str]:
    """Both values as text; long texts start near their first difference."""
    one, other = _text(expected), _text(actual)
    if isinstance(expected, str) and isinstance(actual, str) and max(len(one), len(other)) > WIDTH:
        start = max(0, _common(expected, actual) - CONTEXT)
        lead = "…" if start else ""
        one, other = (
            lead + json.dumps(text[start : start + 2 * WIDTH], ensure_ascii=False)[1:-1]
            for text in (expected, actual)
        )
    return clip(one, WIDTH), clip(other, WIDTH)


def _common(one: str, other: str) -> int:
    """How many characters both texts start with."""
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


def _yaml(value: Any) -> str:
    """The beginning of YAML flow style; of JSON where YAML would need several lines."""
    value = beginning(value, 10 * WIDTH)
    try:
        text = yaml.safe_dump(
            value, default_flow_style=True, allow_unicode=True, width=10**9, sort_keys=False
        )
    except yaml.YAMLError:
        return json.dumps(value, ensure_ascii=False, default=str)
    text = text.removesuffix("\n").removesuffix("\n...")
    return json.dumps(value, ensure_ascii=False, default=str) if "\n" in text else text
