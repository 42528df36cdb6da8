"""The arguments of calls, for kinds of which all calls have the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness.matchers.value import is_matcher
from harness.source.suggest import did_you_mean

_ARGUMENTS: Final = {
    "llm": (),
    "http": ("method", "url", "query", "json", "headers", "text"),
    "agent": ("input",),
    "human": ("question", "options", "value"),
    "retrieval": ("query", "top_k", "group"),
}


def unknown_arguments(kind: str, args: Any) -> Iterator[tuple[str, str]]:
    """The arguments that no call of this kind has, of those that are asked for; each with a hint."""
    known = _ARGUMENTS.get(kind, ())
    for name in written_arguments(args) if kind in _ARGUMENTS else ():
        if name not in known:
            yield name, did_you_mean(name, known) if known else "calls of models have no arguments"


def written_arguments(args: Any) -> list[str]:
    """The names of the arguments that are asked for; none if one matcher is for all of them."""
    return [str(name) for name in args] if isinstance(args, Mapping) and not is_matcher(args) else []


def has_own_arguments(kind: str) -> bool:
    """True if calls of this kind have arguments of their own, as those of tools do."""
    return kind not in _ARGUMENTS
