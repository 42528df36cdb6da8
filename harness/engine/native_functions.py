"""The functional API of LangGraph: the steps of `@task`s, and functions that wait for them in a thread."""

from __future__ import annotations

import concurrent.futures
from collections import Counter
from collections.abc import Callable
from typing import Any

from harness.time.readings import let_loop_go_on


class StepsOfCalls:
    """The steps of the `@task`s of a run, by their paths. That of the function that calls a task is part of its path.

    Tasks that run side by side have one step, if functions of one step call them.
    """

    def __init__(self) -> None:
        self._steps: dict[Any, float] = {}
        self._of_callers: dict[Any, float] = {}
        self._running: Counter[float] = Counter()
        self._latest: dict[float, float] = {}
        self._number = 0

    def begin(self, path: tuple[Any, ...], step: float) -> float:
        """Return the step of a task that starts in the superstep `step` of its graph."""
        caller = self._of_callers[path] = self._steps.get(path[1], step)
        if not self._running[caller]:
            self._number += 1
            self._latest[caller] = step + self._number / 10_000
        self._running[caller] += 1
        self._steps[path] = self._latest[caller]
        return self._steps[path]

    def end(self, path: tuple[Any, ...]) -> None:
        """Note that a task has ended."""
        self._running[self._of_callers[path]] -= 1


def wrap_calls(of_langgraph: Any, is_observed: Callable[[], bool]) -> None:
    """Wrap the function that starts a task in the loop, for which a blocking function waits in its thread."""
    really = of_langgraph._acall

    def acall(*args: Any, **options: Any) -> Any:
        future = really(*args, **options)
        if is_observed() and isinstance(future, concurrent.futures.Future):
            let_loop_go_on(future, options["loop"])
        return future

    of_langgraph._acall = acall
