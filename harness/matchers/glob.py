"""Matching of names with globs. A node of a nested graph is named `outer/inner`; a model may carry its provider."""

from __future__ import annotations

from fnmatch import fnmatchcase


def glob_matches(pattern: str, name: str) -> bool:
    """True if the whole name matches the glob, or equals it (a name may contain `[` or `?`)."""
    return pattern == name or fnmatchcase(name, pattern)


NAMED_IN_PARTS = ("llm", "script", "human", "retrieval")
"""Kinds of calls whose names are nodes or models: a pattern without a slash is compared with the last part."""


def name_matches(kind: str, pattern: str, name: str) -> bool:
    """True if the name of a call of this kind matches the glob."""
    return (last_part_matches if kind in NAMED_IN_PARTS else glob_matches)(pattern, name)


def last_part_matches(pattern: str, name: str) -> bool:
    """True if the name matches the glob; a pattern without a slash is compared with the last part of the name."""
    return glob_matches(pattern, name if "/" in pattern else name.rpartition("/")[2])
