"""The scenario writer: scenarios as YAML in the habits of a person.

Keys have the order of the documentation. What is short stands on one line, what is long in a block; a text of several
lines is a literal block. `Gap` is a value that is not known: a comment beside it says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness.errors import FormatError, Problem, SourceError
from harness.source.document import parse, shown_path
from harness.source.scalars import resolve_1_2

WIDTH: Final = 100
"""Columns that a line should not exceed."""
_STEP: Final = 2
_PLAIN: Final = re.compile(r"\$?[\w./]((?:[\w ./+%()'\"!?;&=°€$*@-]|:(?=\w))*[\w./+%)!?;°€$*])?")
"""Texts that nobody quotes, unless they would be read as something else."""
_NOT_IN_BLOCK: Final = re.compile(
    r"[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
"""Characters that only an escape shows, or that YAML reads as line breaks."""


class Gap(str):
    """A text in place of a value that the trace does not hold. `why` says what is missing."""

    why: str

    def __new__(cls, why: str, text: str = "…") -> Gap:
        gap = super().__new__(cls, text)
        gap.why = why
        return gap


def file_text(head: Mapping[str, Any], scenarios: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a new scenario file with these keys and these scenarios."""
    top = "".join(f"{line}\n" for key, value in head.items() for line in _entry(key, value, 0))
    return f"{top}scenarios:\n" + "\n".join(scenario_text(each, _STEP) for each in scenarios)


def mapping_text(mapping: Mapping[str, Any]) -> str:
    """Return the keys of a mapping as YAML, a line or more for each, without a line break at the end."""
    return "\n".join(line for key, value in mapping.items() for line in _entry(key, value, 0))


def scenario_text(scenario: Mapping[str, Any], indent: int) -> str:
    """Return a scenario as an item of a list whose dashes stand at the column `indent`, from 0."""
    lines = [
        line
        for key, value in scenario.items()
        for line in _entry(key, value, indent + _STEP, separate=_is_structure(value))
    ]
    lines[0] = f"{' ' * indent}- {lines[0].lstrip()}"
    return "\n".join(lines) + "\n"


