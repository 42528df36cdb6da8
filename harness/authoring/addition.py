"""The addition of expectations to a scenario in its file. Everything else in the file stays as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from harness.authoring.writer import mapping_text
from harness.errors import FormatError, Problem, SourceError
from harness.matchers.value import is_matcher, matches
from harness.source.document import Document, parse, shown_path
from harness.source.editing import Parse, changed, content_end, replace_value

_COLLECTED: Final = ("never", "never_calls", "checks", "routes", "warnings", "never_warnings")
"""Checks whose items stand for themselves: new ones are added to the others."""


def with_expectations(text: str, file: Path, name: str, expect: Mapping[str, Any]) -> str:
    """Return the text of a scenario file in which a scenario has these expectations, too.

    Raises:
        FormatError: the scenario is not written there, or they cannot be written.
    """
    as_read = partial(
        parse, file=shown_path(file), yaml="1.2", json=file.suffix == ".json", error=FormatError
    )
    document = as_read(text)
    listed = document.value.get("scenarios") if isinstance(document.value, dict) else None
    at = next(
        (n for n, each in enumerate(listed or ()) if isinstance(each, dict) and each.get("name") == name),
        None,
    )
    if at is None:
        message = f"{shown_path(file)} has no scenario '{name}' of its own"
        raise FormatError(Problem("unknown-scenario", message))
    for key, value in expect.items():
        text = _added(text, ("scenarios", at, "expect"), key, value, as_read)
    return text


def _added(text: str, above: tuple[Any, ...], key: str, value: Any, as_read: Parse) -> str:
    """Return a text with a value at a key of a mapping, merged with what is there."""
    document, mapping = as_read(text), None
    with suppress(LookupError):
        mapping = document.at(above).value
    if not isinstance(mapping, dict) or not mapping:
        made = _with_key(document, above[:-1], str(above[-1]), {key: value}, as_read)
    elif key not in mapping:
        made = _with_key(document, above, key, value, as_read)
    elif _is_plain(mapping[key]) and _is_plain(value):
        for name, item in value.items():
            text = _added(text, (*above, key), name, item, as_read)
        return text
    else:
        made = replace_value(document, (*above, key), merged(mapping[key], value, key), as_read)
    if made is None:
        message = f"the expectation cannot be written into {document.file}"
        raise FormatError(Problem("cannot-write", message, document.span(above), "paste it by hand"))
    return made


def merged(old: Any, new: Any, key: str = "") -> Any:
    """Return expected values with others added: mappings are merged, and lists of items that stand for themselves."""
    if _is_plain(old) and _is_plain(new):
        return {
            **old,
            **{name: merged(old[name], of, name) if name in old else of for name, of in new.items()},
        }
    if key in _COLLECTED:
        known = old if isinstance(old, list) else [old]
        return [*known, *(item for item in new if item not in known)]
    return _both(old, new) if is_matcher(old) or is_matcher(new) else new


def _both(old: Any, new: Any) -> Any:
    """Return what expects two values, of which one is a matcher at least."""
    if old == new or (is_matcher(old) and "$exact" in old and matches(new, old["$exact"])):
        return old
    if not isinstance(new, Mapping) or "$exact" in new:  # as strict as can be
        return new
    every = old["$all"] if is_matcher(old) and "$all" in old else [old]
    return {"$all": [*every, *([] if new in every else [new])]}


def _is_plain(value: Any) -> bool:
    return isinstance(value, Mapping) and not is_matcher(value)


def _with_key(document: Document, above: tuple[Any, ...], key: str, value: Any, as_read: Parse) -> str | None:
    """Return the text with a new key behind the others of a mapping, or wherever it can be written."""
    wanted = changed(document.value, (*above, key), value)
    for text in _behind(document, above, key, value):
        try:
            if as_read(text).value == wanted:
                return text
        except SourceError:
            continue
    return replace_value(document, (*above, key), value, as_read)


def _behind(document: Document, above: tuple[Any, ...], key: str, value: Any) -> Iterator[str]:
    keys = [each for each in document.at(above).value if each != key]
    if not keys or key in document.at(above).value:
        return
    text, first = document.text, document.key_start((*above, keys[0]))
    column = first - (text.rfind("\n", 0, first) + 1)
    end = content_end(document, (*above, keys[-1]))
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    lines = mapping_text({key: value}).split("\n")
    block = "".join(f"\n{' ' * column}{line}" for line in lines)
    yield text[:stop] + block + text[stop:]
    yield f"{text[:end]}, {mapping_text({key: value})}{text[end:]}"
