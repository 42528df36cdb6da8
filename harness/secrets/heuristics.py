"""What looks like a secret value, and what only stands where one would."""

from __future__ import annotations

import re


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_COMMON = word_set(
    "true false none null yes no on off default disabled enabled dummy fake test testing example sample "
    "placeholder changeme change-me password passwd secret token api-key api_key apikey credentials username "
    "required optional string integer number boolean object function undefined unknown anonymous unused empty "
    "not-needed not_needed notneeded no-key-required redacted [redacted] hidden masked localhost ollama "
    "lm-studio production development staging basic bearer include same-origin"
)
_MASKED = re.compile(r".*(?:\*\*\*|\.\.\.|…).*", re.DOTALL)
# The name of a variable, or a place for its value.
_NAMED = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|\$?\{.*\}|<.*>|%.*%|\$[A-Z_]+", re.DOTALL)


def looks_random(value: str) -> bool:
    """Was a value made by a machine: long, in one piece, with letters and digits or in mixed case?"""
    if len(value) < 8 or re.search(r"\s", value):
        return False
    letters = any(char.isalpha() for char in value)
    mixed = value.lower() != value and value.upper() != value
    return letters and (any(char.isdecimal() for char in value) or (mixed and len(value) >= 16))


def common(value: str) -> bool:
    """Is it a word, or one character over and over, that stands where a secret would?"""
    return value.lower() in _COMMON or len(set(value)) <= 1


def stands_for_another(value: str) -> bool:
    """Is it the name of a variable, a place to be filled in, or a secret that was masked?"""
    return bool(_NAMED.fullmatch(value) or _MASKED.fullmatch(value))
