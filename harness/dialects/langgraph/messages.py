"""Messages in the input of a graph whose state holds message objects, and no reducer that makes them of mappings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, get_args, get_type_hints

from harness.dialects.kit.manifest import BadInput


@lru_cache(32)
def keys_of_messages(schema: Any) -> frozenset[str]:
    """Return the keys of a state that hold objects of LangChain, except those that `add_messages` makes itself."""
    try:
        hints = get_type_hints(schema, include_extras=True)
    except Exception:  # a name that only a type checker knows
        return frozenset()
    return frozenset(
        key
        for key, hint in hints.items()
        if not any(map(_makes_messages, getattr(hint, "__metadata__", ()))) and _holds_messages(hint)
    )


def _makes_messages(reducer: Any) -> bool:
    """True for `add_messages`, also for one with a format."""
    function = getattr(reducer, "func", reducer)
    return getattr(function, "__module__", "") == "langgraph.graph.message"


def _holds_messages(hint: Any) -> bool:
    from langchain_core.messages import BaseMessage

    inner = get_args(hint)
    return any(map(_holds_messages, inner)) or (isinstance(hint, type) and issubclass(hint, BaseMessage))


def with_messages(given: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return an input whose lists under these keys have objects for the mappings that describe messages.

    Raises:
        BadInput: a message has a role that there is not.
    """
    made = dict(given)
    for key in keys:
        if isinstance(items := made.get(key), list):
            made[key] = [_message(each) if _describes_message(each) else each for each in items]
    return made


def _describes_message(item: Any) -> bool:
    return isinstance(item, Mapping) and "content" in item and ("role" in item or "type" in item)


def _message(item: Any) -> Any:
    from langchain_core.messages import convert_to_messages

    try:
        return convert_to_messages([item])[0]
    except ValueError as error:
        raise BadInput(str(error)) from None
