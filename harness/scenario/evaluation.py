"""Evaluation of a run: computes its checks, score, verdict and coverage, and returns its `Outcome`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from harness.dialects.registry import dialect_of
from harness.draw.sketch import nodes_of
from harness.errors import HarnessError, Problem, SourceError, Span
from harness.graph import observe
from harness.graph.model import ANY_NODE, GOTO, Graph
from harness.graph.names import flattened
from harness.graph.narration import kinds_of
from harness.graph.to_json import to_json
from harness.scenario.believed import unfailing
from harness.scenario.checks.run import run_checks
from harness.scenario.model import MISSING, Expectations, Scenario, absent_variables
from harness.scenario.outcome import CheckResult, Observation, Outcome, RunResult, error_json, refused_result
from harness.scenario.score import expects_value, judgement_of, latency_penalty
from harness.source.document import shown_path
from harness.world.network import refused_attempts


def expectations_digest(scenario: Scenario, without_secrets: Callable[[Any], Any] | None) -> str:
    """Return 12 hexadecimal digits that change when anything expected changes, in any turn, or the `pass_score`.

    Secrets are removed first, so that the digest is the same on every machine.
    """
    expected = [
        scenario.pass_score,
        scenario.timeout_s,
        scenario.allow_unused,
        *map(_canonical_expectations, scenario.expectations),
    ]
    clean = without_secrets(expected) if without_secrets else expected
    return sha256(_canonical(clean).encode()).hexdigest()[:12]


_canonical: Final = json.JSONEncoder(sort_keys=True, default=to_json).encode


def _canonical_expectations(expect: Expectations) -> list[Any]:
    return [dict(expect.values), dict(expect.weights), {str(at): text for at, text in expect.prompts.items()}]


@lru_cache(maxsize=256)
def graph_shape(graph: Graph, manifest: str) -> dict[str, Any]:
    """Return {of, nodes, edges, branches, kinds, lines} of a graph. The result is cached and must not be modified.

    `of` identifies the graph, if manifests of several forms may name it. `kinds` is the caption of each node in
    pictures. `lines` has the location of each node, edge and branch: the number of the line in the manifest,
    `file:line` in another file, or None.
    """
    graph = flattened(graph)
    shape = {part: sorted(found, key=repr) for part, found in observe.possible_coverage(graph).items()}
    kinds = dict(nodes_of(graph))
    edges = [*graph.edges, *observe.implied_ends(graph)]
    places: dict[str, dict[Any, Span | None]] = {
        "nodes": {node.name: node.span for node in graph.nodes},
        "edges": {(edge.source, edge.target): edge.span for edge in reversed(edges)},
        "branches": {
            **{observe.branch(node.name, ANY_NODE, GOTO): node.span for node in graph.nodes},
            **{observe.branch(e.source, e.target, e.label): e.span for e in reversed(edges)},
        },
    }
    lines = {
        part: [_place(places[part].get(tuple(item) if part == "edges" else item), manifest) for item in items]
        for part, items in shape.items()
    }
    of = {"of": graph.identity} if graph.identity else {}
    return {**of, **shape, "kinds": [kinds[name] for name in shape["nodes"]], "lines": lines}


def _place(span: Span | None, manifest: str) -> int | str | None:
    if span is None:
        return None
    file = shown_path(span.file)
    return span.line if file == manifest else f"{file}:{span.line}"


def refused(scenario: Scenario, error: SourceError, recorded: Mapping[str, str]) -> RunResult:
    """Return the result of a run whose manifest cannot be loaded.

    If the path of the scenario file leads nowhere, no manifest was refused: not even `status: invalid` expects that.
    """
    result = refused_result(error)
    result.observed.warnings += [each.one_line for each in absent_variables(scenario, recorded)]
    result.observed.warnings += refused_attempts()  # by a library that raised an error of its own
    if expects_value(scenario.expect, "status", "invalid"):
        result.observed.warnings += [each.one_line for each in scenario.warnings]
        if any(p.code == "missing-file" and p.span == scenario.manifest_span for p in error.problems[:1]):
            result.observed.status = "failed"
    return result


def skipped_outcome(scenario: Scenario) -> Outcome:
    """Return the outcome of a scenario that is skipped."""
    observed = Observation(status="skipped")
    return _outcome(scenario, 0, observed, None, verdict="skipped", reason=scenario.skip or "")


def unjudged_outcome(scenario: Scenario, repeat: int, error: HarnessError, wall_s: float) -> Outcome:
    """Return the outcome of a run that was aborted from outside, for example by `real_timeout`.

    No check is made, since a check may be what did not end.
    """
    node = getattr(error, "node", None)
    observed = Observation(status="failed", error=error_json(error, node))
    return _outcome(scenario, repeat, observed, None, verdict="error", wall=wall_s)


def _outcome(
    scenario: Scenario, repeat: int, observed: Observation, graph: Graph | None, **judged: Any
) -> Outcome:
    """Return the outcome of a run with what was `judged`. The score is 0 unless it is given."""
    return Outcome(
        suite=shown_path(scenario.file),
        scenario=scenario.name,
        manifest=shown_path(scenario.manifests[0]),
        dialect=graph.dialect if graph is not None else _dialect(scenario),
        agent=graph.name if graph is not None else scenario.agent or "",
        observed=observed,
        weight=scenario.weight,
        tags=list(scenario.tags),
        repeat=repeat,
        seed=scenario.seed + repeat,
        span=scenario.span,
        variant=scenario.variant or None,
        **{"score": 0.0, **judged},
    )


def _dialect(scenario: Scenario) -> str:
    """Return the dialect of a scenario that did not run: the one it names, or the detected one."""
    try:
        return scenario.dialect or dialect_of(scenario.manifests[0]).name
    except SourceError:
        return "unknown"


def outcome_of(scenario: Scenario, repeat: int, result: RunResult, wall_s: float) -> Outcome:
    """Return the outcome of one run: its checks, score and verdict."""
    checks, of_turns = _checks(scenario, result)
    judgement = judgement_of(
        checks,
        result.observed,
        scenario.expect,
        timeout_s=scenario.timeout_s,
        pass_score=scenario.pass_score,
        turns=of_turns,
    )
    outcome = _outcome(
        scenario,
        repeat,
        result.observed,
        result.graph,
        verdict=judgement.verdict,
        score=judgement.score,
        latency_penalty=judgement.latency_penalty,
        checks=checks,
        too_late=_too_late(scenario, [(result.observed, scenario.expect), *of_turns]),
        wall=wall_s,
        expectations=expectations_digest(scenario, result.without_secrets),
        varies=result.varies,
        seeded=result.seeded,
        now=result.now,
        narration=result.narration,
    )
    if result.graph is not None:
        outcome.shape = graph_shape(result.graph, outcome.manifest)
        outcome.kinds = kinds_of(result.graph)
    if result.trace is not None:
        nested = result.graph is not None and result.graph.draws_inside
        outcome.coverage = observe.coverage(result.trace.events, nested=nested)
        outcome.digest = result.trace.digest(result.without_secrets)
    if outcome.passed:
        of_run = [*of_turns, (result.observed, scenario.expect)]
        outcome.observed.warnings += [each.one_line for each in unfailing(scenario, result.graph, of_run)]
    if scenario.xfail is not None:
        _apply_xfail(outcome, scenario.xfail, scenario.span)
    return outcome


def _too_late(scenario: Scenario, parts: Sequence[tuple[Observation, Expectations]]) -> list[CheckResult]:
    """Return the exceeded bounds of `latency.total`: that of the whole run, and those of its turns."""
    found = []
    for turn, (observed, expect) in enumerate(parts):
        if penalty := latency_penalty(observed, expect, scenario.timeout_s):
            name, span = (
                f"turn {turn}: latency.total" if turn else "latency.total",
                expect.spans.get("latency"),
            )
            bound, total = expect.values["latency"]["total"], observed.latency["total"]
            message = f"expected at most {bound:.10g} s, was {total:.10g} s"
            found.append(CheckResult(name, False, 1 - penalty, 0.0, bound, total, message, span))
    return found


def _apply_xfail(outcome: Outcome, reason: str, span: Span) -> None:
    """Apply `xfail`: report a run that did not pass as skipped, and warn if it passed or could not be judged."""
    how = {"passed": "passed", "error": "could not be judged"}.get(outcome.verdict)
    if how is not None:
        why = _why_unjudged(outcome) if outcome.verdict == "error" else ""
        text = f"it was expected to fail ({reason}), and {how}{why}"
        outcome.observed.warnings.append(Problem("untried", text, span).one_line)
    if outcome.verdict != "passed":
        outcome.verdict, outcome.reason = "skipped", f"expected to fail: {reason}"


def _why_unjudged(outcome: Outcome) -> str:
    if outcome.observed.error is not None:
        return f": {outcome.observed.error['message']}"
    return next((f": {check.message}" for check in outcome.checks if check.broken), "")


def dead_worker_outcomes(scenario: Scenario, error: HarnessError, first: int = 0) -> Iterator[Outcome]:
    """Yield an outcome for each repeat, from number `first` on, of a scenario whose process dead_worker_outcomes."""
    for repeat in range(first, scenario.repeat):
        yield unjudged_outcome(scenario, repeat, error, 0.0)


def _checks(
    scenario: Scenario, result: RunResult
) -> tuple[list[CheckResult], list[tuple[Observation, Expectations]]]:
    """Return all checks, with those of turns named `turn 1: path` and so on, and the observation of each turn."""
    if not scenario.conversation:
        return run_checks(scenario.expect, result.observed, allow_unused=scenario.allow_unused), []
    checks: list[CheckResult] = []
    of_turns = []
    status: Any = "completed"
    for number, turn in enumerate(scenario.turns):
        following = scenario.turns[number + 1 : number + 2]
        status = "interrupted" if following and following[0].resume is not MISSING else "completed"
        expect = turn.expect or Expectations()
        observed = result.turns[number] if number < len(result.turns) else Observation(status="skipped")
        results = run_checks(expect, observed, allow_unused=True, default_status=status)
        checks += [replace(check, name=f"turn {number + 1}: {check.name}") for check in results]
        of_turns.append((observed, expect))
        status = expect.values.get("status", status)
    checks += run_checks(
        scenario.expect, result.observed, allow_unused=scenario.allow_unused, default_status=status
    )
    return checks, of_turns
