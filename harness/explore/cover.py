"""A first suite: the fewest scenarios that together take every part of a graph that was reached."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from harness.authoring.from_trace import with_expectations
from harness.authoring.trial import run_trial
from harness.authoring.world import given_in
from harness.explore.attempt import Feature, features_of
from harness.explore.search import Cover
from harness.explore.subject import Subject
from harness.explore.written import Keys, keys_of, shortened
from harness.graph import observe
from harness.report.traces import restored
from harness.source.display import clip


def fewest(covers: Collection[Cover]) -> list[Cover]:
    """Return the fewest runs that take all that any took: those that add most first, then those no other replaces.

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
    """Yield the scenarios, with what they are seen to do as expectations."""
    taken: dict[str, int] = {}
    for cover in fewest(covers):
        steps = " → ".join(map(str, observe.path(cover.run.events))) or "no node runs"
        name = clip(": ".join(filter(None, (subject.keys.get("agent"), steps))), 80)
        taken[name] = taken.get(name, 0) + 1
        name = name if taken[name] == 1 else f"{name} ({taken[name]})"
        yield _scenario(cover, name, subject, file)


def _scenario(cover: Cover, name: str, subject: Subject, file: Path) -> Keys:
    head, settings = subject.head(file), subject.settings
    own = {
        "name": name,
        "description": "Written by `harness explore --cover` from one run: review what it expects.",
        **subject.keys_for(cover.run.events),
    }
    ended = next(event["status"] for event in reversed(cover.run.events) if event["event"] == "end")

    def takes_all(keys: Keys) -> bool:
        outcome = subject.trial(file, {**own, **keys, "allow_unused": True, "expect": {"status": ended}})
        return cover.features <= features_of([*restored(outcome.events)])

    keys = shortened(keys_of(cover.run, subject.scenario, subject.world), subject.declared, takes_all)
    trial = {**own, **keys, "allow_unused": True, "expect": {"status": ended}}
    outcomes = run_trial(file, head, trial, settings, repeat=2)
    return with_expectations({**own, **keys}, outcomes, file, head, settings)[0]
