"""The result of a mutant, and the score of several."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from harness.report.encoding import replace
from harness.report.folder_check import refuse_foreign
from harness.report.html.mutation import page
from harness.report.html.page import PAGE

FORMAT: Final = "harness-mutate/1"
_JSON: Final = "mutation.json"
OUTCOMES: Final = ("killed", "timeout", "survived", "no_coverage", "equivalent", "invalid")
"""The outcomes, by their names in files."""


@dataclass(frozen=True)
class Result:
    """The result of a mutant: an item of `mutants` in mutation.json.

    Attributes:
        id, operator, where, diff: those of the mutant.
        outcome: one of `OUTCOMES`.
        killed_by: the scenario that noticed it; None if none did.
        check: the check that failed, or the error with which the scenario could no longer be judged.
        suggestion: of one that nobody noticed, what would notice it: an expectation to paste, or what to provoke.
        by_error: the scenario could no longer be judged.
        scenarios: the scenarios that ran it.
        suggested_for: the scenario that the expectation is for; None if the suggestion is none.
        expect: the expectation as data.
        difference: the first event in which the traces differ, as in `harness compare --json`; None if none does.
        part: the node, or the edge, that it is about; "" for the agent as a whole.
    """

    id: str
    operator: str
    where: str
    diff: str
    outcome: str
    killed_by: str | None = None
    check: str | None = None
    suggestion: str | None = None
    by_error: bool = False
    scenarios: Sequence[str] = ()
    suggested_for: str | None = None
    expect: Mapping[str, Any] | None = None
    difference: Mapping[str, Any] | None = None
    part: str = ""
    manifest: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self) | {"scenarios": list(self.scenarios)}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Result:
        """Return the result that `as_json` returned. Raises TypeError if it is none."""
        known = {each.name for each in fields(cls)}
        return cls(**{key: value for key, value in data.items() if key in known})


def score_of(results: Iterable[Result]) -> float | None:
    """Return the share of the mutants that were noticed, from 0 to 1; None if none counts."""
    counts = counts_of(results)
    noticed = counts["killed"] + counts["timeout"]
    counted = noticed + counts["survived"] + counts["no_coverage"]
    return noticed / counted if counted else None


def counts_of(results: Iterable[Result]) -> dict[str, int]:
    """Return the number of mutants by outcome."""
    found = dict.fromkeys(OUTCOMES, 0)
    for each in results:
        found[each.outcome] += 1
    return found


@dataclass
class Mutation:
    """The results of all mutants.

    Attributes:
        results: in the order of the mutants.
        left_out: the number of mutants that were not drawn, or for which there was no time.
        unusable: the scenarios that do not pass without a mutant, each with the reason.
    """

    results: list[Result] = field(default_factory=list)
    left_out: int = 0
    unusable: dict[str, str] = field(default_factory=dict)
    complete: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return them as mutation.json has them."""
        return {
            "format": FORMAT,
            "score": score_of(self.results),
            **counts_of(self.results),
            "killed_by_error": sum(each.by_error for each in self.results),
            "left_out": self.left_out,
            "complete": self.complete,
            "unusable": self.unusable,
            "mutants": [each.as_json() for each in self.results],
        }


def write_report(folder: Path, mutation: Mutation, shapes: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the results of mutants into a folder: mutation.json, and the page.

    Raises:
        FormatError: it has other files, or cannot be written.
    """
    refuse_foreign(folder)
    text = json.dumps(mutation.as_json(), indent=1, ensure_ascii=False)
    replace(folder / _JSON, f"{text}\n".encode())
    replace(folder / PAGE, page(mutation.as_json(), shapes).encode())
