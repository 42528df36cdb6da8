"""Read results.jsonl."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, get_args

from harness.errors import FormatError, Problem, Span
from harness.report.decoding_problem import decoding_problem
from harness.scenario.outcome import Status, Verdict
from harness.source.document import hint_for_missing, shown_path

if TYPE_CHECKING:
    from msgspec.json import Decoder

    from harness.report.line import Line

FORMAT: Final = "harness-results/1"
RESULTS: Final = "results.jsonl"

_MAX_LINE: Final = 256 * 1024 * 1024
"""The most bytes read as one line; ordinary lines have a few thousand."""
_CHOICES: Final = {"verdict": get_args(Verdict), "status": get_args(Status)}


def results_file(run: Path) -> Path:
    """Return the results.jsonl of a run; `run` is its folder or that file itself."""
    return run / RESULTS if run.is_dir() else run


def read_lines(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a results.jsonl (or of the one in a folder), in the form of `harness.report.line.Line`.

    An incomplete last line (the run was killed while writing it) is skipped with a UserWarning.

    Raises:
        FormatError: the file cannot be read (`results-missing`), or a line does not have this format
            (`results-line`).
    """
    path = results_file(Path(path))
    try:
        with path.open("rb") as file:
            yield from _lines(file, path)
    except OSError as error:
        text = f"cannot read the results {shown_path(path)}: {error.strerror or error}"
        near = hint_for_missing(path) if path.parent.is_dir() and not path.exists() else ""
        hint = near or "`harness run` writes them: in reports/latest, or where --report says"
        raise FormatError(Problem("results-missing", text, hint=hint)) from error


def _lines(file: BinaryIO, path: Path) -> Iterator[dict[str, Any]]:
    decode, number = _decoder().decode, 0
    while raw := file.readline(_MAX_LINE):
        number += 1
        if not raw.strip():
            continue
        try:
            line: Any = decode(raw)
        except (ValueError, RecursionError) as error:
            if not raw.endswith(b"\n") and len(raw) < _MAX_LINE:
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
    """Describe why a line is not valid."""
    if len(raw) >= _MAX_LINE:
        return Problem(
            "results-line", f"a line of more than {_MAX_LINE // 1024**2} MB is not a line of results", span
        )
    found = decoding_problem(raw, error, FORMAT, _CHOICES)
    text = f"not a line of {found.expected or 'results'}: {found.text}"
    return Problem("results-line", text, Span(span.file, span.line, found.column), found.hint)
