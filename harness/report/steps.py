"""Format the path of a run on one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from harness.graph.periods import split_cycles
from harness.report.formatting import plural
from harness.report.shorten import short_name

_MAX_STEPS: Final = 30


def path_text(path: Sequence[Any]) -> str:
    """Return the steps in order. Cycles are shown once with their count; of a long path only the end is shown.

    >>> path_text(["a", "b", "b", "b", "b"])
    'a → b → b × 3'
    >>> path_text(["a", "b", "c", "b", "c", "b", "c", "d"])
    'a → (b → c → b) × 2 → c → d'
    """
    if not path:
        return "(no node ran)"
    steps: list[str] = []
    for found in split_cycles(path):
        part = [_step(step) for step in path[found.start : found.end]]
        if found.period:
            cycle = " → ".join(part[: found.period + 1])
            steps.append(f"{cycle if found.period == 1 else f'({cycle})'} × {found.rounds}")
            part = part[found.rounds * found.period + 1 :]
        steps += part
    if len(steps) > _MAX_STEPS:
        steps = [f"… {plural(len(steps) - _MAX_STEPS, 'step')}", *steps[-_MAX_STEPS:]]
    return " → ".join(steps)


def _step(step: Any) -> str:
    return f"({' | '.join(map(short_name, step))})" if isinstance(step, list) else short_name(step)
