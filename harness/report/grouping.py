"""Group the runs of scenarios by several keys at once: `harness summary --by tag,model` and `Results.groups`."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import product
from typing import Any, Final

from harness.errors import FormatError, Problem
from harness.report.figures import PERCENTILES
from harness.report.formatting import plural
from harness.report.group import Stratum, figures
from harness.report.repeats import Line
from harness.source.display import did_you_mean

KEYS: Final[Mapping[str, Callable[[Line, str], Iterable[str]]]] = {
    "suite": lambda line, run: [line["suite"]],
    "scenario": lambda line, run: [line["id"]],
    "tag": lambda line, run: dict.fromkeys(line["tags"]),
    "model": lambda line, run: line["usage"]["by_model"],
    "variant": lambda line, run: _known(line["variant"]),
    "manifest": lambda line, run: [line["manifest"]],
    "agent": lambda line, run: _known(line["agent"]),
    "dialect": lambda line, run: [line["dialect"]],
    "verdict": lambda line, run: [line["verdict"]],
    "status": lambda line, run: [line["status"]],
    "run": lambda line, run: [run],
}
"""The groups that a line belongs to, by key. `run` is the folder of the results."""


def _known(name: str | None) -> list[str]:
    return [name] if name else []


def parse_keys(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the keys without duplicates.

    Raises:
        FormatError: there is no such key, or none is given (`unknown-key`).
    """
    found = tuple(dict.fromkeys(keys))
    for key in found or ("",):
        if key not in KEYS:
            text = f"runs cannot be grouped by '{key}'"
            raise FormatError(Problem("unknown-key", text, hint=did_you_mean(key, KEYS)))
    return found


class GroupedRuns:
    """Sums up lines of results by some of `KEYS`.

    A run counts in a group for each of its tags, and of its models, with the usage of that model. It is in no group
    if it has no value for a key, such as no tag.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = keys
        self._groups: dict[tuple[str, ...], dict[str, Stratum]] = {}
        self._left_out: dict[str, int] = {}

    def add(self, line: Line, run: str, of_several: bool = True) -> None:
        """Add a line of results.jsonl from this folder, which is one `of_several`."""
        values = {key: [*KEYS[key](line, run)] for key in self.keys}
        for key, found in values.items():
            if not found:
                self._left_out[key] = self._left_out.get(key, 0) + 1
        for names in product(*values.values()):
            strata = self._groups.setdefault(names, {})
            variant = line["variant"] or ""
            if variant not in strata:
                strata[variant] = Stratum()
            part = _of_model(line, names[self.keys.index("model")]) if "model" in self.keys else line
            strata[variant].add(part, run if of_several else None)

    def as_json(self) -> list[dict[str, Any]]:
        """Return, by name, {by: {key: name}, …} with the figures of each group (`harness.report.group.figures`)."""
        return [
            {"by": dict(zip(self.keys, names, strict=True)), **figures([*strata.values()])}
            for names, strata in sorted(self._groups.items())
        ]

    @property
    def title(self) -> str:
        """The noun for a group, such as `tag · model`."""
        return " · ".join(self.keys)

    def named(self) -> dict[str, dict[str, Any]]:
        """Return the figures by the names of a group, such as `billing · gpt-4o`."""
        return {" · ".join(group["by"].values()): group for group in self.as_json()}

    def notes(self) -> list[str]:
        """Return a line for each key that some runs have no value for."""
        return [
            f"{plural(count, 'run')} in no group: no {key}" if self._groups else f"no run has a {key}"
            for key, count in self._left_out.items()
        ]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a flat row for each group: its keys, then `FIGURE_COLUMNS`."""
        for group in self.as_json():
            low, high = group["pass_rate_interval"]
            flat = {
                **group,
                "pass_rate_low": low,
                "pass_rate_high": high,
                **{f"latency_{name}": group["latency"][name] for name in PERCENTILES},
                "input_tokens": group["tokens"]["input"],
                "output_tokens": group["tokens"]["output"],
            }
            yield {**group["by"], **{name: flat[name] for name in FIGURE_COLUMNS}}


FIGURE_COLUMNS: Final = {
    **dict.fromkeys(("runs", "distinct_runs", "scenarios", "passed", "failed", "errors", "skipped"), "int"),
    **dict.fromkeys(("pass_rate", "pass_rate_low", "pass_rate_high", "fitness"), "Float"),
    **{f"latency_{name}": "timedelta" for name in PERCENTILES},
    **dict.fromkeys(("llm_calls", "input_tokens", "output_tokens"), "int"),
    "cost": "Float",
}
"""The figures of a group in a table, each with its kind (`harness.report.frames`)."""


def csv_of(grouped: GroupedRuns) -> str:
    """Return the rows as CSV with a header. Latencies are virtual seconds; what is unknown is empty."""
    made = StringIO()
    writer = csv.DictWriter(made, [*grouped.keys, *FIGURE_COLUMNS], lineterminator="\n")
    writer.writeheader()
    writer.writerows(grouped.rows())
    return made.getvalue()


def _of_model(line: Line, name: str) -> Line:
    """Return the line with the usage of one of its models alone."""
    usage = line["usage"]["by_model"][name]
    return {**line, "usage": {"cost": 0.0, **usage, "by_model": {name: usage}}}
