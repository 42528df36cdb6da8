"""The figures of a group of runs: a suite, a tag, a manifest, or all of them.

Each line of results is added to a `Stratum`: the runs with the same suite, manifest, dialect, variant and tags. In
it, the line is added to a `RepeatGroup`: the runs of one scenario with the same answers. Of each line only its
latency is kept, in eight bytes. A group is a list of strata, which `figures` combines.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import chain, zip_longest
from math import fsum
from operator import attrgetter
from typing import Any, Final

from harness.graph.model import ANY_NODE, GOTO
from harness.graph.observe import branch
from harness.report.repeats import (
    COUNTERS,
    ExactSum,
    Key,
    Line,
    RepeatGroup,
    ScenarioRepeats,
    percentiles,
    total,
)
from harness.scenario.score import clustered_wilson, pass_at_k, pass_hat_k, suite_fitness

_USAGE: Final = ("llm_calls", "input_tokens", "output_tokens")


@dataclass(slots=True)
class ModelUsage:
    """Usage of one model, summed; `unpriced` is True if one of its calls has no price."""

    counts: list[int] = field(default_factory=lambda: [0] * len(_USAGE))
    cost: ExactSum = field(default_factory=ExactSum)
    unpriced: bool = False

    def add(self, usage: Mapping[str, Any], cost: float | None) -> None:
        """Add the usage of a run."""
        for at, name in enumerate(_USAGE):
            self.counts[at] += usage[name] or 0
        if cost is None:
            self.unpriced = True
        else:
            self.cost.add(cost)


class Stratum:
    """Sums over the runs with the same suite, manifest, dialect, variant and set of tags."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str | None, int | None], dict[str, RepeatGroup]] = {}
        self.usage = ModelUsage()
        self.models: dict[str, ModelUsage] = {}
        self.wall = ExactSum()
        self.warnings = 0

    def __iter__(self) -> Iterator[RepeatGroup]:
        return chain.from_iterable(by_id.values() for by_id in self._groups.values())

    def add(self, line: Line, run: str | None) -> None:
        """Add a line of results. `run` is the name of its run of scenarios, if there are several."""
        usage = line["usage"]
        self.usage.add(usage, usage["cost"] or 0.0)
        for name, of_model in usage["by_model"].items():
            if name not in self.models:
                self.models[name] = ModelUsage()
            self.models[name].add(of_model, of_model.get("cost", 0.0))  # old results have no cost by model
        self.wall.add(line["wall"] or 0.0)
        self.warnings += len(line["warnings"])
        recording = line.get("recording")
        by_id = self._groups.setdefault((run, recording), {})
        found = by_id.get(line["id"])
        if found is None:
            key = line["id"], line["variant"] or ""
            found = by_id[line["id"]] = RepeatGroup(key=key, run=run, recording=recording)
        found.add(line)


def models_of(strata: Iterable[Stratum]) -> dict[str, dict[str, Any]]:
    """Return the usage of each model, by name, see `merged`."""
    by_name: dict[str, list[ModelUsage]] = {}
    for stratum in strata:
        for name, model in stratum.models.items():
            by_name.setdefault(name, []).append(model)
    return {name: merged(parts) for name, parts in sorted(by_name.items())}


def merged(parts: Sequence[ModelUsage]) -> dict[str, Any]:
    """Return the sum {llm_calls, input_tokens, output_tokens, cost}; the cost is None if one has no price."""
    counts = {name: sum(part.counts[at] for part in parts) for at, name in enumerate(_USAGE)}
    unpriced = any(part.unpriced for part in parts)
    return {**counts, "cost": None if unpriced else total(part.cost for part in parts)}


MAX_FLAKY: Final = 1_000
_REPEATS: Final = (1, 2, 3, 5, 10, 20, 50, 100)


