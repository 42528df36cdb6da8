"""The scenarios of a run for the page: a row each, with the details of its runs."""

from __future__ import annotations

import base64
import difflib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.report.encoding import encode
from harness.report.failure import difference, rerun_text, trace_text
from harness.report.repeats import NOT_PASSED, Key, Line, worst

_ELSEWHERE: Final = frozenset(
    {
        "format",
        "suite",
        "scenario",
        "id",
        "manifest",
        "dialect",
        "agent",
        "variant",
        "tags",
        "passed",
        "shape",
    }
)
"""Fields of a line that the row or the manifest already has."""
_DIFF_LINES: Final = 200
_CONTEXT: Final = 3


@dataclass(frozen=True, slots=True)
class Run:
    """A run in the row of its scenario. `number` is the index of its line in results.jsonl."""

    number: int
    repeat: int
    verdict: str
    score: float
    latency: float
    tokens: int
    cost: float

    @classmethod
    def of(cls, number: int, line: Line) -> Run:
        """Return the run of a line."""
        usage = line["usage"]
        return cls(
            number,
            line["repeat"],
            line["verdict"],
            line["score"] or 0.0,
            float(line["latency"]["total"] or 0.0),
            (usage["input_tokens"] or 0) + (usage["output_tokens"] or 0),
            usage["cost"] or 0.0,
        )


@dataclass(slots=True)
class Row:
    """A scenario: the fields common to its runs, and the runs."""

    id: str
    variant: str | None
    name: str
    suite: str
    dialect: str
    tags: Sequence[str]
    manifest: Key
    cause: str = ""
    fault: str = ""
    path: Sequence[Any] = ()
    runs: list[Run] = field(default_factory=list)

    @property
    def key(self) -> Key:
        """The id and the variant ("" for none), which identify it within a run."""
        return self.id, self.variant or ""

    @property
    def verdict(self) -> str:
        """The worst verdict of its runs; `skipped` only if all were."""
        return worst(run.verdict for run in self.runs)

    @property
    def score(self) -> float:
        """The mean score of its runs."""
        return math.fsum(run.score for run in self.runs) / len(self.runs)

    @property
    def latency(self) -> float:
        """The longest latency of its runs, in virtual seconds."""
        return max(run.latency for run in self.runs)

    def add(self, number: int, line: Line) -> None:
        """Add a run. Cause and path are of the first run that did not pass, or else of the first run."""
        if line["verdict"] in NOT_PASSED and not self.cause:
            self.cause = _cause(line)
            self.fault = line.get("fault", "")
            self.path = line["path"]
        if not self.runs:
            self.path = line["path"]
        self.runs.append(Run.of(number, line))

    def as_json(self, manifest: str) -> dict[str, Any]:
        """Return the row in the form of the page. The page adds `change` if there is a baseline."""
        return {
            "id": self.id,
            "variant": self.variant,
            "name": self.name,
            "suite": self.suite,
            "manifest": manifest,
            "dialect": self.dialect,
            "tags": list(self.tags),
            "verdict": self.verdict,
            "score": self.score,
            "latency": self.latency,
            "tokens": sum(run.tokens for run in self.runs),
            "cost": math.fsum(run.cost for run in self.runs),
            "cause": self.cause,
            "runs": [[run.number, run.repeat, run.verdict, run.score, run.latency] for run in self.runs],
        }


def _cause(line: Line) -> str:
    """Return the cause on one line. It is derived for old results, whose lines have none."""
    if line.get("cause"):
        return str(line["cause"])
    if line["error"]:
        return f"{line['error']['type']}: {line['error']['message']}".splitlines()[0]
    return (
        ", ".join(check["name"] for check in line["checks"] if not check["passed"]) or "could not be judged"
    )


class Rows:
    """Collects the scenarios of a run from its lines, in order."""

    def __init__(self) -> None:
        self._rows: dict[Key, Row] = {}

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: Key) -> Row | None:
        """Return the row with this id and variant."""
        return self._rows.get(key)

    def add(self, number: int, line: Line) -> Row:
        """Add the run of a line, and return its row."""
        key = line["id"], line["variant"] or ""
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = Row(
                line["id"], line["variant"], line["scenario"], line["suite"], line["dialect"],
                line["tags"], (line["manifest"], line["agent"] or ""),
            )  # fmt: skip
        row.add(number, line)
        return row


