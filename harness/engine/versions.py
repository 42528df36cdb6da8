"""The differences between the versions of LangGraph that run apps, from 0.3.34 on.

The five declarative dialects are translated to LangGraph with its `Runtime`, and need a newer one.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Final

FLOORS: Final = {"langgraph": "0.3.34", "langchain-core": "0.3.70"}
"""The oldest versions whose apps run."""
DECLARATIVE_FLOORS: Final = {"langgraph": "1.1.5", "langchain-core": "1.2.5"}
"""The oldest versions that run the graphs of declarative manifests."""


def too_old(floors: Mapping[str, str], what: str) -> str:
    """Return a sentence that names the packages below these floors, or "" if `what` can run."""
    below = [name for name, floor in floors.items() if _numbers(_installed(name)) < _numbers(floor)]
    if not below:
        return ""
    found = " and ".join(f"{name} {_installed(name)}" for name in below)
    packages = " ".join(f'"{name}>={floor}"' for name, floor in floors.items() if name in below)
    return f"{what} cannot run with {found}: pip install {packages}"


@cache
def _installed(name: str) -> str:
    return version(name)


@cache
def _numbers(text: str) -> tuple[int, ...]:
    numbers = []
    for part in text.split(".")[:3]:
        digits = part[: next((at for at, each in enumerate(part) if not each.isdigit()), len(part))]
        numbers.append(int(digits or 0))
    return tuple(numbers)


def runner() -> Any:
    """Return the module through whose functions LangGraph runs tasks."""
    private = "langgraph.pregel._runner"  # since 0.6
    return importlib.import_module(private if find_spec(private) else "langgraph.pregel.runner")


def default_recursion_limit() -> int:
    """Return LangGraph's limit of steps where nobody sets one; 25 in versions before 1.0."""
    internal = "langgraph._internal"  # since 0.6
    config = importlib.import_module(f"{internal}._config") if find_spec(internal) else None
    return int(getattr(config, "DEFAULT_RECURSION_LIMIT", 25))


def interrupt_id(interrupt: Any) -> str:
    """Return the id of an interrupt: `id`, before 0.6 `interrupt_id`, before 0.4 only its place."""
    for name in ("id", "interrupt_id"):
        if found := getattr(interrupt, name, None):
            return str(found)
    return "|".join(getattr(interrupt, "ns", None) or ())


def command_to_resume(answers: Mapping[str, Any]) -> Any:
    """Return the command that answers interrupts by their ids; before 0.4 there is one answer, without an id."""
    from langgraph.types import Command

    if len(answers) == 1 and _numbers(_installed("langgraph")) < (0, 4):
        return Command(resume=next(iter(answers.values())))
    return Command(resume=dict(answers))
