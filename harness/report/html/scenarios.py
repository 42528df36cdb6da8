"""The scenarios of a run, as the page lists and shows them: a row each, and behind it the details of its runs."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness.report.commands import rerun_text, trace_text
from harness.report.failure import difference
from harness.report.repeats import Key, Line
from harness.report.verdicts import NOT_PASSED, worst

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
"""Fields of a line that the row has, or the manifest."""
_DIFF_LINES: Final = 200
_CONTEXT: Final = 3


@dataclass(frozen=True, slots=True)
class Run:
    """A run in the row of its scenario; `number` is the position of its line in results.jsonl."""

    number: int
    repeat: int
    verdict: str
    score: float
    latency: float
    tokens: int
    cost: float

    @classmethod
    def of(cls, number: int, line: Line) -> Run:
        """The run of a line."""
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
    """A scenario: what is the same in all its runs, and the runs."""

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
        """What tells it from others."""
        return self.id, self.variant or ""

    @property
    def verdict(self) -> str:
        """The worst verdict of its runs; a skipped run says less than any other."""
        return worst(run.verdict for run in self.runs)

    @property
    def score(self) -> float:
        """The mean of its runs."""
        return math.fsum(run.score for run in self.runs) / len(self.runs)

    @property
    def latency(self) -> float:
        """The longest of its runs."""
        return max(run.latency for run in self.runs)

    def add(self, number: int, line: Line) -> None:
        """Add a run. Cause and path are those of the first run that did not pass, or else of the first."""
        if line["verdict"] in NOT_PASSED and not self.cause:
            self.cause = _cause(line)
            self.fault = line.get("fault", "")
            self.path = line["path"]
        if not self.runs:
            self.path = line["path"]
        self.runs.append(Run.of(number, line))

    def as_json(self, manifest: str) -> dict[str, Any]:
        """The row as the page has it. `change` is added where there is a baseline."""
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
    """The cause on one line, also of results that were written before lines had one."""
    if line.get("cause"):
        return str(line["cause"])
    if line["error"]:
        return f"{line['error']['type']}: {line['error']['message']}".splitlines()[0]
    return (
        ", ".join(check["name"] for check in line["checks"] if not check["passed"]) or "could not be judged"
    )


class Rows:
    """Collects the scenarios of a run, line by line, in their order."""

    def __init__(self) -> None:
        self._rows: dict[Key, Row] = {}

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: Key) -> Row | None:
        """The row of this id and variant."""
        return self._rows.get(key)

    def add(self, number: int, line: Line) -> Row:
        """Add the run of a line, and give the row it belongs to."""
        key = line["id"], line["variant"] or ""
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = Row(
                line["id"], line["variant"], line["scenario"], line["suite"], line["dialect"],
                line["tags"], (line["manifest"], line["agent"] or ""),
            )  # fmt: skip
        row.add(number, line)
        return row

    @classmethod
    def of(cls, lines: Iterable[Line]) -> Rows:
        """The rows of these lines."""
        rows = cls()
        for number, line in enumerate(lines):
            rows.add(number, line)
        return rows


def details(line: Line) -> dict[str, Any]:
    """What the page of a run shows beside its row: the rest of its line, and of each failed check what differs.

    `rerun` and `tell` are the commands that run it again, and that print its trace ("" where there is none).
    """
    kept = {name: value for name, value in line.items() if name not in _ELSEWHERE}
    rerun = rerun_text(line["id"], line["seed"], line["repeat"], line["variant"])
    tell = trace_text(line["id"], line["repeat"], line["variant"]) if line.get("trace") else ""
    return {**kept, "checks": [_check(check) for check in line["checks"]], "rerun": rerun, "tell": tell}


def _check(check: Mapping[str, Any]) -> dict[str, Any]:
    if check["passed"]:
        return {
            name: value for name, value in check.items() if name != "actual" or value != check["expected"]
        }
    message = check["message"] or difference(check["expected"], check["actual"])
    return {"where": None, **check, "message": message, "diff": diff(check["expected"], check["actual"])}


def diff(expected: Any, actual: Any) -> list[str]:
    """What differs, line by line: `-` is expected, `+` is there, ` ` both; empty where there is one line of each."""
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
