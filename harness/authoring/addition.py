"""The addition of expectations to a scenario in its file. Everything else in the file stays as it is.

For a row of a table, what holds in it is written for all rows: a value that is in a column becomes `${case.COLUMN}`;
everything else must hold in every row as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness.authoring.writer import mapping_text
from harness.errors import FormatError, Problem, SourceError
from harness.matchers.value import is_matcher, matches
from harness.report.encoding import encode
from harness.scenario import SUFFIXES
from harness.scenario.case_table import Case, load_cases
from harness.scenario.cases import CASES
from harness.scenario.load import merged_scenarios
from harness.scenario.model import Scenario
from harness.source.document import Document, parse, read, shown_path
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


class Written(NamedTuple):
    """A scenario as its file has it: its name there, and the rows of its table by their names in results."""

    name: str
    rows: Mapping[str, Case]


def written(scenario: Scenario) -> Written | None:
    """Return a scenario as its file has it; None if it is none of a scenario file."""
    file = scenario.file
    try:
        if file.name.endswith(SUFFIXES):
            return _written(file, file.stat().st_mtime_ns).get(scenario.name)
    except (SourceError, OSError):
        pass
    return None


@lru_cache(maxsize=256)
def _written(file: Path, _modified_ns: int) -> Mapping[str, Written]:
    found: dict[str, Written] = {}
    for part in merged_scenarios(read(file, yaml="1.2", error=FormatError)):
        name, source = part.value["name"], part.value.get(CASES)
        cases = load_cases(source, part.at((CASES,)), file.parent) if source is not None else ()
        rows = {f"{name}[{case.name}]": case for case in cases}
        found |= dict.fromkeys(rows or (name,), Written(name, rows))
    return found


def for_all_rows(expect: Any, case: Case, rows: Sequence[Case]) -> Iterator[Any]:
    """Yield expectations of a row as all rows may have them: with its columns in place of values, and as they are."""
    columns: dict[str, str] = {}
    for name in _names(case.values, case):
        values = [encode(row.value(name)) if row.has(name) else None for row in rows]
        if None not in values and (len({*values}) > 1 or len(rows) == 1):
            columns.setdefault(encode(case.value(name)), f"${{case.{name}}}")
    referring = {key: _referring(value, columns) for key, value in expect.items()}
    yield from [referring, expect] if referring != expect else [expect]


def _names(value: Any, case: Case, above: str = "") -> Iterator[str]:
    for key in value if isinstance(value, Mapping) else ():
        yield f"{above}{key}"
        yield from _names(case.value(f"{above}{key}"), case, f"{above}{key}.")


def _referring(value: Any, columns: Mapping[str, str]) -> Any:
    if not isinstance(value, bool | None) and (known := columns.get(encode(value))) is not None:
        return known
    if isinstance(value, Mapping):
        return {key: _referring(item, columns) for key, item in value.items()}
    return [_referring(item, columns) for item in value] if isinstance(value, list) else value