def figures(strata: Sequence[Stratum]) -> dict[str, Any]:
    """Return the figures of a group, as they are in summary.json.

    runs           passed + failed + errors + skipped
    distinct_runs  as `runs`, but repeats that cannot differ count as one
    scenarios      number of scenarios; one with several variants counts once for each
    pass_rate      mean over scenarios of the share of judged distinct runs that passed; null if none was judged.
                   `pass_rate_interval` is its 95 % interval (`harness.scenario.score.clustered_wilson`)
    fitness        Σ weight × score ÷ Σ weight over scenarios; the score of a scenario is the mean of its repeats, so
                   that repeating it does not increase its weight
    latency        percentiles of the total virtual seconds of judged runs
    wall           real seconds
    models         {llm_calls, input_tokens, output_tokens, cost} by model; a cost of null means that it has no price
                   and counts as 0 in the cost of the group
    unpriced       names of the models without a price
    flaky          scenarios whose judged runs have different verdicts; at most `MAX_FLAKY`, the first by name
    pass_at_k, pass_hat_k  by k, the mean over the scenarios with at least k distinct runs, and those that cannot
                   differ, which count for every k
    """
    everything = scenarios(strata)
    judged = [each for each in everything if each.judged]
    distinct = [each.distinct for each in judged]
    runs = sum(of for of, _ in distinct)
    constant = [each.is_constant for each in judged]
    counts = {name: sum(map(attrgetter(name), everything)) for name in COUNTERS.values()}
    latencies = array("d", chain.from_iterable(each.latencies for each in judged))
    usage = merged([each.usage for each in strata])
    models = models_of(strata)
    return {
        "runs": sum(counts.values()),
        "distinct_runs": runs + counts["skipped"],
        "scenarios": len(everything),
        **counts,
        "pass_rate": fsum(passed / of for of, passed in distinct) / len(distinct) if distinct else None,
        "pass_rate_interval": list(clustered_wilson(distinct)),
        "fitness": suite_fitness((each.weight, fsum(each.scores) / each.judged) for each in judged)
        if runs
        else None,
        "latency": percentiles(latencies),
        "wall": total(each.wall for each in strata),
        "llm_calls": usage["llm_calls"],
        "tokens": {
            "input": usage["input_tokens"],
            "output": usage["output_tokens"],
            "total": usage["input_tokens"] + usage["output_tokens"],
        },
        "cost": usage["cost"],
        "models": models,
        "unpriced": [name for name, model in models.items() if model["cost"] is None],
        "warnings": sum(each.warnings for each in strata),
        "flaky": [
            {**named(each.key), "passed": each.passed, "runs": each.judged}
            for each in nsmallest(MAX_FLAKY, (each for each in judged if each.flaky), key=attrgetter("key"))
        ],
        "pass_at_k": _over_repeats(pass_at_k, distinct, constant),
        "pass_hat_k": _over_repeats(pass_hat_k, distinct, constant),
    }


def flaky_left_out(strata: Sequence[Stratum]) -> int:
    """Return the number of flaky scenarios that `figures` does not list."""
    return max(0, sum(each.judged > 0 and each.flaky for each in scenarios(strata)) - MAX_FLAKY)


def scenarios(strata: Iterable[Stratum]) -> Collection[RepeatGroup | ScenarioRepeats]:
    """Return the scenarios of these strata. A scenario in several strata is merged."""
    found: dict[Key, RepeatGroup | ScenarioRepeats] = {}
    for part in chain.from_iterable(strata):
        other = found.setdefault(part.key, part)
        if other is part:
            continue
        if isinstance(other, RepeatGroup):
            other = found[part.key] = ScenarioRepeats(other)
        other.add(part)
    return found.values()


def named(key: Key) -> dict[str, Any]:
    """Return {id, variant} of a scenario."""
    return {"id": key[0], "variant": key[1] or None}


def _over_repeats(
    formula: Callable[[int, int, int], float],
    repeats: Sequence[tuple[int, int]],
    constant: Sequence[bool],
) -> dict[str, float]:
    counted = Counter(zip(repeats, constant, strict=True))
    most = max((runs for runs, _ in repeats), default=0)
    shown = dict.fromkeys([k for k in _REPEATS if k < most] + [most] * (most > 0))
    found = {}
    for k in shown:
        values = [
            (float(passed) if same else formula(runs, passed, k), times)
            for ((runs, passed), same), times in counted.items()
            if same or runs >= k
        ]
        found[str(k)] = fsum(value * times for value, times in values) / sum(times for _, times in values)
    return found


PARTS: Final = ("nodes", "edges", "branches")

Item = str | tuple[str, ...]
"""A node or a branch by name, or an edge by its two ends."""


