"""The rule `no_drift`: the fitness has not fallen over the runs of the history, at any number of looks.

A gate that compares every night with the same baseline raises a false alarm sooner or later: at a confidence of
95 %, in one of twenty nights. This rule raises one in at most 5 % of histories, however many runs they have.

If nothing changes, each run is equally likely to have any rank among the runs so far, independently of the
earlier ranks. So the rank of each run is a p-value, and the bets of `harness.statistics.betting` on low ranks
keep their level at any number of looks (Vovk, Gammerman and Shafer 2005, "Algorithmic Learning in a Random
World", section 7.1).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import fsum
from pathlib import Path
from typing import Final

from harness.gate.parts import Part
from harness.gate.rules import NothingToJudge
from harness.gate.ruling import Ruling
from harness.report.formatting import plural
from harness.report.history.file import read_history
from harness.report.history.record import RunRecord
from harness.source.document import shown_path
from harness.statistics.betting import Bets

_SEED: Final = 0
_DIGITS: Final = 6
"""Decimals of the scores in a history."""


def no_drift(part: Part, confidence: float, history: Path | None) -> Ruling:
    """Judge the fitness of the scenarios of this part over the whole runs of the history that have all of them.

    Raises:
        NothingToJudge: there is no history, or the run is not the last one of it.
    """
    if history is None:
        raise NothingToJudge("no history is configured", "`history` in [tool.harness] names one")
    scores = {each.label: each.score for each in part.scenarios if each.verdict != "skipped"}
    runs = [run for run in read_history(history) if run.complete and scores.keys() <= run.scenarios.keys()]
    if not scores or not runs or not _is_run(runs[-1], scores):
        where = f"the run is not the last whole one of {shown_path(history)}"
        raise NothingToJudge(where, "`harness run --history FILE` appends it")
    values = [fsum(run.scenarios[label].score for label in scores) / len(scores) for run in runs]
    p = drift_p(values)
    alpha = round(1 - confidence, 9)
    note = f"{plural(len(values), 'run')} of {shown_path(history)}"
    return Ruling("no_drift", part.scope, p, alpha, p > alpha, note=note)


def _is_run(record: RunRecord, scores: dict[str, float]) -> bool:
    return all(abs(record.scenarios[label].score - score) < 10**-_DIGITS for label, score in scores.items())


def drift_p(values: Sequence[float]) -> float:
    """Return the p-value of values that fall, which may be looked at after each of them.

    >>> drift_p([0.8, 0.9] * 10) <= 0.05, drift_p([0.9 - 0.01 * number for number in range(20)]) <= 0.05
    (False, True)
    """
    draw, bets = random.Random(_SEED), Bets()
    rounded = [round(each, _DIGITS) for each in values]
    for number in range(2, len(rounded) + 1):
        so_far = rounded[:number]
        below, equal = sum(each < so_far[-1] for each in so_far), so_far.count(so_far[-1])
        bets.add(1 - 2 * (below + draw.random() * equal) / number)
    return bets.p
