"""Reading what a run has left: the lines of results.jsonl."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from harness.errors import FormatError, Problem, Span

FORMAT: Final = "harness-results/1"
RESULTS: Final = "results.jsonl"


def read_lines(path: str | Path) -> Iterator[dict[str, Any]]:
    """The lines of a results.jsonl (or of the one in a folder), one after the other.

    A last line that was cut off (the run was killed while writing it) is left out with a UserWarning.

    Raises:
        FormatError: the file cannot be read (`results-missing`), or a line is not one of this format
            (`results-line`).
    """
    path = Path(path)
    path = path / RESULTS if path.is_dir() else path
    try:
        file = path.open("rb")
    except OSError as error:
        problem = Problem("results-missing", f"cannot read the results {path}: {error.strerror or error}")
        raise FormatError(problem) from error
    with file:
        for number, raw in enumerate(file, start=1):
            if not raw.strip():
                continue
            try:
                yield _parse(raw)
            except ValueError as error:
                if not raw.endswith(b"\n"):
                    warnings.warn(f"{path}:{number}: the last line was cut off and is left out", stacklevel=2)
                    return
                raise FormatError(Problem("results-line", str(error), Span(str(path), number, 1))) from error


def _parse(raw: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a line of JSON: {error}") from error
    if not isinstance(parsed, dict) or parsed.get("format") != FORMAT:
        found = parsed.get("format") if isinstance(parsed, dict) else parsed
        raise ValueError(f"not a line of the format {FORMAT}: found {str(found)[:60]!r}")
    return parsed
