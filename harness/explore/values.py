"""Values for a JSON Schema, drawn with one primitive, so that what draws them also shrinks them.

The answers of models and tools are made of them, and faulty answers that do not fit a schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from harness.explore.alternatives import NotDrawable as NotDrawable
from harness.explore.alternatives import as_text
from harness.explore.drawing import Choose as Choose
from harness.explore.drawing import drawer
from harness.graph.effects import ToolSpec
from harness.matchers.json_schema import schema_validator

_TRIES: Final = 12


def instance(schema: Any, choose: Choose, words: Sequence[str] = ()) -> Any:
    """Draw a value that is valid under the schema. Texts are mostly `words`, the most interesting of which are first.

    Raises:
        NotDrawable: no valid value was found.
    """
    return drawer(as_text(schema))(choose, tuple(words))


def broken(schema: Any, choose: Choose) -> str:
    """Draw a text that is no JSON, or that lacks a key which it must have: a reply of a model at fault.

    Raises:
        NotDrawable: no value was found that is valid, and could be broken.
    """
    refusal = "I cannot answer that."
    written = as_text(value := instance(schema, choose))
    match choose(6):
        case 0:
            return refusal
        case 1:
            return ""
        case 2:
            return written[: len(written) // 2] + "…"  # cut off: never JSON, as `…` is none outside of a text
    lacking = _spoilt(value, choose, schema_validator(schema).is_valid, [_NONE])
    return refusal if lacking is _NONE else as_text(lacking)


def arguments(tool: ToolSpec, choose: Choose, words: Sequence[str] = ()) -> dict[str, Any]:
    """Draw arguments that are valid for a tool.

    Raises:
        NotDrawable: no valid arguments were found.
    """
    drawn: dict[str, Any] = instance(_of_arguments(tool), choose, words)
    return drawn


def wrong_arguments(tool: ToolSpec, choose: Choose, words: Sequence[str] = ()) -> dict[str, Any]:
    """Draw arguments that the schema of a tool does not allow; if it allows all, one that it does not name.

    Raises:
        NotDrawable: no arguments were found that are valid, and could be made wrong.
    """
    is_valid = schema_validator(_of_arguments(tool)).is_valid
    value = arguments(tool, choose, words)
    wrong = _spoilt(value, choose, is_valid, [_NONE, None, [], {}])
    return {**value, "unexpected": "value"} if wrong is _NONE else dict(wrong)


def _of_arguments(tool: ToolSpec) -> dict[str, Any]:
    return {"properties": {}, **tool.schema, "type": "object"}


_NONE: Final = object()


def _spoilt(value: Any, choose: Choose, is_valid: Callable[[Any], bool], others: Sequence[Any]) -> Any:
    """Return the value with one part replaced, or left out (`_NONE`); `_NONE` if some attempts leave it valid."""
    changes = [(path, other) for path in _paths(value) for other in others]
    at = choose(len(changes)) if changes else 0
    for attempt in range(min(_TRIES * len(others), len(changes))):
        spoilt = _changed(value, *changes[(at + attempt) % len(changes)])
        if not is_valid(spoilt):
            return spoilt
    return _NONE


def _paths(value: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each key in a value."""
    is_mapping = isinstance(value, dict)
    for at, part in value.items() if is_mapping else enumerate(value) if isinstance(value, list) else ():
        yield from [(at,)] if is_mapping else []
        yield from ((at, *path) for path in _paths(part))


def _changed(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    changed, key = value.copy(), path[0]
    if len(path) > 1:
        changed[key] = _changed(value[key], path[1:], other)
    elif other is _NONE:
        del changed[key]
    else:
        changed[key] = other
    return changed
