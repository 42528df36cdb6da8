"""The expectation that would have noticed a mutant: it holds for the unchanged run, and fails with the mutant.

what differs between both runs ──▶ candidates, the most telling first ──▶ each is run with both ──▶ the first
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from harness.authoring.addition import is_written, merged
from harness.authoring.differing import candidates
from harness.authoring.writer import mapping_text
from harness.errors import FormatError
from harness.mutation.execution import Chain, Run
from harness.mutation.mutant import Mutant
from harness.mutation.unchanged import Unchanged
from harness.report.encoding import encode
from harness.report.traces import unpack_trace
from harness.scenario.checks.finding import as_list
from harness.scenario.document_expect import CHECKS, Expect
from harness.scenario.model import Expectations, Scenario
from harness.scenario.outcome import Observation
from harness.secrets.encodings import has_placeholder
from harness.source.document import parse
from harness.source.models import validate

_MOST_TRIED: Final = 12
_MOST_SCENARIOS: Final = 3
_OTHER_SEED: Final = 7919


@dataclass(frozen=True)
class Suggestion:
    """An expectation of a scenario that would have noticed a mutant. `expect` has the keys to add or replace."""

    scenario: Scenario
    expect: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The keys as YAML, to paste below `expect`."""
        return mapping_text(self.expect)


def suggestion(
    mutant: Mutant,
    differing: Sequence[tuple[Unchanged, Sequence[Run]]],
    with_mutant: Callable[[Scenario, Mutant, float], Scenario],
) -> Chain[Suggestion | None]:
    """Find an expectation that notices a mutant; None if there is none.

    Args:
        mutant: the mutant.
        differing: the scenarios in which it makes a difference, with its runs.
        with_mutant: returns a scenario with the mutant, which takes at most so many real seconds.
    """
    own = [pair for pair in differing if is_written(pair[0].scenario.file, pair[0].scenario.name)]
    for each, made in own[:_MOST_SCENARIOS]:
        scenario, tried = each.scenario.whole(), 0
        before, after = each.runs[0].outcome, made[0].outcome
        events = each.events, unpack_trace(made[0].trace)
        for expect in candidates(before.observed, after.observed, events, scenario.expect.values):
            if tried == _MOST_TRIED:
                break
            if has_placeholder(encode(expect)) or not _is_valid(expect):
                continue
            if not _tells(expect, before.observed, after.observed):
                continue
            tried += 1
            stricter = with_expectations(scenario, expect)
            noticed = yield with_mutant(stricter, mutant, each.real_timeout_s)
            if all(run.outcome.passed for run in noticed):
                continue
            held = yield stricter
            if not all(run.outcome.passed for run in held):
                continue
            if before.seeded:
                other = yield replace(stricter, seed=scenario.seed + _OTHER_SEED)
                if not all(run.outcome.passed for run in other):
                    continue
            return Suggestion(scenario, expect)
    return None


def with_expectations(scenario: Scenario, expect: Mapping[str, Any]) -> Scenario:
    """Return a scenario with more expectations."""
    scenario = scenario.whole()
    values = merged(scenario.expect.values, expect)
    kept = {key: span for key, span in scenario.expect.spans.items() if key.partition("[")[0] not in expect}
    spans = kept | dict.fromkeys(expect, scenario.span)
    for key in expect:
        if CHECKS[key].items:
            spans |= {f"{key}[{at}]": scenario.span for at in range(len(as_list(values[key])))}
    return replace(
        scenario, expect=Expectations(values, scenario.expect.weights, spans, scenario.expect.prompts)
    )


def _is_valid(expect: Mapping[str, Any]) -> bool:
    try:
        validate(
            Expect, parse(encode(expect), file="expect", json=True, error=FormatError), error=FormatError
        )
    except FormatError:
        return False
    return True


def _tells(expect: Mapping[str, Any], before: Observation, after: Observation) -> bool:
    """True if expectations hold for one run and not for another, as far as that can be told without running."""
    ((key, value),) = expect.items()
    check = CHECKS[key]
    if check.items or check.option:
        return True
    try:
        findings = [check.function(value, observed) for observed in (before, after)]
    except Exception:  # it cannot be evaluated
        return False
    return [found is None or found.score >= 1 for found in findings] == [True, False]
