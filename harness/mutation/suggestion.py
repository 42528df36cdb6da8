"""The expectation that would have noticed a mutant: it holds for the unchanged runs, and fails with the mutant.

what differs between both runs ──▶ candidates, the most telling first ──▶ those that tell both runs apart
──▶ of a row of `cases`, those that hold in all rows ──▶ the first that two runs confirm
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from harness.authoring.addition import Written, for_all_rows, merged, written
from harness.authoring.expected import candidates
from harness.mutation.execution import Chain, Run
from harness.mutation.unchanged import Unchanged
from harness.report.encoding import encode
from harness.scenario.cases import filled
from harness.scenario.checks.run import run_checks
from harness.scenario.document_expect import CHECKS
from harness.scenario.model import Expectations, Scenario
from harness.scenario.outcome import Observation
from harness.secrets.encodings import has_placeholder
from harness.source.document import shown_path

_MOST_TRIED: Final = 12
_MOST_SCENARIOS: Final = 3
_OTHER_SEED: Final = 7919


def suggestion(
    differing: Sequence[tuple[Unchanged, Sequence[Run]]],
    runs: Mapping[int, Unchanged],
    with_mutant: Callable[[Scenario], Scenario],
) -> Chain[tuple[str, Mapping[str, Any]] | None]:
    """Find an expectation that notices a mutant; None if there is none.

    Returned are `FILE::NAME` of the scenario that it is for, which has the table of rows, and the keys to add.

    Args:
        differing: the scenarios in which it makes a difference, with its runs.
        runs: the unchanged runs of all scenarios.
        with_mutant: returns a scenario with the mutant.
    """
    own = [(of, *pair) for pair in differing if (of := written(pair[0].scenario)) is not None]
    for of, each, made in own[:_MOST_SCENARIOS]:
        scenario = each.scenario.whole()
        for expect, told in islice(_telling(each, made, of, runs), _MOST_TRIED):
            stricter = with_expectations(scenario, expect)
            noticed = not _passed((yield with_mutant(stricter)))
            for seed in (0, _OTHER_SEED) if each.runs[0].outcome.seeded else (0,):
                noticed = noticed and _passed((yield replace(stricter, seed=scenario.seed + seed)))
            if noticed:
                return f"{shown_path(scenario.file)}::{of.name}", told
    return None


def _passed(runs: Sequence[Run]) -> bool:
    return all(run.outcome.passed for run in runs)


def _telling(
    each: Unchanged, made: Sequence[Run], of: Written, runs: Mapping[int, Unchanged]
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield expectations that tell an unchanged run from one with a mutant: as they are, and as the file has them."""
    before, after = each.runs[0].observed, made[0].observed
    for expect in candidates(before, after, (each.runs[0].events, made[0].events), _given(each)):
        is_whole = not has_placeholder(encode(expect))
        if is_whole and _holds(expect, _given(each), before) and not _holds(expect, _given(each), after):
            told = expect if not of.rows else next(_of_rows(expect, each, of, runs), None)
            yield from [(expect, told)] if told is not None else []


def _of_rows(
    expect: Mapping[str, Any], each: Unchanged, of: Written, runs: Mapping[int, Unchanged]
) -> Iterator[Mapping[str, Any]]:
    """Yield an expectation of a row as one that all rows of its table fulfil; none if one of them did not run."""
    rows = {
        one.scenario.name: one
        for one in runs.values()
        if one.scenario.file == each.scenario.file and one.judges
    }
    if of.rows.keys() <= rows.keys():
        for told in for_all_rows(expect, of.rows[each.scenario.name], [*of.rows.values()]):
            if all(
                _holds(filled(told, case), _given(rows[name]), run.observed)
                for name, case in of.rows.items()
                for run in rows[name].runs
            ):
                yield told


def _given(each: Unchanged) -> Mapping[str, Any]:
    return each.scenario.whole().expect.values


def with_expectations(scenario: Scenario, expect: Mapping[str, Any]) -> Scenario:
    """Return a scenario with more expectations."""
    old = scenario.expect
    kept = {key: span for key, span in old.spans.items() if key.partition("[")[0] not in expect}
    spans = kept | dict.fromkeys(expect, scenario.span)
    return replace(scenario, expect=replace(old, values=merged(old.values, expect), spans=spans))


def _holds(expect: Mapping[str, Any], given: Mapping[str, Any], observed: Observation) -> bool:
    """True if expectations, added to those that are given, hold for a run."""
    values = merged(given, expect)
    options = {CHECKS[key].option for key in expect}
    checked = Expectations({key: value for key, value in values.items() if key in expect or key in options})
    results = run_checks(checked, observed, allow_unused=True, default_status=observed.status)
    return all(result.passed for result in results)
