"""Arguments that name a trace by its file: FILE, or FILE::NAME for one of its conversations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.errors import FormatError, Problem
from harness.report.reading import RESULTS
from harness.source.display import did_you_mean
from harness.source.document import shown_path

if TYPE_CHECKING:
    from harness.report.traces import RunTrace

_SCENARIOS: Final = (".yaml", ".yml")
_TRACES: Final = (".json", ".jsonl", ".gz")


def trace_file(argument: str) -> tuple[Path, str] | None:
    """Return the file and the name in an argument; None if it names something else, such as a scenario or a run."""
    file, _, name = argument.partition("::")
    path = Path(file)
    if path.suffix in _SCENARIOS or path.name == RESULTS or path.is_dir():
        return None
    return (path, name) if path.is_file() or path.suffix in _TRACES else None


def traces_named(path: Path, name: str) -> list[RunTrace]:
    """Return the conversations of a file: all without a name, else the one of that name.

    Raises:
        FormatError: the file cannot be read, or has no conversation of that name (`unknown-scenario`).
    """
    from harness.traces.reading import read_traces

    traces = read_traces(path)
    names = [name_of(trace) for trace in traces]
    if not name:
        return traces
    if name not in names:
        message = f"{shown_path(path)} has no conversation '{name}'"
        raise FormatError(Problem("unknown-scenario", message, hint=did_you_mean(name, names)))
    return [traces[names.index(name)]]


def name_of(trace: RunTrace) -> str:
    """Return the name of a conversation, or of the scenario that a run was of."""
    return str(trace.head.get("scenario") or trace.head.get("id"))


def one_trace(path: Path, name: str) -> RunTrace:
    """Return the only conversation of a file, or the one of that name.

    Raises:
        FormatError: as `traces_named`, or it has several and none is named.
    """
    traces = traces_named(path, name)
    if len(traces) > 1:
        message = f"{shown_path(path)} has {len(traces)} conversations"
        names = ", ".join(f"'{shown_path(path)}::{name_of(trace)}'" for trace in traces[:10])
        raise FormatError(Problem("unknown-scenario", message, hint=f"name one: {names}"))
    return traces[0]
