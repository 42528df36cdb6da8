"""Objects of the caller as manifests: while one runs it is an attribute of this module, and so has a name."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

_OWN: Final = str(Path(__file__).parent.parent)
UNKNOWN: Final = "…"
"""In place of the name of an object that no variable of a module holds."""
_OBJECTS: Final[dict[str, Any]] = {}


@contextmanager
def manifest_of(thing: Any) -> Iterator[str]:
    """Yield the path of the manifest: that of a file as it is, the name of an object in this module."""
    if isinstance(thing, str | Path):
        yield str(thing)
        return
    wanted = str(getattr(thing, "__name__", None) or getattr(thing, "name", None) or type(thing).__name__)
    name = wanted if wanted.isidentifier() and not wanted.startswith("_") else "agent"
    while name in _OBJECTS or name in globals():
        name += "_"
    _OBJECTS[name] = thing
    try:
        yield f"{__name__}:{name}"
    finally:
        del _OBJECTS[name]


def __getattr__(name: str) -> Any:
    try:
        return _OBJECTS[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def path_of(thing: Any, folder: Path) -> str:
    """Return what names a manifest in a scenario file of a folder: a path, or the variable that holds an object."""
    if isinstance(thing, str | Path):
        return os.path.relpath(thing, folder)
    for module in [*sys.modules.values()]:
        file = getattr(module, "__file__", None)
        name = (
            next((name for name, value in [*vars(module).items()] if value is thing), None) if file else None
        )
        if name is not None and not str(file).startswith(_OWN):
            return f"{os.path.relpath(str(file), folder)}:{name}"
    return UNKNOWN
