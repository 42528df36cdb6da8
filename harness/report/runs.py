"""Summarise one or more runs that have ended, from their results.

The lines of several runs are added up; runs of the same scenario count as repeats. A run that is given twice, or is a
copy of another, counts once.
"""

from __future__ import annotations

import filecmp
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.report.formatting import plural
from harness.report.reading import read_lines, results_file
from harness.report.summary import Summary, nothing_ran, why_incomplete, written_summary
from harness.source.document import shown_path

if TYPE_CHECKING:
    from harness.report.grouping import GroupedRuns

_SHARD: Final = re.compile(r"(\d+) of (\d+) scenarios? selected \(shard (\d+)/(\d+)\)")


def are_all_shards(reasons: Sequence[str]) -> bool:
    """True if runs that are incomplete for these reasons are together all shards of one run.

    A shard that was ended early, or that selected scenarios in other ways too, has another reason.
    """
    found = [_SHARD.fullmatch(reason) for reason in reasons]
    if not found or None in found:
        return False
    kept, of, numbers, counts = zip(*(map(int, match.groups()) for match in found if match), strict=True)
    same = len({*of}) == len({*counts}) == 1
    return same and sorted(numbers) == [*range(1, counts[0] + 1)] and sum(kept) == of[0]


@dataclass(frozen=True)
class _Run:
    """A run: its number of lines, why it is incomplete ("" if it is not), {kept, left_out, why} of its traces, and
    the digests of its files.
    """

    name: str
    lines: int
    incomplete: str
    traces: Mapping[str, Any]
    files: Mapping[str, str]


def summarise_runs(paths: Sequence[Path], grouped: GroupedRuns | None = None) -> dict[str, Any]:
    """Return the summary of these results folders or results.jsonl files, in the form of summary.json.

    Each line is added to `grouped`, too. For several runs, `runs` has {name, runs, complete, reason} of each. The
    summary is complete if all of them are, or if they are all the shards of one run.

    Raises:
        FormatError: there are no results, nothing ran, or a line is damaged (`results-missing`, `no-runs`,
            `results-line`).
    """
    chosen = [*without_duplicates(paths)]
    sums, several = Summary(), len(chosen) > 1
    runs = [_add(sums, path, several, grouped) for path in chosen]
    reasons = [
        f"{run.name}: {run.incomplete}" if several else run.incomplete for run in runs if run.incomplete
    ]
    if are_all_shards([run.incomplete for run in runs]):
        reasons = []
    found = sums.as_json("; ".join(reasons))
    if several:
        found["runs"] = [
            {
                "name": run.name,
                "runs": run.lines,
                "complete": not run.incomplete,
                "reason": run.incomplete or None,
            }
            for run in runs
        ]
    files = {} if several else {"files": runs[0].files}
    return found | {"traces": _traces([run.traces for run in runs])} | files


def _add(sums: Summary, path: Path, several: bool, grouped: GroupedRuns | None) -> _Run:
    name, lines, traced = shown_path(path), 0, 0
    for line in read_lines(path):
        lines += 1
        traced += line.get("trace") is not None
        sums.add(line, name if several else None)
        if grouped is not None:
            grouped.add(line, name, several)
    written = written_summary(path)
    incomplete = _incomplete(written, lines)
    # A shard may be empty: there may be fewer scenarios than shards.
    if not lines and not (several and _SHARD.fullmatch(incomplete)):
        raise nothing_ran(path)
    unknown = {"kept": traced, "left_out": 0, "why": None}
    found = written or {}
    return _Run(name, lines, incomplete, found.get("traces") or unknown, found.get("files") or {})


def _incomplete(written: Mapping[str, Any] | None, lines: int) -> str:
    """Return why results with this number of lines are not of a complete run; "" if they are."""
    if written is None:
        return "there is no summary.json next to the results"
    counted = (written.get("total") or {}).get("runs")
    if counted != lines:
        return f"the results have {plural(lines, 'run')}, and summary.json counts {counted}"
    return why_incomplete(written)


def without_duplicates(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the runs without duplicates. A UserWarning names each duplicate."""
    files: list[tuple[Path, Path]] = []
    for path in paths:
        file = results_file(path)
        for other, other_file in files:
            if file.resolve() == other_file.resolve():
                warnings.warn(f"{shown_path(path)} is given twice, and counts once", stacklevel=3)
                break
            if _is_copy(file, other_file):
                text = f"{shown_path(path)} is a copy of {shown_path(other)}, and they count once"
                warnings.warn(text, stacklevel=3)
                break
        else:
            files.append((path, file))
            yield path


def _is_copy(file: Path, other: Path) -> bool:
    """True if two files have the same content. Two runs never do, since their real times differ."""
    try:
        return file.is_file() and other.is_file() and filecmp.cmp(file, other, shallow=False)
    except OSError:  # reported when the file is read
        return False


def _traces(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    why = dict.fromkeys(part["why"] for part in parts if part["why"])
    return {
        "kept": sum(part["kept"] for part in parts),
        "left_out": sum(part["left_out"] for part in parts),
        "why": "; ".join(why) or None,
    }
