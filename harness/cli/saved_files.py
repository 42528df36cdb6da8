"""A watcher for files saved in a set of folders (`watchfiles`)."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from harness.source.document import real_path
from harness.source.imports import import_extra

_SETTLE_MS: Final = 60
"""Time without another save after which the saves so far count as one change."""
_LOOK_UP_MS: Final = 200
"""Time in which a watcher starts, and notices that it has to end."""
_IGNORED_FOLDERS: Final = frozenset({"__pycache__", "node_modules"})
_EDITOR_SUFFIXES: Final = (".swp", ".swx", ".tmp", ".pyc")
_VIM_PROBE: Final = "4913"


class SavedFiles:
    """A watcher of folders and everything below them but hidden folders, installed packages and `reports`.

    It watches from its creation, so no file saved before the first `next` is missed.

    Raises:
        ExtraMissing: `watchfiles` is not installed.
    """

    def __init__(self, roots: Iterable[Path], reports: Iterable[Path]) -> None:
        self._watch = import_extra("watchfiles", "watch", "to watch files").watch
        self._roots, self._reports = list(roots), set(reports)
        self._pending: set[Path] = set()
        self._begin()

    def next(self) -> frozenset[Path]:
        """Wait until files are saved, created or removed, and return them.

        Raises:
            KeyboardInterrupt: Ctrl-C.
        """
        while not self._pending:
            self._note(next(self._changes))
        found, self._pending = frozenset(self._pending), set()
        return found

    def _begin(self) -> None:
        self._folders = set(self._below(self._roots))
        self._changes: Generator[set[Any]] = self._watch(
            *self._folders,
            watch_filter=None,
            step=_SETTLE_MS,
            rust_timeout=_LOOK_UP_MS,
            yield_on_timeout=True,
            recursive=False,
            raise_interrupt=True,
        )
        self._note(next(self._changes))  # the generator starts watching on its first `next`

    def _note(self, changes: set[Any]) -> None:
        paths = {real_path(Path(path)) for _, path in changes}
        made = [path for path in paths - self._folders if path.is_dir() and self._is_watched(path)]
        self._pending |= {path for path in paths if not path.is_dir() and self._is_relevant(path)}
        if made:  # files put into new folders before they were watched
            for folder in self._below(made):
                self._pending |= {
                    path for path in folder.iterdir() if path.is_file() and self._is_relevant(path)
                }
            self._changes.close()
            self._begin()

    def _below(self, roots: Iterable[Path]) -> Iterator[Path]:
        for root in roots:
            for at, folders, _ in os.walk(root):
                yield Path(at)
                folders[:] = [name for name in folders if self._is_watched(Path(at, name))]

    def _is_watched(self, folder: Path) -> bool:
        hidden = folder.name.startswith(".") or folder.name in _IGNORED_FOLDERS
        return not hidden and folder not in self._reports and not (folder / "pyvenv.cfg").exists()

    def _is_relevant(self, path: Path) -> bool:
        """False for files that editors and Python leave beside a file, and for reports."""
        beside = path.suffix in _EDITOR_SUFFIXES or path.name.endswith("~") or path.name == _VIM_PROBE
        return not beside and self._reports.isdisjoint(path.parents)
