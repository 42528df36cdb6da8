"""A scope in which code from given folders is imported and run, with stand-ins for some installed modules.

Code may also import while it runs. It then sees the modules of its own folders and the stand-ins, and no other code
of the process sees these.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType, coroutine
from typing import Any, TypeVar, cast

from harness.source.imports import ImportProblem, importing, module_named, modules_of

T = TypeVar("T")


@dataclass(frozen=True)
class ImportScope:
    """The sources of imports: `folders`, which are searched first, and `stand_ins`, which replace installed modules.

    The paths of the folders contain no links. Stand-ins are top-level modules without submodules.
    """

    folders: tuple[Path, ...] = ()
    stand_ins: Mapping[str, ModuleType] = field(default_factory=dict)

    def import_modules(self, names: Sequence[str]) -> Sequence[ImportProblem]:
        """Import modules by their dotted names, and return the problems of those that are missing or fail.

        A folder inside the first of `folders` counts as a package, and takes precedence over any other module.
        """
        problems = []
        with self._active(names):
            for name in names:
                try:
                    module_named(name, name, self.folders)
                except ImportProblem as problem:
                    problems.append(problem)
        return problems

    def modules(self) -> Mapping[str, ModuleType]:
        """Return the modules that were imported from the folders so far, by their dotted names."""
        return modules_of(self.folders)

    @coroutine
    def run(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """Run a coroutine in this scope. The scope is active during each of its steps, but not while it waits."""
        step: Callable[[], Any] = partial(work.send, None)
        while True:
            try:
                with self._active():
                    waited = step()
            except StopIteration as end:
                return cast(T, end.value)
            try:
                step = partial(work.send, (yield waited))
            except BaseException as error:  # such as CancelledError, which the coroutine may handle
                step = partial(work.throw, error)

    @contextmanager
    def _active(self, names: Sequence[str] = ()) -> Iterator[None]:
        tops = {name.partition(".")[0] for name in names}
        packages = {name: package for name in tops if (package := self._package(name))}
        with importing(tops, self.folders, packages), self._with_stand_ins():
            yield

    def _package(self, name: str) -> ModuleType | None:
        """Return a package for a folder without `__init__.py`, which an installed module of its name would hide."""
        path = self.folders[0] / name
        if not path.is_dir() or (path / "__init__.py").exists() or path.with_name(f"{name}.py").exists():
            return None
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(path)]
        return module_from_spec(spec)

    @contextmanager
    def _with_stand_ins(self) -> Iterator[None]:
        hidden = [name for name in sys.modules.copy() if name.partition(".")[0] in self.stand_ins]
        others = {name: sys.modules.pop(name) for name in hidden}
        sys.modules.update(self.stand_ins)
        try:
            yield
        finally:
            for name in self.stand_ins:
                sys.modules.pop(name, None)
            sys.modules.update(others)
