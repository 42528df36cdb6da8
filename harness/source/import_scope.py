"""Modules of some folders, with modules of ours in the place of installed ones, while they are imported and run.

Code in them may import anything anew while it runs. It then sees what it would if its folders were the only ones, and
no other code of the process sees that.
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
    """Where code imports from: `folders`, searched before everything else, and `stand_ins`, whatever is installed.

    The folders have no links in their paths. Stand-ins are top-level modules without submodules.
    """

    folders: tuple[Path, ...] = ()
    stand_ins: Mapping[str, ModuleType] = field(default_factory=dict)

    def import_modules(self, names: Sequence[str]) -> Sequence[ImportProblem]:
        """Import modules by their dotted names. A folder in the first of `folders` is a package before any other.

        Returns the problem of each module that is not there, or raised something.
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
        """The modules that were imported from the folders so far, by their dotted names."""
        return modules_of(self.folders)

    @coroutine
    def run(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """Run a coroutine in this scope: during each of its steps, and not while it waits."""
        step: Callable[[], Any] = partial(work.send, None)
        while True:
            try:
                with self._active():
                    waited = step()
            except StopIteration as end:
                return cast(T, end.value)
            try:
                step = partial(work.send, (yield waited))
            except BaseException as error:  # such as CancelledError, for the coroutine to handle
                step = partial(work.throw, error)

    @contextmanager
    def _active(self, names: Sequence[str] = ()) -> Iterator[None]:
        tops = {name.partition(".")[0] for name in names}
        packages = {name: package for name in tops if (package := self._package(name))}
        with importing(tops, self.folders, packages), self._standing_in():
            yield

    def _package(self, name: str) -> ModuleType | None:
        """The package of a folder without an `__init__.py`, which any installed module of its name would hide."""
        path = self.folders[0] / name
        if not path.is_dir() or (path / "__init__.py").exists() or path.with_name(f"{name}.py").exists():
            return None
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(path)]
        return module_from_spec(spec)

    @contextmanager
    def _standing_in(self) -> Iterator[None]:
        hidden = [name for name in sys.modules if name.partition(".")[0] in self.stand_ins]
        others = {name: sys.modules.pop(name) for name in hidden}
        sys.modules.update(self.stand_ins)
        try:
            yield
        finally:
            for name in self.stand_ins:
                sys.modules.pop(name, None)
            sys.modules.update(others)
