"""Continuation of an interrupted scoring.

    DIR/unfinished.json      the fingerprint of each run; removed when the scoring ends as planned
    DIR/taken-over/          the same of an interrupted scoring, with its results, until they are written again

A run is taken over if all its inputs are unchanged: the files of the scenario, of its manifest and of the code it
imports, the variant, the settings, the version of this package. So the results equal those of a scoring without
interruption. Runs that could not be judged are run again.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness.errors import FormatError, Problem
from harness.report.encoding import encode, unwritable
from harness.report.encoding import replace as replace_file
from harness.report.reading import RESULTS, read_lines
from harness.report.results import Record, open_locked
from harness.report.traces import FOLDER, move_traces

FORMAT: Final = "harness-unfinished/1"
UNFINISHED: Final = "unfinished.json"
TAKEN_OVER: Final = "taken-over"


class ResumedRun(NamedTuple):
    """A run of the interrupted scoring: its line of results, and its trace file."""

    line: Mapping[str, Any]
    trace: Path | None

    def read(self) -> tuple[Mapping[str, Any], Record]:
        """Return the line of results and the record to write."""
        try:
            content = self.trace.read_bytes() if self.trace is not None else b""
        except OSError:
            content = b""
        return self.line, Record(encode({**self.line, "trace": None}), content)


class ResumeState:
    """The state of a scoring in its folder, from which it can be continued.

    `fingerprints` are those of its runs, by key. `order` names the order of the runs beyond that of the
    scenarios.
    """

    def __init__(self, folder: Path, fingerprints: Mapping[str, str], order: str) -> None:
        self._folder, self._fingerprints, self._order = folder, fingerprints, order

    def taken_over(self, repeats: Mapping[str, int]) -> dict[str, list[ResumedRun]]:
        """Return the runs that need not be made again, by the key of the scenario (`run_key`).

        `repeats` is the number of runs of each scenario.

        Raises:
            FormatError: the results of the folder are damaged, are being written, or cannot be moved.
        """
        if (self._folder / RESULTS).is_file():
            self._check_alone()
        kept = self._folder / TAKEN_OVER
        before = self._read(kept if (kept / UNFINISHED).is_file() else self._folder)
        same = {key for key, made_of in self._fingerprints.items() if before.get(key) == made_of}
        if not same or (self._order and same != before.keys() | self._fingerprints.keys()):
            discard(self._folder)
            return {}
        self._move(kept)
        try:
            found = _runs_of(kept)
        except FormatError as error:
            raise FormatError(
                [replace(each, hint="--fresh starts anew") for each in error.problems]
            ) from None
        return {
            key: sorted(runs, key=lambda run: run.line["repeat"])
            for key, runs in found.items()
            if key in same and _is_whole(runs, repeats[key])
        }

    def begin(self) -> None:
        """Write the fingerprints of the runs that follow.

        Raises:
            FormatError: they cannot be written.
        """
        document = {"format": FORMAT, "order": self._order, "runs": dict(self._fingerprints)}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(self._folder, error) from error
        replace_file(self._folder / UNFINISHED, json.dumps(document, indent=1).encode() + b"\n")

    def discard_old(self) -> None:
        """Remove the old results: the runs taken over are in the new results."""
        shutil.rmtree(self._folder / TAKEN_OVER, ignore_errors=True)

    def end(self) -> None:
        """Remove the state: the scoring has ended as planned."""
        discard(self._folder)

    def _check_alone(self) -> None:
        try:
            open_locked(self._folder / RESULTS).close()
        except OSError as error:
            raise unwritable(self._folder, error) from error

    def _read(self, folder: Path) -> dict[str, str]:
        """Return the fingerprints of an interrupted scoring in the folder; none if there is none."""
        try:
            found = json.loads((folder / UNFINISHED).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(found, dict) or (found.get("format"), found.get("order")) != (FORMAT, self._order):
            return {}
        runs = found.get("runs")
        return {str(key): str(of) for key, of in runs.items()} if isinstance(runs, dict) else {}

    def _move(self, kept: Path) -> None:
        """Move the results to `kept`. The fingerprints are moved last: if they are there, so is everything else."""
        if (kept / UNFINISHED).is_file():
            return
        try:
            kept.mkdir(exist_ok=True)
            move_traces(self._folder, kept)
            if (self._folder / RESULTS).is_file():
                os.replace(self._folder / RESULTS, kept / RESULTS)
            shutil.copyfile(self._folder / UNFINISHED, kept / UNFINISHED)
        except OSError as error:
            text = f"cannot move the results of {self._folder}: {error.strerror or error}"
            raise FormatError(Problem("report-folder", text)) from error


def discard(folder: Path) -> None:
    """Remove the state of an interrupted scoring."""
    with suppress(OSError):
        (folder / UNFINISHED).unlink(missing_ok=True)
    shutil.rmtree(folder / TAKEN_OVER, ignore_errors=True)


def run_key(variant: str | None, id_: str) -> str:
    """Return the key of a scenario with a variant."""
    return f"{variant or ''} {id_}"


def _runs_of(folder: Path) -> dict[str, list[ResumedRun]]:
    """Return the runs in a folder of results, by key."""
    found: dict[str, list[ResumedRun]] = {}
    with warnings.catch_warnings(action="ignore"):  # about a truncated last line: that run is made again
        for line in read_lines(folder) if (folder / RESULTS).is_file() else ():
            trace = line.get("trace")
            file = folder / FOLDER / Path(trace).name if isinstance(trace, str) else None
            found.setdefault(run_key(line["variant"], line["id"]), []).append(ResumedRun(line, file))
    return found


def _is_whole(runs: Sequence[ResumedRun], repeats: int) -> bool:
    verdicts = {run.line["verdict"] for run in runs}
    if verdicts == {"skipped"}:
        return len(runs) == 1
    return len(runs) == repeats and verdicts <= {"passed", "failed"}
