"""A run as a line of the history: its time, commit and figures, and the verdict of each scenario.

format     "harness-history/1"
time       the time it ended, in UTC: "2026-11-22T17:27:56Z"; null if unknown
commit     the commit that was checked out, or null; likewise `branch`
complete   False if scenarios were left out or the run was ended early; `reason` says why, else null
total      the `_FIGURES` of a group of summary.json, with the `LATENCIES` of its `latency` and
           {input, output, total} of its `tokens`; `unpriced` lists the models that count as 0 in `cost`
scenarios  by id (and variant, in brackets): [verdict, score], followed by [passed, runs] if it was repeated.
           The verdict is the worst of the repeats, the score their mean.
inputs     for each of the scenarios, in their order: the first digits of a digest of the files it depends on, its own
           file, its manifest and its code; "" if unknown. Missing if none is known
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness.report.figures import LATENCIES
from harness.report.repeats import WORST_FIRST, worst
from harness.report.repeats import label as label_of
from harness.report.scenario_runs import read_run
from harness.report.summary import Summary
from harness.units import is_number

_COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_HEADS: Final = "refs/heads/"
_MAX_BYTES: Final = 50_000_000
"""The most bytes read of a file of `.git`; packed-refs has a line for each branch and tag."""


class Revision(NamedTuple):
    """The commit that is checked out, and its branch; None if unknown."""

    commit: str | None = None
    branch: str | None = None


def revision_of(folder: Path) -> Revision:
    """Return the revision of the repository that contains a folder; a detached HEAD has no branch."""
    for at in (folder.resolve(), *folder.resolve().parents):
        if (at / ".git").exists():
            return _revision(_git_folder(at / ".git"))
    return Revision()


def _git_folder(git: Path) -> Path:
    """Return the folder with HEAD. In a work tree or submodule `.git` is a file that names it."""
    named = _text(git).partition("gitdir:")[2].strip() if git.is_file() else ""
    return git.parent / named if named else git


def _revision(git: Path) -> Revision:
    head = _text(git / "HEAD").strip()
    if not head.startswith("ref:"):
        return Revision(_commit(head))
    name = head.removeprefix("ref:").strip()
    if not name.startswith(_HEADS) or ".." in name:
        return Revision()
    shared = git / (_text(git / "commondir").strip() or ".")  # work trees share the branches of the main one
    commit = _commit(_text(shared / name).strip()) or _packed(shared, name)
    return Revision(commit, name.removeprefix(_HEADS))


def _packed(git: Path, name: str) -> str | None:
    for line in _text(git / "packed-refs").splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name:
            return _commit(commit)
    return None


def _commit(text: str) -> str | None:
    return text if _COMMIT.fullmatch(text) else None


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_MAX_BYTES).decode(errors="replace")
    except OSError:
        return ""


FORMAT: Final = "harness-history/1"
_DIGITS: Final = 10
"""Digits of a digest of inputs that are kept."""
_FIGURES: Final = ("runs", "distinct_runs", "scenarios", "passed", "failed", "errors", "skipped", "llm_calls")
_SHARES: Final = ("pass_rate", "fitness")
_TOKENS: Final = ("input", "output", "total")


class Entry(NamedTuple):
    """The result of a scenario in a run. `passed` and `runs` count its repeats, without skipped ones."""

    verdict: str
    score: float
    passed: int
    runs: int

    def as_json(self) -> list[Any]:
        """Return the entry in the form of the line."""
        repeats = [self.passed, self.runs] if self.runs > 1 else []
        return [self.verdict, round(self.score, 6), *repeats]


def read_entry(written: Any) -> Entry:
    """Parse an entry of a line.

    Raises:
        ValueError: it is not valid.
    """
    try:
        return _entry_of(*written)
    except TypeError:  # not a list, or with values of other types
        raise ValueError(_invalid_entry(written)) from None


@lru_cache(maxsize=10_000, typed=True)  # most entries of a history are equal
def _entry_of(*written: Any) -> Entry:
    if len(written) not in (2, 4) or written[0] not in WORST_FIRST:
        raise ValueError(_invalid_entry(written))
    verdict, score, *repeats = written
    counted = repeats or [int(verdict == "passed"), int(verdict != "skipped")]
    if not _is_number(score) or not all(isinstance(count, int) and count >= 0 for count in counted):
        raise ValueError(_invalid_entry(written))
    return Entry(verdict, float(score), *counted)


def _invalid_entry(written: Any) -> str:
    return f"not [verdict, score] or [verdict, score, passed, runs]: {written!s:.60}"


class Verdicts:
    """Collects the results of each scenario from the lines of a run."""

    def __init__(self) -> None:
        self._runs: dict[str, list[tuple[str, float]]] = {}

    def add(self, line: Mapping[str, Any]) -> None:
        """Add a line of results.jsonl."""
        self._runs.setdefault(label_of(line["id"], line["variant"]), []).append(
            (line["verdict"], line["score"] or 0.0)
        )

    def entries(self) -> dict[str, Entry]:
        """Return the entry of each scenario, in the order of the lines."""
        return {label: _entry(runs) for label, runs in self._runs.items()}


def _entry(runs: Iterable[tuple[str, float]]) -> Entry:
    found = [run for run in runs if run[0] != "skipped"]
    verdicts = [verdict for verdict, _ in found]
    score = math.fsum(score for _, score in found) / len(found) if found else 0.0
    return Entry(worst(verdicts or ["skipped"]), score, verdicts.count("passed"), len(found))


class RunRecord(NamedTuple):
    """A run of the history. Its fields are those of the line; `inputs` is by scenario, where it is known."""

    total: Mapping[str, Any]
    scenarios: Mapping[str, Entry]
    time: str | None = None
    commit: str | None = None
    branch: str | None = None
    complete: bool = True
    reason: str | None = None
    inputs: Mapping[str, str] = {}

    @classmethod
    def of(
        cls,
        summary: Mapping[str, Any],
        verdicts: Verdicts,
        time: str | None,
        revision: Revision,
        inputs: Mapping[str, str] | None = None,
    ) -> RunRecord:
        """Return the record of a run; `inputs` has the digest of the inputs of each scenario, where it is known."""
        total = summary["total"]
        figures = {name: total[name] for name in (*_FIGURES, *_SHARES, "pass_rate_interval")} | {
            "latency": {each.path[1]: each.of(total) for each in LATENCIES},
            "tokens": {name: total["tokens"][name] for name in _TOKENS},
            "cost": total["cost"],
            "unpriced": [
                name for name, model in total.get("models", {}).items() if model.get("cost", 0) is None
            ],
        }
        complete, reason = summary["complete"], summary["reason"]
        entries = verdicts.entries()
        known = {name: digest[:_DIGITS] for name, digest in (inputs or {}).items() if name in entries}
        return cls(figures, entries, time, revision.commit, revision.branch, complete, reason or None, known)

    def as_json(self) -> dict[str, Any]:
        """Return the line of the history, as a mapping."""
        return {
            "format": FORMAT,
            "time": self.time,
            "commit": self.commit,
            "branch": self.branch,
            "complete": self.complete,
            "reason": self.reason,
            "total": self.total,
            "scenarios": {label: entry.as_json() for label, entry in self.scenarios.items()},
            **({"inputs": [self.inputs.get(label, "") for label in self.scenarios]} if self.inputs else {}),
        }

    @classmethod
    def read(cls, line: Any) -> RunRecord:
        """Parse a line.

        Raises:
            ValueError: the line has another format, or lacks a field.
        """
        if not isinstance(line, dict) or line.get("format") != FORMAT:
            found = line.get("format") if isinstance(line, dict) else line
            raise ValueError(f"not a line of the format {FORMAT}: found {str(found)[:60]!r}")
        texts = {name: line.get(name) for name in ("time", "commit", "branch", "reason")}
        for name, text in texts.items():
            if text is not None and not isinstance(text, str):
                raise ValueError(f"'{name}' is not text: {text!r:.60}")
        if not isinstance(line.get("complete"), bool):
            raise ValueError(f"'complete' is neither true nor false: {line.get('complete')!r:.60}")
        scenarios = line.get("scenarios")
        if not isinstance(scenarios, dict):
            raise ValueError(f"'scenarios' is not a mapping: {scenarios!r:.60}")
        inputs = line.get("inputs", [""] * len(scenarios))
        if not isinstance(inputs, list) or [*map(type, inputs)] != [str] * len(scenarios):
            raise ValueError(f"'inputs' is not a list with a text for each scenario: {inputs!r:.60}")
        return cls(
            _total(line.get("total")),
            {label: _read_entry(label, entry) for label, entry in scenarios.items()},
            complete=line["complete"],
            inputs={label: text for label, text in zip(scenarios, inputs, strict=True) if text},
            **texts,
        )


def _read_entry(label: str, entry: Any) -> Entry:
    try:
        return read_entry(entry)
    except ValueError as error:
        raise ValueError(f"scenario {label[:100]!r}: {error}") from None


def _total(total: Any) -> Mapping[str, Any]:
    """Return the figures of a line, after checking them.

    Raises:
        ValueError: one is missing, or is no number.
    """
    if not isinstance(total, dict):
        raise ValueError(f"'total' is not a mapping: {total!r:.60}")
    parts: dict[str, dict[str, Any]] = {}
    for name in ("latency", "tokens"):
        part = total.get(name)
        if not isinstance(part, dict):
            raise ValueError(f"'total.{name}' is not a mapping: {part!r:.60}")
        parts[name] = part
    figures = {name: total.get(name) for name in (*_FIGURES, "cost")}
    figures |= {f"tokens.{name}": parts["tokens"].get(name) for name in _TOKENS}
    may_lack = {name: total.get(name) for name in _SHARES}
    may_lack |= {
        f"latency.{name}": parts["latency"].get(name) for _, name in (each.path for each in LATENCIES)
    }
    for name, figure in (figures | may_lack).items():
        if not _is_number(figure) and not (figure is None and name in may_lack):
            raise ValueError(f"'total.{name}' is not a number: {figure!r:.60}")
    return total


def _is_number(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


def record_of(path: Path) -> RunRecord:
    """Return the record of the run in a results folder or results file.

    Raises:
        FormatError: its results cannot be read.
    """
    sums, verdicts = Summary(), Verdicts()
    run = read_run(path, [sums.add, verdicts.add])
    return RunRecord.of(sums.as_json(run.incomplete), verdicts, None, Revision())
