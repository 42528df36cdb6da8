"""Argument names of calls, for the kinds of calls whose arguments are fixed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness.matchers.value import is_matcher
from harness.source.display import did_you_mean

_ARGUMENTS: Final = {
    "llm": (),
    "http": ("method", "url", "query", "json", "headers", "text"),
    "agent": ("input",),
    "human": ("question", "options", "value"),
    "retrieval": ("query", "top_k", "group"),
}


def unknown_arguments(kind: str, args: Any) -> Iterator[tuple[str, str]]:
    """Yield the names in expected arguments `args` that no call of this kind has, each with a hint."""
    known = _ARGUMENTS.get(kind, ())
    for name in written_arguments(args) if kind in _ARGUMENTS else ():
        if name not in known:
            yield name, did_you_mean(name, known) if known else "calls of models have no arguments"


def written_arguments(args: Any) -> list[str]:
    """Return the names of the expected arguments; none if one matcher applies to all of them."""
    return [str(name) for name in args] if isinstance(args, Mapping) and not is_matcher(args) else []


def has_own_arguments(kind: str) -> bool:
    """True if calls of this kind have arbitrary arguments, as calls of tools do."""
    return kind not in _ARGUMENTS
