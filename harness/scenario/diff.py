"""Readable differences between an expected and an actual value.

    intent: expected billing, was refund
    order.total: expected {$gt: 10}, was 3 (is not > 10)
    messages[2].content:
      expected: …your refund was issued today.
      actual:   …your refund was refused.

Only differences are shown, values as YAML on one line. Two long texts are shown from shortly before the first
character that differs.
"""

from __future__ import annotations

import json
from typing import Any

import yaml

from harness.matchers.plain import ABSENT
from harness.matchers.value import Comparison, Mismatch, compare, is_matcher
from harness.source.display import clip, truncated

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
    blocks = [_block(mismatch) for mismatch in compared.mismatches[:MOST_MISMATCHES]]
    if compared.mismatch_count > MOST_MISMATCHES:
        blocks.append(f"… and {compared.mismatch_count - MOST_MISMATCHES} more")
    return "\n".join(blocks)


def one_line(value: Any, width: int = WIDTH) -> str:
    """Return a value as YAML on one line of at most `width` characters."""
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
    """Return both values as text; two long texts start near their first difference."""
    one, other = _text(expected), _text(actual)
    if isinstance(expected, str) and isinstance(actual, str) and max(len(one), len(other)) > WIDTH:
        start = max(0, _common_prefix_length(expected, actual) - CONTEXT)
        lead = "…" if start else ""
        one, other = (
            lead + json.dumps(text[start : start + 2 * WIDTH], ensure_ascii=False)[1:-1]
            for text in (expected, actual)
        )
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


def _yaml(value: Any) -> str:
    """Return the beginning of a value in YAML flow style, or in JSON if YAML needs several lines."""
    value = truncated(value, 10 * WIDTH)
    try:
        text = yaml.safe_dump(
            value, default_flow_style=True, allow_unicode=True, width=10**9, sort_keys=False
        )
    except yaml.YAMLError:
        return json.dumps(value, ensure_ascii=False, default=str)
    text = text.removesuffix("\n").removesuffix("\n...")
    return json.dumps(value, ensure_ascii=False, default=str) if "\n" in text else text
