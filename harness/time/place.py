"""The place of code that reads the clock or draws a random number: its origin, and the visit that it runs in."""

from __future__ import annotations

import sysconfig
from contextvars import ContextVar
from enum import Enum
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Final

current_visit: Final[ContextVar[str]] = ContextVar("current_visit", default="")
"""The visit of a node that runs: its name and number. Empty outside visits."""


class Origin(Enum):
    """Origins of code. That of a library is the name of its package instead."""

    USER = "user"
    PYTHON = "python"
    HARNESS = "harness"


_RUNNERS: Final = frozenset({"_pytest", "pytest", "pluggy", "xdist", "execnet", "rich", "click"})
"""Packages that run the harness or show its progress, and measure in real time what it does."""
_PACKAGES: Final = ("site-packages", "dist-packages")
_PYTHON: Final = tuple(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib"))
_HARNESS: Final = f"{Path(__file__).parents[1]}/"


@lru_cache(4096)
def origin(filename: str) -> Origin | str:
    """Return the origin of the code in a file (`co_filename`); for a library the name of its package."""
    if filename.startswith(_HARNESS):
        return Origin.HARNESS
    parts = filename.replace("\\", "/").split("/")
    for folder in _PACKAGES:
        if folder in parts[:-1]:
            package = parts[parts.index(folder) + 1].removesuffix(".py")
            return Origin.HARNESS if package in _RUNNERS else package
    if filename.startswith((*_PYTHON, "<")):  # also code that was generated, of a dataclass, say
        return Origin.PYTHON
    return Origin.USER


def origin_of(module: ModuleType) -> Origin | str:
    """Return the origin of a module."""
    return origin(getattr(module, "__file__", None) or "<frozen>")
