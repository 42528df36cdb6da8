"""Sums over lines of results: numbers of runs, usage of models, cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from harness.report.arithmetic import ExactSum, total
from harness.report.repeats import Line, RepeatGroup

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
