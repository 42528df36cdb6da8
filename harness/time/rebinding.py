"""Replacement of functions of Python and of libraries, for good, by functions that ask whether a run is in progress.

A replacement behaves as its original outside of runs. It is made once in a process, so that the names that modules
bind at import (`from time import sleep`) follow it, whenever they are imported.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from enum import Enum
from functools import lru_cache, update_wrapper
from pathlib import Path
from types import ModuleType
from typing import Any, Final

current_visit: Final[ContextVar[str]] = ContextVar("current_visit", default="")
"""The visit of a node that runs: its name and number. Empty outside visits."""


class Origin(Enum):
    """Origins of code. That of a library is the name of its package instead."""

    USER = "user"
    PYTHON = "python"
    HARNESS = "harness"


USER, PYTHON, HARNESS = Origin  # by these names, since Python takes long to find a member by its class


_RUNNERS: Final = frozenset({"_pytest", "pytest", "pluggy", "xdist", "execnet", "rich", "click"})
"""Packages that run the harness or show its progress, and measure in real time what it does."""
_PACKAGES: Final = ("site-packages", "dist-packages")
_PYTHON: Final = tuple(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib"))
_HARNESS: Final = f"{Path(__file__).parents[1]}/"


@lru_cache(4096)
def origin(filename: str) -> Origin | str:
    """Return the origin of the code in a file (`co_filename`); for a library the name of its package."""
    if filename.startswith(_HARNESS):
        return HARNESS
    parts = filename.replace("\\", "/").split("/")
    for folder in _PACKAGES:
        if folder in parts[:-1]:
            package = parts[parts.index(folder) + 1].removesuffix(".py")
            return HARNESS if package in _RUNNERS else package
    if filename.startswith((*_PYTHON, "<")):  # also code that was generated, of a dataclass, say
        return PYTHON
    return USER


def origin_of(module: ModuleType) -> Origin | str:
    """Return the origin of a module."""
    return origin(getattr(module, "__file__", None) or "<frozen>")


Bindings = dict[int, tuple[Any, Any]]
"""By the id of an object, the object and the one that takes its place."""

_replacements: Final[set[int]] = set()
"""The ids of all replacements, which stay."""
_replaced: Final[Bindings] = {}
"""Originals and their replacements, until `bind_replacements` has followed them."""


def rebind(
    module: ModuleType, replacements: Iterable[tuple[str, Callable[[Any], Callable[..., Any]]]]
) -> None:
    """Replace functions of a module by name, each by what its maker returns for the original."""
    for name, make in replacements:
        original = getattr(module, name, None)
        if original is not None:
            replacement = update_wrapper(make(original), original)
            # So that it can be pickled.
            replacement.__module__, replacement.__qualname__ = module.__name__, name
            setattr(module, name, replacement)
            _replaced[id(original)] = original, replacement
            _replacements.add(id(replacement))


def is_replacement(function: object) -> bool:
    """True for a function that has taken the place of another one for good."""
    return id(function) in _replacements


def bind_replacements() -> None:
    """Bind the names of other modules that are bound to an original to its replacement."""
    bind_names(_replaced)
    _replaced.clear()


def bind_names(bindings: Bindings, *, everywhere: bool = False) -> None:
    """Bind names of modules that are bound to an object to the one in its place; in Python's own if `everywhere`."""
    for module in list(sys.modules.values()):
        if everywhere or origin_of(module) not in (PYTHON, HARNESS):
            found = [(name, id(value)) for name, value in [*vars(module).items()] if id(value) in bindings]
            for name, bound in found:
                setattr(module, name, bindings[bound][1])


def when_imported(name: str, change: Callable[[ModuleType], None]) -> None:
    """Call a function with a module: now, if it has been imported, else right after it is, before names are bound."""
    import wrapt

    wrapt.register_post_import_hook(change, name)
