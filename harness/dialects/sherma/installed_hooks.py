"""The hooks that a manifest or a scenario installs: their points, problems and instances.

spec: `hooks`, "Hooks".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from inspect import isclass, isfunction, signature
from typing import Any, Final

from harness.dialects.kit.manifest import UnimportedObject
from harness.dialects.sherma.hooks import HOOK_POINTS
from harness.engine.context import RunContext
from harness.errors import ManifestError, Problem, Span
from harness.source.suggest import did_you_mean, nearest

_BASES: Final = ("BaseHookExecutor", "HookExecutor", "object")
"""Classes whose hook methods do nothing, here and in sherma."""


@dataclass(frozen=True)
class InstalledHook:
    """An imported hook, with its name and location. Objects given by a caller are named after their type."""

    imported: Any
    name: str
    span: Span | None

    @cached_property
    def overridden(self) -> frozenset[str]:
        """The hook points that it overrides; all points if it was not imported."""
        if isinstance(self.imported, UnimportedObject):
            return frozenset(HOOK_POINTS)
        inherited = {point for base in self._classes if base.__name__ in _BASES for point in vars(base)}
        own = {name for part in self._own_parts for name in vars(part)}
        return frozenset(
            point
            for point in HOOK_POINTS
            if point in own or (point not in inherited and hasattr(self.imported, point))
        )

    @property
    def _classes(self) -> tuple[type, ...]:
        kind: type = self.imported if isclass(self.imported) else type(self.imported)
        return kind.__mro__

    @property
    def _own_parts(self) -> list[Any]:
        """The hook's classes without the base classes, and the object itself if it has attributes."""
        parts: list[Any] = [part for part in self._classes if part.__name__ not in _BASES]
        return [*parts, self.imported] if hasattr(self.imported, "__dict__") else parts

    def problems(self) -> Iterator[Problem]:
        """Yield an error if it is not a hook; warnings about misspelt methods, and about a hook without any."""
        if isinstance(self.imported, UnimportedObject):
            return
        if not any(hasattr(self.imported, point) for point in HOOK_POINTS):
            text = f"'{self.name}' is not a hook: it has none of the hook methods"
            yield Problem("not-a-hook", text, self.span, ", ".join(HOOK_POINTS))
            return
        misspelt = dict(self._misspelt())
        for method, point in misspelt.items():
            text = f"nothing calls '{method}' of '{self.name}': it is not one of the hook methods"
            yield Problem("not-a-hook", text, self.span, did_you_mean(method, [point]), "warning")
        if not self.overridden and not misspelt:
            text = f"'{self.name}' does nothing: it overrides none of the hook methods"
            yield Problem("not-a-hook", text, self.span, severity="warning")

    def _misspelt(self) -> Iterator[tuple[str, str]]:
        """Yield methods with one parameter whose name resembles a point that is not overridden, and the point."""
        methods = {
            name: value for part in self._own_parts for name, value in vars(part).items() if isfunction(value)
        }
        for method, function in methods.items():
            if method in HOOK_POINTS or method.startswith("_") or len(signature(function).parameters) != 2:
                continue
            point = nearest(method, HOOK_POINTS, cutoff=0.8)
            if point is not None and point not in self.overridden:
                yield method, point

    async def instance(self, _run: RunContext) -> Any:
        """Return a new instance of a hook class; other objects are returned themselves.

        Raises:
            ManifestError: the class cannot be instantiated without arguments.
        """
        if not isclass(self.imported):
            return self.imported
        try:
            return self.imported()
        except Exception as error:
            text = f"hook {self.imported.__qualname__} cannot be created: {type(error).__name__}: {error}"
            raise ManifestError(Problem("hook", text, self.span)) from error
