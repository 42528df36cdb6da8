"""The parts of a graph that runs reached: how many, which not, and the fewest scenarios that take them again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.authoring.from_trace import with_expectations
from harness.authoring.trial import run_trial
from harness.authoring.world import given_in
from harness.explore.attempt import Feature, features_of
from harness.explore.search import Cover
from harness.explore.subject import Subject
from harness.explore.written import Keys, keys_of, shortened
from harness.graph import observe
from harness.graph.model import Graph
from harness.report.traces import restored
from harness.source.display import clip
from harness.source.document import shown_path

NOT_DRAWN: Final = "no drawn answer led there"
IMPOSSIBLE: Final = "no answer can lead there"
PARTS: Final = {"nodes": "node", "edges": "edge", "branches": "branch"}


@dataclass(frozen=True)
class Unreached:
    """A part that no run took: a `node`, an `edge` or a `branch`, its name, `file:line`, and the reason."""

    kind: str
    name: str
    where: str | None
    why: str


Shape = Mapping[str, Any]
"""The parts of a graph, with their lines (`harness.scenario.evaluation.graph_shape`)."""


def coverage(shape: Shape, taken: Collection[Feature]) -> dict[str, list[int]]:
    """Return [taken, all] of each kind of parts."""
    return {
        part: [sum((part, each) in taken for each in found), len(found)]
        for part in PARTS
        for found in [[each for each, _ in _places(shape, part)]]
    }


def unreached(shape: Shape, graph: Graph, manifest: Path, taken: Collection[Feature]) -> Iterator[Unreached]:
    """Yield the parts of a graph that were not taken. An edge whose branches are listed is not listed itself."""
    shown, flaws = shown_path(manifest), _flaws(graph)
    with_branch = {str(name).partition(" [")[0] for name, _ in _places(shape, "branches")}
    for part, kind in PARTS.items():
        for each, line in _places(shape, part):
            name = each if isinstance(each, str) else " -> ".join(each)
            if (part, each) in taken or (part == "edges" and name in with_branch):
                continue
            where = f"{shown}:{line}" if isinstance(line, int) else line
            flaw = flaws.get(where or "")
            yield Unreached(kind, name, where, f"{IMPOSSIBLE}: {flaw}" if flaw else NOT_DRAWN)


def _places(shape: Shape, part: str) -> Iterator[tuple[Any, int | str | None]]:
    """Yield each part of a kind, as a run takes it, with its line."""
    for each, line in zip(shape.get(part, ()), shape.get("lines", {}).get(part, ()), strict=True):
        yield each if isinstance(each, str) else tuple(each), line


_FLAWS: Final = ("dead-", "unreach")
"""The beginnings of the codes by which a dialect tells that something never runs."""


def _flaws(graph: Graph) -> Mapping[str, str]:
    """Return why what stands in a line can never run, by the rules of the dialect."""
    found: dict[str, str] = {}
    for problem in (*graph.warnings, *graph.notes):
        if problem.span is not None and problem.code.startswith(_FLAWS):
            found.setdefault(f"{shown_path(problem.span.file)}:{problem.span.line}", problem.message)
    return found


def fewest(covers: Collection[Cover]) -> list[Cover]:
    """Return few runs that take all that any took: those that add most first, then those no other replaces.

    A run of several turns is taken only for what no single turn takes.
    """
    ordered = sorted(covers, key=lambda each: (each.size, each.stream))
    single = [each for each in ordered if "turns" not in given_in(each.run.events)]
    chosen: list[Cover] = []
    taken: set[Feature] = set()
    for among in (single, ordered):
        while best := max(among, key=lambda each: len(each.features - taken), default=None):
            if best.features <= taken:
                break
            chosen.append(best)
            taken |= best.features
    for each in list(chosen):
        others = {feature for other in chosen if other is not each for feature in other.features}
        if each.features <= others:
            chosen.remove(each)
    return chosen


def suite(covers: Collection[Cover], subject: Subject, file: Path) -> Iterator[Keys]:
    """Yield the scenarios, with what they are seen to do as expectations.

    A run that its scenario does not repeat is left out; others take what it took.
    """
    left, shortest = list(covers), dict[int, Keys]()
    while missing := [each for each in fewest(left) if id(each) not in shortest]:
        for cover in missing:
            if keys := _shortest(cover, subject, file):
                shortest[id(cover)] = keys
            else:
                left = [each for each in left if each is not cover]
    names: dict[str, int] = {}
    for cover in fewest(left):
        steps = " → ".join(map(str, observe.path(cover.run.events))) or "no node runs"
        name = clip(": ".join(filter(None, (subject.keys.get("agent"), steps))), 80)
        names[name] = names.get(name, 0) + 1
        name = name if names[name] == 1 else f"{name} ({names[name]})"
        told = {"name": name, "description": _DESCRIPTION, **shortest[id(cover)]}
        head, settings = subject.head(file), subject.settings
        outcomes = run_trial(file, head, {**told, **_ended(cover)}, settings, repeat=2)
        yield with_expectations(told, outcomes, file, head, settings)[0]


_DESCRIPTION: Final = "Written by `harness explore --cover` from one run: review what it expects."


def _ended(cover: Cover) -> Keys:
    """Return the keys by which a scenario only has to end as a run did."""
    ended = next(event["status"] for event in reversed(cover.run.events) if event["event"] == "end")
    return {"allow_unused": True, "expect": {"status": ended}}


def _shortest(cover: Cover, subject: Subject, file: Path) -> Keys:
    """Return the shortest scenario that takes what a run took, and ends as it did; nothing if none does."""

    def is_same(keys: Keys) -> bool:
        outcome = subject.trial(file, {"name": "cover", **keys, **_ended(cover)})
        return outcome.verdict == "passed" and cover.features <= features_of([*restored(outcome.events)])

    keys = {**subject.keys_for(cover.run.events), **keys_of(cover.run, subject.scenario, subject.world)}
    return shortened(keys, subject.declared, is_same) if is_same(keys) else {}