@dataclass(slots=True)
class _Graph:
    """The items of a graph and those that were taken, by part.

    places  each item, with its "file:line" in the manifest or None
    taken   items that a run took
    """

    places: dict[str, dict[Item, str | None]] = field(default_factory=lambda: {part: {} for part in PARTS})
    taken: dict[str, set[Item]] = field(default_factory=lambda: {part: set() for part in PARTS})
    last_shape: Any = None
    last_taken: Any = None


class GraphCoverage:
    """Collects the items of each graph, and those that were taken, from lines of results.jsonl.

    A manifest with several agents has several graphs, listed as `manifest#agent`. A graph that several manifests
    name (`shape.of`) is listed once, by the first of them.
    """

    def __init__(self) -> None:
        self._graphs: dict[Hashable, _Graph] = {}
        self._keys: dict[tuple[str, str], Hashable] = {}

    def add(self, line: Mapping[str, Any]) -> None:
        """Add a line of results.jsonl. Items that were taken belong to the graph even if its shape lacks them."""
        shape, taken = line.get("shape") or {}, line["coverage"]
        if not any(shape.get(part) or taken.get(part) for part in PARTS):
            return
        named = (line["manifest"], line["agent"] or "")
        key = self._keys[named] = shape.get("of") or named
        graph = self._graphs.get(key)
        if graph is None:
            graph = self._graphs[key] = _Graph()
        if shape != graph.last_shape:  # nearly all lines of a manifest have the same shape
            graph.last_shape = shape
            _add_shape(graph, shape, line["manifest"])
        if taken != graph.last_taken:
            graph.last_taken = taken
            for part in PARTS:
                graph.taken[part].update(_items(taken.get(part, ())))

    def name(self, manifest: str, agent: str) -> str:
        """Return the name a graph is listed by."""
        firsts = self._firsts()
        manifest, agent = firsts.get(self._keys.get((manifest, agent)), (manifest, agent))
        several = sum(found == manifest for found, _ in firsts.values()) > 1
        return f"{manifest}#{agent}" if several else manifest

    def _firsts(self) -> dict[Hashable, tuple[str, str]]:
        """Return the first manifest and agent that name each graph."""
        firsts: dict[Hashable, tuple[str, str]] = {}
        for named in sorted(self._keys):
            firsts.setdefault(self._keys[named], named)
        return firsts

    def summary(self) -> dict[str, Any]:
        """Return, by graph, {nodes, edges, branches}, each {taken, all, missing, where, dynamic}.

        `taken` and `all` are counts, `missing` the items that were not taken; `where` has the "file:line" of each, or
        None. `dynamic` has the items that only runs showed.
        """
        return {
            self.name(*named): {
                part: _counted(graph.places[part], graph.taken[part]) | {"dynamic": _dynamic(graph, part)}
                for part in PARTS
            }
            for key, named in self._firsts().items()
            for graph in [self._graphs[key]]
        }


def _add_shape(graph: _Graph, shape: Mapping[str, Any], manifest: str) -> None:
    lines = shape.get("lines") or {}
    for part, places in graph.places.items():
        of_part = lines.get(part) or ()
        for item, line in zip_longest(_items(shape.get(part, ())), of_part[: len(shape.get(part, ()))]):
            place = f"{manifest}:{line}" if isinstance(line, int) else line
            places[item] = min(filter(None, (places.get(item), place)), default=None)


def _items(items: Iterable[Any]) -> list[Item]:
    return [item if isinstance(item, str) else tuple(item) for item in items]


def _dynamic(graph: _Graph, part: str) -> list[Any]:
    """Return the items that only runs showed. The edges of a node that may go anywhere are none."""
    found = graph.taken[part] - graph.places[part].keys()
    branches = graph.places["branches"]
    return _listed(
        item for item in found if isinstance(item, str) or branch(item[0], ANY_NODE, GOTO) not in branches
    )


def _listed(items: Iterable[Item]) -> list[Any]:
    return [list(item) if isinstance(item, tuple) else item for item in sorted(items, key=repr)]


def _counted(places: Mapping[Item, str | None], taken: set[Item]) -> dict[str, Any]:
    missing = sorted(places.keys() - taken, key=repr)
    return {
        "taken": len(taken),
        "all": len(places.keys() | taken),
        "missing": _listed(missing),
        "where": [places[item] for item in missing],
    }
