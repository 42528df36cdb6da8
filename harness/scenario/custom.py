"""Custom checks (`expect.custom`): Python functions of the user that score a run.

    async? function(run, **args) ─▶ True or False, a number from 0 to 1, or (one of these, reason)

Source: docs/scenario-format.md, "`custom`".
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from harness.scenario.model import Expectations, Scenario
from harness.scenario.outcome import JSON, CustomVerdict, Observation
from harness.source.document import shown_path
from harness.source.frames import error_line, own_frames
from harness.source.imports import ImportProblem, import_object
from harness.source.models import describe


@dataclass(frozen=True)
class Run:
    """A run as custom checks see it, with the fields of its line in results.jsonl. Times are virtual seconds.

    All values are JSON and copies, so that changing them has no effect. `run["output"]` is `run.output`.
    """

    suite: str
    scenario: str
    tags: Sequence[str]
    seed: int
    status: str
    path: list[Any]
    visits: dict[str, int]
    routes: list[list[str]]
    state: JSON
    output: JSON
    error: dict[str, Any] | None
    interrupts: list[JSON]
    warnings: list[str]
    latency: dict[str, Any]
    usage: dict[str, Any]
    calls: list[dict[str, Any]]

    def __getitem__(self, name: str) -> Any:
        if name not in _FIELDS:
            raise KeyError(name)
        return getattr(self, name)


_FIELDS = tuple(field.name for field in fields(Run))
_OBSERVED = tuple(name for name in _FIELDS if name in Observation.__dataclass_fields__)


async def run_custom_checks(
    observed: Observation, expect: Expectations, scenario: Scenario, seed: int, folders: Sequence[Path]
) -> None:
    """Call the function of each item of `custom` and append its verdict to `observed.custom_verdicts`.

    Modules are imported from `folders`.
    """
    for item in expect.values.get("custom", ()):
        did = {name: copy.deepcopy(getattr(observed, name)) for name in _OBSERVED}
        run = Run(
            suite=shown_path(scenario.file),
            scenario=scenario.name,
            tags=tuple(scenario.tags),
            seed=seed,
            **did,
        )
        observed.custom_verdicts.append(await _call(item["call"], run, item.get("args") or {}, folders))


async def _call(dotted: str, run: Run, args: Mapping[str, Any], folders: Sequence[Path]) -> CustomVerdict:
    try:
        given = import_object(dotted, folders)(run, **copy.deepcopy(dict(args)))
        return _to_verdict(dotted, await given if inspect.isawaitable(given) else given)
    except ImportProblem as problem:
        return CustomVerdict(0.0, str(problem), broken=True)
    except AssertionError as error:
        return CustomVerdict(0.0, f"{dotted}: {error_line(error)}{_where(error)}")
    except Exception as error:  # the user's code may raise anything
        return CustomVerdict(0.0, f"{dotted} raised {error_line(error)}{_where(error)}", broken=True)


def _to_verdict(dotted: str, given: Any) -> CustomVerdict:
    score, reason = given if isinstance(given, tuple) and len(given) == 2 else (given, "")
    number = isinstance(score, int | float) and math.isfinite(score) and 0 <= score <= 1
    if not number or not isinstance(reason, str):
        found = describe(given if isinstance(given, str | int | float | Mapping | None) else repr(given))
        wants = "a custom check gives a bool, a number from 0 to 1, or (number, reason)"
        return CustomVerdict(0.0, f"{dotted} gave {found}: {wants}", broken=True)
    return CustomVerdict(float(score), reason)


def _where(error: Exception) -> str:
    last = next(reversed(own_frames(error)), None)
    return f"\n  {last['file']}:{last['line']}" if last else ""