def appended(text: str, file: Path, scenarios: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a scenario file with more scenarios at its end, and everything else as it was.

    Raises:
        FormatError: the file is no scenario file, or its list cannot be continued (code `cannot-append`).
        SourceError: it cannot be read.
    """
    document = parse(text, file=shown_path(file), yaml="1.2", error=FormatError)
    listed = document.value.get("scenarios") if isinstance(document.value, dict) else None
    if not isinstance(listed, list) or not listed:
        raise FormatError(Problem("cannot-append", f"{shown_path(file)} has no list of scenarios"))
    start, _ = document.extent_of(("scenarios", 0))
    line = text[text.rfind("\n", 0, start) + 1 : start]
    indent = len(line) - len(line.lstrip(" "))
    newline = "\r\n" if "\r\n" in text else "\n"
    added = "\n" + "\n".join(scenario_text(each, indent) for each in scenarios)
    whole = text.rstrip("\r\n") + newline + added.replace("\n", newline)
    wanted = {**document.value, "scenarios": [*listed, *scenarios]}
    try:
        if parse(whole, file="", yaml="1.2", error=FormatError).value == wanted:
            return whole
    except SourceError:
        pass
    hint = "its list must be the last key of the file, written as a block"
    raise FormatError(Problem("cannot-append", f"no scenario can be added to {shown_path(file)}", hint=hint))


def _is_structure(value: Any) -> bool:
    """True if a value of a scenario is better read with a line for each of its keys."""
    return isinstance(value, Mapping) and len(value) > 1 and any(map(_is_collection, value.values()))


def _is_table(value: Any) -> bool:
    """True if a list is better read with a line for each of its items."""
    return isinstance(value, list) and len(value) > 1 and any(isinstance(each, Mapping) for each in value)


def _is_collection(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple) and len(value) > 0


def _entry(key: str, value: Any, indent: int, *, separate: bool = False) -> Iterator[str]:
    """Yield the lines of a key and its value. `separate` asks for a line for each item, even if one has room."""
    yield from _labelled(f"{' ' * indent}{_scalar(key, in_flow=True)}:", value, indent, separate=separate)


def _labelled(label: str, value: Any, indent: int, *, separate: bool = False) -> Iterator[str]:
    flow = None if separate else _flow(value)
    if isinstance(value, Gap):
        yield f"{label} {_scalar(value)}  # {' '.join(value.why.split())}"
    elif isinstance(value, str) and "\n" in value and _fits_block(value):
        whole = value.endswith("\n")
        yield f"{label} |{'' if whole else '-'}"
        lines = value.removesuffix("\n").split("\n")
        yield from (" " * (indent + _STEP) + line if line else "" for line in lines)
    elif flow is not None and (len(label) + 1 + len(flow) <= WIDTH or not _is_collection(value)):
        yield f"{label} {_scalar(value) if isinstance(value, str) else flow}"
    elif isinstance(value, Mapping):
        yield label
        for key, item in value.items():
            yield from _entry(str(key), item, indent + _STEP)
    else:
        yield label
        for item in value:
            yield from _item(item, indent + _STEP)


def _item(value: Any, indent: int) -> Iterator[str]:
    """Yield the lines of an item of a block list."""
    flow = _flow(value)
    is_long = flow is None or indent + 2 + len(flow) > WIDTH
    if isinstance(value, Mapping) and value and (is_long or len(value) == 1):
        lines = [line for key, item in value.items() for line in _entry(str(key), item, indent + _STEP)]
        lines[0] = f"{' ' * indent}- {lines[0].lstrip()}"
        yield from lines
    else:
        yield from _labelled(f"{' ' * indent}-", value, indent)


def _flow(value: Any) -> str | None:
    """Return a value on one line, inside of brackets; None if a part of it needs a line of its own."""
    is_block = isinstance(value, str) and "\n" in value and _fits_block(value)
    if isinstance(value, Gap) or is_block or _is_table(value):
        return None
    if isinstance(value, Mapping):
        parts = [(_scalar(str(key), in_flow=True), _flow(item)) for key, item in value.items()]
        return (
            None if any(item is None for _, item in parts) else _braced("{}", [f"{k}: {v}" for k, v in parts])
        )
    if isinstance(value, list | tuple):
        items = [_flow(item) for item in value]
        return None if None in items else _braced("[]", [str(item) for item in items])
    return _scalar(value, in_flow=True)


def _braced(braces: str, parts: Sequence[str]) -> str:
    return f"{braces[0]}{', '.join(parts)}{braces[1]}"


def _scalar(value: Any, *, in_flow: bool = False) -> str:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    text = str(value)
    plain = _PLAIN.fullmatch(text) is not None and not text.endswith(" ") and resolve_1_2(text) is text
    plain = plain and not (in_flow and "?" in text)  # inside of brackets, some readers take it for a key
    if plain or (not in_flow and _is_plain_alone(text)):
        return text
    if '"' in text and "'" not in text and "\n" not in text and not _NOT_IN_BLOCK.search(text):
        return f"'{text}'"
    return _NOT_IN_BLOCK.sub(_escaped, json.dumps(text, ensure_ascii=False))


def _is_plain_alone(text: str) -> bool:
    """True if a text outside of brackets needs no quotes: a sentence, in which commas are common."""
    stripped = text.replace(", ", " ")
    return _PLAIN.fullmatch(stripped) is not None and resolve_1_2(text) is text and not stripped.endswith(" ")


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0]).strip('"')


def _fits_block(text: str) -> bool:
    """True if a literal block holds a text as it is."""
    first = text[:1]
    return bool(first.strip()) and not text.endswith("\n\n") and not _NOT_IN_BLOCK.search(text)
