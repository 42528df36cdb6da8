"""Reading what a run has left: the lines of results.jsonl."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, get_args

from harness.errors import FormatError, Problem, Span
from harness.scenario.outcome import Status, Verdict
from harness.source.display import clip, printable
from harness.source.suggest import did_you_mean

if TYPE_CHECKING:
    from msgspec.json import Decoder

    from harness.report.line import Line

FORMAT: Final = "harness-results/1"
RESULTS: Final = "results.jsonl"

_LONGEST: Final = 256 * 1024 * 1024
"""Bytes of a line that are read; one of ours has a few thousand."""
_EXCERPT: Final = 60
_KINDS: Final = {
    "array": "a list",
    "object": "a mapping",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
}
_CHOICES: Final = {"verdict": get_args(Verdict), "status": get_args(Status)}


def read_lines(path: str | Path) -> Iterator[dict[str, Any]]:
    """The lines of a results.jsonl (or of the one in a folder), one after the other, as `harness.report.line.Line`.

    A last line that was cut off (the run was killed while writing it) is left out with a UserWarning.

    Raises:
        FormatError: the file cannot be read (`results-missing`), or a line is not one of this format
            (`results-line`).
    """
    path = Path(path)
    path = path / RESULTS if path.is_dir() else path
    try:
        with path.open("rb") as file:
            yield from _lines(file, path)
    except OSError as error:
        problem = Problem("results-missing", f"cannot read the results {path}: {error.strerror or error}")
        raise FormatError(problem) from error


def _lines(file: BinaryIO, path: Path) -> Iterator[dict[str, Any]]:
    decode, number = _decoder().decode, 0
    while raw := file.readline(_LONGEST):
        number += 1
        if not raw.strip():
            continue
        try:
            line: Any = decode(raw)
        except (ValueError, RecursionError) as error:
            if not raw.endswith(b"\n") and len(raw) < _LONGEST:
                warnings.warn(f"{path}:{number}: the last line was cut off and is left out", stacklevel=3)
                return
            raise FormatError(_problem(raw, error, Span(str(path), number, 1))) from error
        yield line


@cache
def _decoder() -> Decoder[Line]:
    from msgspec.json import Decoder

    from harness.report.line import Line

    return Decoder(Line)


def _problem(raw: bytes, error: Exception, span: Span) -> Problem:
    """Why a line is none of ours."""
    from msgspec import ValidationError
    from msgspec.json import decode

    if len(raw) >= _LONGEST:
        return Problem(
            "results-line", f"a line of more than {_LONGEST // 1024**2} MB is not one of results", span
        )
    try:
        parsed = decode(raw)
    except (ValueError, RecursionError) as broken:
        byte = re.search(r"\(byte (\d+)\)", str(broken))
        at = int(byte[1]) if byte else 0
        text = raw[at : at + _EXCERPT].decode(errors="replace")
        return Problem(
            "results-line", f"not a line of JSON: {_found(text)}", Span(span.file, span.line, at + 1)
        )
    found = parsed.get("format") if isinstance(parsed, dict) else parsed
    if found != FORMAT:
        return Problem("results-line", f"not a line of the format {FORMAT}: found {_found(found)}", span)
    if not isinstance(error, ValidationError):
        return Problem("results-line", f"not a line of results: {error}", span)
    message, _, place = str(error).partition(" - at ")
    wrong, hint = _wrong(message, place.strip("`").removeprefix("$").removeprefix("."), parsed)
    return Problem("results-line", f"not a line of results: {wrong}", span, hint)


def _wrong(message: str, field: str, line: dict[str, Any]) -> tuple[str, str]:
    """What is wrong with a field, and a hint."""
    value, name = _at(line, field), field.replace("[...]", "[…]")
    if missing := re.fullmatch("Object missing required field `(.*)`", message):
        known = value if isinstance(value, dict) else {}
        name = ".".join(filter(None, (name, missing[1])))
        return f"it has no '{name}'", did_you_mean(missing[1], known, listing=False)
    if choices := _CHOICES.get(field):
        return f"{name} cannot be {_found(value)}", did_you_mean(str(value), choices)
    expected = re.match(r"Expected `([^`]*)`, got", message)
    if expected is None:
        return f"{name} cannot be {_found(value)}", ""
    kinds = " or ".join(_KINDS.get(kind, kind) for kind in expected[1].split(" | "))
    return f"{name} must be {kinds}, found {_found(value)}", ""


def _at(line: Any, field: str) -> Any:
    """The value of a field such as `checks[0].name`; `[...]` is one of the values of a mapping, which is not said."""
    for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", field.partition("[...]")[0]):
        line = line[int(index)] if index else line[key]
    return line


def _found(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return clip(printable(repr(value)), _EXCERPT)
