"""The differences between the versions of LangGraph that run apps, from 0.3.34 on.

The five declarative dialects are translated to LangGraph with its `Runtime`, and need a newer one.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from inspect import signature
from typing import Any, Final

FLOORS: Final = {"langgraph": "0.3.34", "langchain-core": "0.3.70"}
"""The oldest versions whose apps run."""
DECLARATIVE_FLOORS: Final = {"langgraph": "1.1.5", "langchain-core": "1.2.5"}
"""The oldest versions that run the graphs of declarative manifests."""
CONTEXT_FLOORS: Final = {"langgraph": "0.6.0"}
"""The oldest version whose graphs have a `Runtime` with a context."""


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


def has_context() -> bool:
    """True if the invocation of a graph takes a context."""
    return not too_old(CONTEXT_FLOORS, "")


RUN_TASK: Final = ("run_with_retry", "arun_with_retry")
"""The functions through which LangGraph runs every task, in code that blocks and in a loop. Neither is public."""


def runner() -> Any:
    """Return the module through whose functions `RUN_TASK` LangGraph runs tasks; None if it has none that we know."""
    try:
        module = _since_0_6("langgraph.pregel._runner", "langgraph.pregel.runner")
        first = {next(iter(signature(getattr(module, name)).parameters)) for name in RUN_TASK}
    except (ImportError, AttributeError):
        return None
    return module if first == {"task"} else None


def unknown_runner() -> str:
    """Return the warning that this version of LangGraph runs tasks in a way that is not known."""
    return (
        f"langgraph {_installed('langgraph')} is newer than this version of the harness knows: "
        "which node runs, and which node makes a call, is not observed"
    )


def default_recursion_limit() -> int:
    """Return LangGraph's limit of steps where nobody sets one; in the oldest versions langchain-core's, 25."""
    module = _since_0_6("langgraph._internal._config", "langgraph.utils.config")
    return int(getattr(module, "DEFAULT_RECURSION_LIMIT", 25))


def _since_0_6(name: str, before: str) -> Any:
    return importlib.import_module(name if has_context() else before)


def interrupt_id(interrupt: Any) -> str:
    """Return the id of an interrupt: `id`, before 0.6 `interrupt_id`, before 0.4 only its place."""
    for name in ("id", "interrupt_id"):
        if found := getattr(interrupt, name, None):
            return str(found)
    return "|".join(getattr(interrupt, "ns", None) or ())


def command_to_resume(answers: Mapping[str, Any]) -> Any:
    """Return the command that answers interrupts by their ids; before 0.4 by the ids of the tasks that asked."""
    from langgraph.types import Command

    if _numbers(_installed("langgraph")) >= (0, 4):
        return Command(resume=dict(answers))
    if len(answers) == 1:  # whoever asks, at any depth
        return Command(resume=next(iter(answers.values())))
    return Command(resume={_task_of(id_): answer for id_, answer in answers.items()})


def _task_of(interrupt: str) -> str:
    """Return the id of the task of the outermost graph that an interrupt is in: `node:id|inner:id`."""
    return interrupt.partition("|")[0].rpartition(":")[2]