def details_of(line: Line) -> str:
    """Return the details of a run that the row lacks, as JSON: the rest of its line, with diffs of the failed checks.

    `rerun` and `tell` are the commands that run it again and that print its trace ("" if it has none).
    """
    kept = {name: value for name, value in line.items() if name not in _ELSEWHERE}
    rerun = rerun_text(line["id"], line["seed"], line["repeat"], line["variant"])
    tell = trace_text(line["id"], line["repeat"], line["variant"]) if line.get("trace") else ""
    checks = [_check(check) for check in line["checks"]]
    return encode({**kept, "checks": checks, "rerun": rerun, "tell": tell})


def _check(check: Mapping[str, Any]) -> dict[str, Any]:
    if check["passed"]:
        return {
            name: value for name, value in check.items() if name != "actual" or value != check["expected"]
        }
    message = check["message"] or difference(check["expected"], check["actual"])
    return {"where": None, **check, "message": message, "diff": diff(check["expected"], check["actual"])}


def diff(expected: Any, actual: Any) -> list[str]:
    """Return the lines of a unified diff: `-` expected, `+` actual; empty if both values have one line."""
    before, after = _lines(expected), _lines(actual)
    if len(before) <= 1 and len(after) <= 1:
        return []
    compared = difflib.unified_diff(before[:_DIFF_LINES], after[:_DIFF_LINES], n=_CONTEXT, lineterm="")
    found = list(compared)[2:]
    rest = max(len(before), len(after)) - _DIFF_LINES
    return [*found, *([f"@@ {rest} more lines @@"] if rest > 0 else [])]


def _lines(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.splitlines()
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True).splitlines()


Listed = Mapping[str, Any]
"""A row in the form of the page."""

_MAX_CHECKS: Final = 3
_MAX_MEMBERS: Final = 12


def by_cause(rows: Sequence[Listed]) -> list[list[Listed]]:
    """Group the scenarios that did not pass by their fault: new failures first, then the largest groups."""
    groups: dict[str, list[Listed]] = {}
    for at, row in enumerate(rows):
        if row["verdict"] in NOT_PASSED:
            groups.setdefault(row["fault"] or str(at), []).append(row)
    return sorted(groups.values(), key=lambda group: (not _new(group), -len(group)))


def cause(group: Sequence[Listed], texts: Mapping[int, str]) -> dict[str, Any]:
    """Return a cause in the form of the page.

    {rows: some of the scenarios, count, more, first, new: number of new failures, error, where, rerun, tell, checks,
    more_checks}. `texts` are the details of runs, as JSON.
    """
    first = group[0]
    number = next(run[0] for run in first["runs"] if run[2] in NOT_PASSED)
    found = json.loads(texts.get(number, "{}"))
    failed = [check for check in found.get("checks", ()) if not check["passed"]]
    checks = [] if first["fault"] else failed[:_MAX_CHECKS]
    return {
        "rows": group[:_MAX_MEMBERS],
        "count": len(group),
        "more": max(0, len(group) - _MAX_MEMBERS),
        "first": first,
        "new": _new(group),
        "error": found.get("error"),
        "where": found.get("where"),
        "rerun": found.get("rerun"),
        "tell": found.get("tell"),
        "checks": checks,
        "more_checks": 0 if first["fault"] else len(failed) - len(checks),
    }


def _new(group: Sequence[Listed]) -> int:
    return sum(row.get("change") == "new" for row in group)


def trace_of(report: Path, line: Line) -> str:
    """Return the trace file of a run (gzip) in base64; "" if there is none."""
    if not line.get("trace"):
        return ""
    try:
        return base64.b64encode((report / line["trace"]).read_bytes()).decode()
    except OSError:
        return ""


class EmbeddedTexts:
    """Texts of runs up to a total length; those of runs that did not pass have priority.

    At most twice the limit is held in memory.
    """

    def __init__(self, most: int, text_of: Callable[[Line], str]) -> None:
        self._most, self._text_of = most, text_of
        self._kept: dict[bool, dict[int, str]] = {True: {}, False: {}}
        self._size = {True: 0, False: 0}
        self._full = {True: False, False: False}
        self.left_out = 0

    def add(self, number: int, line: Line, *, first: bool) -> None:
        """Keep the text of a line if there is room. `first` gives it priority."""
        if not self._full[first]:
            text = self._text_of(line)
            if not text:
                return
            self._size[first] += len(text)
            self._full[first] = self._size[first] > self._most
        if self._full[first]:
            self.left_out += 1
        else:
            self._kept[first][number] = text

    def texts(self) -> dict[int, str]:
        """Return the texts that fit, by line number."""
        chosen, size = dict(self._kept[True]), sum(map(len, self._kept[True].values()))
        for number, text in self._kept[False].items():
            size += len(text)
            if size > self._most:
                self.left_out += len(self._kept[True]) + len(self._kept[False]) - len(chosen)
                break
            chosen[number] = text
        return dict(sorted(chosen.items()))
