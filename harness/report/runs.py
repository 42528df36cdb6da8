"""Summarise one or more runs that have ended, from their results: as a whole, and by several keys at once.

This is `harness summary`, also with `--by tag,model`, and `Results.groups`. The lines of several runs are added up;
runs of the same scenario count as repeats. A run that is given twice, or is a copy of another, counts once.
"""

from __future__ import annotations

import csv
import filecmp
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any, Final

from harness.errors import FormatError, Problem
from harness.report.figures import PERCENTILES
from harness.report.formatting import plural
from harness.report.group import Stratum, figures
from harness.report.reading import read_lines, results_file
from harness.report.repeats import Line
from harness.report.summary import Summary, nothing_ran, why_incomplete, written_summary
from harness.source.display import did_you_mean
from harness.source.document import shown_path

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


KEYS: Final[Mapping[str, Callable[[Line, str], Iterable[str]]]] = {
    "suite": lambda line, run: [line["suite"]],
    "scenario": lambda line, run: [line["id"]],
    "tag": lambda line, run: dict.fromkeys(line["tags"]),
    "model": lambda line, run: line["usage"]["by_model"],
    "variant": lambda line, run: _known(line["variant"]),
    "manifest": lambda line, run: [line["manifest"]],
    "agent": lambda line, run: _known(line["agent"]),
    "dialect": lambda line, run: [line["dialect"]],
    "verdict": lambda line, run: [line["verdict"]],
    "status": lambda line, run: [line["status"]],
    "run": lambda line, run: [run],
}
"""The groups that a line belongs to, by key. `run` is the folder of the results."""


def _known(name: str | None) -> list[str]:
    return [name] if name else []


def parse_keys(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the keys without duplicates.

    Raises:
        FormatError: there is no such key, or none is given (`unknown-key`).
    """
    found = tuple(dict.fromkeys(keys))
    for key in found or ("",):
        if key not in KEYS:
            text = f"runs cannot be grouped by '{key}'"
            raise FormatError(Problem("unknown-key", text, hint=did_you_mean(key, KEYS)))
    return found


class GroupedRuns:
    """Sums up lines of results by some of `KEYS`.

    A run counts in a group for each of its tags, and of its models, with the usage of that model. It is in no group
    if it has no value for a key, such as no tag.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = keys
        self._groups: dict[tuple[str, ...], dict[str, Stratum]] = {}
        self._left_out: dict[str, int] = {}

    def add(self, line: Line, run: str, of_several: bool = True) -> None:
        """Add a line of results.jsonl from this folder, which is one `of_several`."""
        values = {key: [*KEYS[key](line, run)] for key in self.keys}
        for key, found in values.items():
            if not found:
                self._left_out[key] = self._left_out.get(key, 0) + 1
        for names in product(*values.values()):
            strata = self._groups.setdefault(names, {})
            variant = line["variant"] or ""
            if variant not in strata:
                strata[variant] = Stratum()
            part = _of_model(line, names[self.keys.index("model")]) if "model" in self.keys else line
            strata[variant].add(part, run if of_several else None)

    def as_json(self) -> list[dict[str, Any]]:
        """Return, by name, {by: {key: name}, …} with the figures of each group (`harness.report.group.figures`)."""
        return [
            {"by": dict(zip(self.keys, names, strict=True)), **figures([*strata.values()])}
            for names, strata in sorted(self._groups.items())
        ]

    @property
    def title(self) -> str:
        """The noun for a group, such as `tag · model`."""
        return " · ".join(self.keys)

    def named(self) -> dict[str, dict[str, Any]]:
        """Return the figures by the names of a group, such as `billing · gpt-4o`."""
        return {" · ".join(group["by"].values()): group for group in self.as_json()}

    def notes(self) -> list[str]:
        """Return a line for each key that some runs have no value for."""
        return [
            f"{plural(count, 'run')} in no group: no {key}" if self._groups else f"no run has a {key}"
            for key, count in self._left_out.items()
        ]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a flat row for each group: its keys, then `FIGURE_COLUMNS`."""
        for group in self.as_json():
            low, high = group["pass_rate_interval"]
            flat = {
                **group,
                "pass_rate_low": low,
                "pass_rate_high": high,
                **{f"latency_{name}": group["latency"][name] for name in PERCENTILES},
                "input_tokens": group["tokens"]["input"],
                "output_tokens": group["tokens"]["output"],
            }
            yield {**group["by"], **{name: flat[name] for name in FIGURE_COLUMNS}}


FIGURE_COLUMNS: Final = {
    **dict.fromkeys(("runs", "distinct_runs", "scenarios", "passed", "failed", "errors", "skipped"), "int"),
    **dict.fromkeys(("pass_rate", "pass_rate_low", "pass_rate_high", "fitness"), "Float"),
    **{f"latency_{name}": "timedelta" for name in PERCENTILES},
    **dict.fromkeys(("llm_calls", "input_tokens", "output_tokens"), "int"),
    "cost": "Float",
}
"""The figures of a group in a table, each with its kind (`harness.report.frames`)."""


def csv_of(grouped: GroupedRuns) -> str:
    """Return the rows as CSV with a header. Latencies are virtual seconds; what is unknown is empty."""
    made = StringIO()
    writer = csv.DictWriter(made, [*grouped.keys, *FIGURE_COLUMNS], lineterminator="\n")
    writer.writeheader()
    writer.writerows(grouped.rows())
    return made.getvalue()


def _of_model(line: Line, name: str) -> Line:
    """Return the line with the usage of one of its models alone."""
    usage = line["usage"]["by_model"][name]
    return {**line, "usage": {"cost": 0.0, **usage, "by_model": {name: usage}}}
