"""Callables in the place of stubs.

In what is written down, a placeholder stands for each; in the world that was made of it, the callable answers. Its
answers are remembered, so that a conversation which is run again, because it goes on, calls it no second time.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, Final

from harness.errors import FormatError, Problem
from harness.graph.effects import EFFECTS
from harness.source.document import DocumentPath
from harness.world.spec import WorldSpec

WORLD_KEYS: Final = tuple(effect.key for effect in EFFECTS.values())
_DIRECT: Final = ("tools", "handlers")
"""Keys whose callables are the thing itself, and get its arguments. Others get the request."""

_ANSWERS: Final = {"llm": "reply", "human": "reply", "http": "text"}


@dataclass
class Remembered:
    """A callable, and the answers that it gave: a value, or the exception that it raised."""

    function: Callable[..., Any]
    answers: list[tuple[bool, Any]] = field(default_factory=list)
    _next: int = 0

    def again(self) -> Remembered:
        """Return the same, for a run of the same conversation: what was answered is answered again."""
        return Remembered(self.function, list(self.answers))

    def called(self) -> Callable[..., Any]:
        """Return the function to call, with the signature of the original."""
        if _is_async(self.function):

            @wraps(self.function)
            async def ask(*args: Any, **kwargs: Any) -> Any:
                if self._is_known():
                    return self._known()
                try:
                    return self._keep(True, await self.function(*args, **kwargs))
                except Exception as error:
                    self._keep(False, error)
                    raise

            return ask

        @wraps(self.function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._is_known():
                return self._known()
            try:
                return self._keep(True, self.function(*args, **kwargs))
            except Exception as error:
                self._keep(False, error)
                raise

        return call

    def _is_known(self) -> bool:
        return self._next < len(self.answers)

    def _known(self) -> Any:
        is_value, answer = self.answers[self._next]
        self._next += 1
        if not is_value:
            raise answer
        return copy.deepcopy(answer)

    def _keep(self, is_value: bool, answer: Any) -> Any:
        self.answers.append((is_value, copy.deepcopy(answer) if is_value else answer))
        self._next += 1
        return answer


def _is_async(function: Callable[..., Any]) -> bool:
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  # an object whose class has an async __call__
    )


def _at_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives what an async one answers without waiting; it stands where nothing awaits it."""
    if not _is_async(function):
        return function

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        running = function(*args, **kwargs)
        try:
            running.send(None)
        except StopIteration as done:
            return done.value
        running.close()
        raise TypeError("an async callable that waits cannot answer here: give the stub a latency")

    return call


Callables = dict[DocumentPath, Remembered]
"""The callables of a world, by the path of their placeholders."""


def without_callables(world: Mapping[str, Any]) -> tuple[dict[str, Any], Callables]:
    """Return a world that can be written down, with a placeholder for each callable, and the callables.

    A callable or a stub that stands where a list is expected is a list of one.
    """
    found: Callables = {}
    written = {key: _written(key, value, (key,), found) for key, value in world.items()}
    return written, found


def _written(key: str, value: Any, path: DocumentPath, found: Callables) -> Any:
    kind = next((each for each in EFFECTS.values() if each.key == key), None)
    if kind is None:  # hooks, faults
        return value
    if kind.stubs == "list":
        if isinstance(value, Mapping) and key != "http":
            return {node: _listed(key, stubs, (*path, node), found) for node, stubs in value.items()}
        return _listed(key, value, path, found)
    if not isinstance(value, Mapping):
        return value
    return {name: _entry(key, item, (*path, name), found) for name, item in value.items()}


def _listed(key: str, value: Any, path: DocumentPath, found: Callables) -> Any:
    stubs = list(value) if isinstance(value, list | tuple) else [value]
    return [_stub(key, each, (*path, at), found) for at, each in enumerate(stubs)]


def _entry(key: str, value: Any, path: DocumentPath, found: Callables) -> Any:
    if isinstance(value, list | tuple):
        return [_stub(key, each, (*path, at), found) for at, each in enumerate(value)]
    if key == "mcp" and callable(value):
        text = f"mcp: '{path[-1]}' is a server, in whose place no callable stands"
        hint = "a callable answers one of its tools: {'tools': [{'name': …, 'stubs': [callable]}]}"
        raise FormatError(Problem("wrong-type", text, hint=hint))
    if key == "mcp" and isinstance(value, Mapping) and isinstance(value.get("tools", ()), list | tuple):
        tools = [
            {**tool, "stubs": _listed(key, tool["stubs"], (*path, "tools", at, "stubs"), found)}
            if isinstance(tool, Mapping) and "stubs" in tool
            else tool
            for at, tool in enumerate(value.get("tools", ()))
        ]
        return {**value, "tools": tools} if tools else value
    return _stub(key, value, path, found)


def _stub(key: str, value: Any, path: DocumentPath, found: Callables) -> Any:
    if not callable(value):
        return value
    found[path] = Remembered(value)
    if key in _DIRECT and not isinstance(path[-1], int):
        return "real"
    return {_ANSWERS.get(key, "return"): "", "times": "any"}


def place_callables(world: WorldSpec, callables: Callables) -> None:
    """Let the callables answer in place of their placeholders, in this world alone."""
    stubs = {stub.path(path, at): stub for _, path, listed in world.lists() for at, stub in enumerate(listed)}
    real = dict(world.real())
    for path, function in callables.items():
        if path in real:
            real[path].answer_by(function.called())
        else:
            stubs[path].answer_by(_at_once(function.called()))
