"""The trial of a mutant: the scenarios that reached its part run, until one of them notices it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Final

from harness.authoring.writer import mapping_text
from harness.dialects.load import load_graph
from harness.errors import SourceError
from harness.graph.model import Graph
from harness.graph.observe import implied_ends
from harness.mutation.execution import Chain, Run
from harness.mutation.mutant import Mutant
from harness.mutation.result import Result
from harness.mutation.suggestion import suggestion
from harness.mutation.unchanged import Unchanged
from harness.report.compare.first_difference import first_difference
from harness.scenario.app_process import concerns
from harness.scenario.model import Scenario, Variation, load_request
from harness.settings import Projects

_TIMEOUT = "real-timeout"


def with_mutant(scenario: Scenario, mutant: Mutant, real_timeout_s: float) -> Scenario:
    """Return a scenario whose agent has a mutant."""
    # Recordings are those of the unchanged agent.
    variation = Variation(
        mutant.id, mutant.changes, is_baseline=True, changes_graph=True, real_timeout_s=real_timeout_s
    )
    return replace(scenario, variation=variation)


def trial(mutant: Mutant, runs: Mapping[int, Unchanged], projects: Projects) -> Chain[Result]:
    """Run the scenarios that reached the part of a mutant, and return what came of it."""
    users = [runs[number] for number in mutant.users if number in runs]
    found = Result(
        id=mutant.id,
        operator=mutant.operator,
        where=mutant.place,
        diff=mutant.diff,
        outcome="survived",
        part=" -> ".join(mutant.route) or mutant.node or "",
        manifest=users[0].runs[0].outcome.manifest if users else mutant.where.file,
    )
    reached = [each for each in users if each.judges and each.reaches(mutant)]
    if not reached:
        outcome = _unrun(mutant, users, projects) or "no_coverage"
        missing = _UNREAD if mutant.in_prompt and users else _unprovoked(mutant, reached=False)
        return replace(found, outcome=outcome, suggestion=missing)
    differing: list[tuple[Unchanged, Sequence[Run]]] = []
    for each in reached:
        made = yield with_mutant(each.scenario, mutant, each.real_timeout_s)
        found = replace(found, scenarios=(*found.scenarios, each.scenario.id))
        if any(run.outcome.observed.status == "invalid" for run in made):
            return replace(found, outcome="invalid")
        for run in made:
            if not run.outcome.passed:
                return _killed(found, each, run)
        if any(map(_differ, made, each.runs)):
            differing.append((each, made))
    if not differing:
        if mutant.repeats or _unrun(mutant, reached, projects) == "equivalent":
            return replace(found, outcome="equivalent")
        return replace(found, suggestion=_unprovoked(mutant, reached=True))
    before, after = differing[0]
    difference = first_difference(before.runs[0].events, after[0].events)
    found = replace(found, difference=difference.as_json() if difference is not None else None)
    proposed = yield from suggestion(
        differing, runs, lambda each: with_mutant(each, mutant, before.real_timeout_s)
    )
    if proposed is None:
        what = f": {difference.what} differs" if difference is not None else ""
        return replace(found, suggestion=f"no expectation can see it{what}")
    of, expect = proposed
    return replace(found, suggestion=mapping_text(expect), suggested_for=of, expect=expect)


def _differ(one: Run, other: Run) -> bool:
    """True if two runs differ in their traces, or in what they leave behind."""
    runs = (one.outcome, other.outcome)
    left, others = ((run.digest, run.observed.state, run.observed.output) for run in runs)
    return left != others


def _killed(found: Result, by: Unchanged, run: Run) -> Result:
    outcome = run.outcome
    killed = replace(found, outcome="killed", killed_by=by.scenario.id)
    error = outcome.observed.error or {}
    if outcome.verdict == "error":
        if error.get("code") == _TIMEOUT:
            return replace(killed, outcome="timeout", check=_TIMEOUT)
        return replace(killed, by_error=True, check=str(error.get("type") or outcome.reason))
    failed = next((check for check in (*outcome.checks, *outcome.too_late) if not check.passed), None)
    return replace(killed, check=failed.name if failed is not None else "pass_score")


def _unrun(mutant: Mutant, users: Sequence[Unchanged], projects: Projects) -> str:
    """Return `invalid` or `equivalent` for a mutant that needs no run to tell; else ""."""
    same = []
    for scenario in (each.scenario for each in users):
        if concerns(scenario):  # it is imported only to run
            return ""
        request = load_request(scenario, projects.of(scenario.file))
        try:
            before = load_graph(request, scenario.dialect)
        except SourceError:
            continue
        try:
            after = load_graph(replace(request, changes=mutant.changes), scenario.dialect)
        except SourceError:
            return "invalid"
        same.append(mutant.in_edges and _edges(before) == _edges(after))
    return "equivalent" if same and all(same) else ""


def _edges(graph: Graph) -> list[tuple[str, str, str | None]]:
    """Return the edges of a graph by their sources, with those to the end that need not be written."""
    edges = (*graph.edges, *implied_ends(graph))
    return sorted(((edge.source, edge.target, edge.label) for edge in edges), key=itemgetter(0))


# ---------------------------------------------------------------- what a suite does not provoke

_UNREAD: Final = (
    "no stub or recording reads the prompt, and no check does: give a stub a condition such as `when: "
    'request.messages[0].content.contains("…")`, a check one such as `that: calls[0].request.messages[0].content'
    '.contains("…")`, or record the scenario'
)


def _unprovoked(mutant: Mutant, *, reached: bool) -> str:
    """Return what would lead to the part of a mutant that no run showed."""
    at = f"`{mutant.node}`" if mutant.node else "the agent"
    if not reached:
        target = f" with an input that leads to {at}" if mutant.node else ""
        return f"no scenario runs {at}: add one{target}"
    return _NEEDED[mutant.operator].format(at=at, to="".join(mutant.route[1:]) or "another way")


_NEEDED = {
    "guard": "nothing fails at {at}, is late, or reaches the limit: add a scenario with a fault there, such as "
    "`{{error: rate_limit}}` as an answer, or an answer with a `latency`",
    "route": "no input takes the way that it changes: add a scenario in which {at} goes to {to}",
    "state": "no run reads the value, or it is written before it is read: add a scenario that reads it at {at}",
    "call": "no run uses it: add a scenario in which a model asks for it at {at}",
    "prompt": 'no answer depends on this part: add `when: request.messages[0].content.contains("…")` to a stub',
    "output": "no run breaks the schema or reads the key: add a scenario in which {at} answers with something else",
    "node": "the node changes nothing in these runs: add a scenario in which what {at} does matters",
}
