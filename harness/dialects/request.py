"""The request to load a manifest, and the files and folders that a manifest may name."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from harness.dialects.changes import Changes
from harness.errors import ManifestError, Problem, Span
from harness.source.document import Document, hint_for_missing, is_special, read, real_path
from harness.source.project import marked_root
from harness.source.rewriting import Rewrite
from harness.source.yaml import Version


class Stamp(NamedTuple):
    """The state of a file or folder. That of a folder changes when an entry is added or removed."""

    modified_ns: int
    size: int
    inode: int
    is_folder: bool


def stamp(path: Path) -> Stamp | None:
    """The stamp of what is at a path now; None if nothing is there."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # ValueError: no file can have this name
        return None
    return Stamp(status.st_mtime_ns, status.st_size, status.st_ino, stat.S_ISDIR(status.st_mode))


class FolderListing(NamedTuple):
    """A folder that a manifest names: its path, and its files sorted by path."""

    path: Path
    files: tuple[Path, ...]


@dataclass(frozen=True)
class LoadRequest:
    """A manifest and the options for loading it.

    paths     the manifest, then the documents it draws components from
    agent     the agent, entry point or flow inside it; None where there is only one
    env       values of `${VAR}`; nothing else is looked up
    folders   where Python modules are imported from, in front of `sys.path`; files below them may be read
    hooks     hooks the caller installs: import paths, or the hooks themselves
    imports   whether Python objects that the manifest names are imported; else they are only looked up
    allowed   further folders a manifest may read files from
    named_at  the span that names the manifest, for the message that it does not exist
    agent_at  the span that names the agent, or else the manifest, for the message that there is none
    hooks_at  the spans that name hooks, by import path
    text      the manifest itself, if it is not in a file; its paths are then relative to `base`
    changes   what of its files is different from what they say
    stamps    the files and folders that were resolved so far, each as it was then
    """

    paths: tuple[Path, ...]
    agent: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    hooks: tuple[Any, ...] = ()
    allowed: tuple[Path, ...] = ()
    named_at: Span | None = field(default=None, compare=False)
    agent_at: Span | None = field(default=None, compare=False)
    hooks_at: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)
    text: str | None = None
    base: Path | None = None
    imports: bool = True
    changes: Changes = field(default_factory=Changes)
    stamps: dict[Path, Stamp | None] = field(default_factory=dict, compare=False, repr=False)

    @property
    def path(self) -> Path:
        """The manifest itself."""
        return self.paths[0]

    @property
    def base_path(self) -> Path | None:
        """The folder of relative paths in the manifest; None if it has no file and none was given."""
        return self.base if self.text is not None else real_path(self.path).parent

    def span_of_hook(self, hook: Any) -> Span | None:
        """Where a hook is named, or else the manifest."""
        return self.hooks_at.get(hook, self.named_at) if isinstance(hook, str) else self.named_at

    def read(
        self, path: Path, *, yaml: Version, named_at: Span | None = None, rewrite: Rewrite | None = None
    ) -> Document:
        """The document in a file of the manifest, with the changes; see `harness.source.document.read`.

        Raises:
            ManifestError: the file cannot be read, its text not be parsed, or a change not be made.
        """
        return self.changes.apply(read(path, yaml=yaml, named_at=named_at, rewrite=rewrite), path)

    def read_text(self, path: Path) -> str:
        """The text of a file of the manifest, with the changes.

        Raises:
            OSError, UnicodeDecodeError: it cannot be read as UTF-8.
        """
        changed = self.changes.text(path)
        return path.read_text(encoding="utf-8-sig") if changed is None else changed

    def resolve(self, written: str, where: Span) -> Path:
        """The file that a manifest names at `where`. spec (sherma): base_path.

        Raises:
            ManifestError: it is not there, outside every folder that may be read, or relative to nothing.
        """
        path = self._resolved(written, where)
        self.record(path)
        if not path.is_file():
            raise ManifestError(_missing("file", written, path, where))
        return path

    def resolve_folder(
        self, written: str, where: Span, pattern: str = "*", *, recursive: bool = True
    ) -> FolderListing:
        """The folder that a manifest names at `where`, with those of its files whose names match `pattern`.

        Hidden files and folders, and folders behind symbolic links, are left out.

        Raises:
            ManifestError: it is not there, outside every folder that may be read, or relative to nothing; or
                one of its files is a link to a file outside.
        """
        folder = self._resolved(written, where)
        if not folder.is_dir():
            raise ManifestError(_missing("folder", written, folder, where))
        files = []
        for within, folders, names in os.walk(folder, onerror=partial(_refuse_unreadable, written, where)):
            folders[:] = [name for name in folders if recursive and _is_content(name)]
            self.record(Path(within))
            found = (Path(within, name) for name in names if _is_content(name) and fnmatchcase(name, pattern))
            files += [path for path in found if path.is_file()]
        for path in sorted(files):
            if path.is_symlink():
                self._check_readable(path.resolve(), path.name, where)
            self.record(path)
        return FolderListing(folder, tuple(sorted(files)))

    def _resolved(self, written: str, where: Span) -> Path:
        if self.base_path is None and not Path(written).is_absolute():
            text = f"the relative path '{written}' needs a base_path, or a manifest in a file"
            raise ManifestError(Problem("no-base-path", text, where))
        try:
            path = real_path((self.base_path or Path()) / written)
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            pass
        except (OSError, ValueError) as error:  # ValueError: no file can have this name
            text = f"this path cannot be looked up: {getattr(error, 'strerror', None) or error}"
            raise ManifestError(Problem("unreadable-file", text, where)) from None
        self._check_readable(path, written, where)
        return path

    def _check_readable(self, path: Path, written: str, where: Span) -> None:
        if not self.may_read(path):
            text = f"'{written}' is outside the folders a manifest may read"
            hint = "allow its folder in [tool.harness] allow_paths"
            raise ManifestError(Problem("path-outside", text, where, hint))

    def record(self, path: Path) -> None:
        """Note that the graph depends on this file or folder, as it is now."""
        self.stamps.setdefault(path, stamp(path))

    def files(self) -> tuple[Path, ...]:
        """The files that were resolved so far, in that order."""
        return tuple(path for path, seen in self.stamps.items() if seen is None or not seen.is_folder)

    def may_read(self, path: Path) -> bool:
        """True if a manifest may read what is at this (resolved) path."""
        return any(path.is_relative_to(folder) for folder in self.readable_folders())

    def readable_folders(self) -> Sequence[Path]:
        """The project the manifest stands in, the current folder, the import folders, and what was allowed."""
        here = real_path(self.path).parent
        project = marked_root(here) or (here.parent if len(here.parents) > 2 else here)
        return [p.resolve() for p in (project, here, Path.cwd(), *self.folders, *self.allowed)]

    def for_manifest(self, path: Path, agent: str | None) -> LoadRequest:
        """The request for another manifest, named by this one; without the hooks of the caller."""
        return replace(
            self, paths=(path,), agent=agent, agent_at=None, hooks=(), named_at=None, text=None, base=None
        )


def _missing(kind: str, written: str, path: Path, where: Span) -> Problem:
    if path.is_dir():
        return Problem("not-a-file", f"'{written}' is a folder, and a {kind} is needed", where)
    if path.exists() and is_special(path):
        return Problem("not-a-file", f"'{written}' is a pipe, a socket or a device, not a {kind}", where)
    if path.exists():
        return Problem("not-a-folder", f"'{written}' is a file, and a {kind} is needed", where)
    return Problem("missing-file", f"{kind} '{written}' is not there", where, hint_for_missing(path))


def _refuse_unreadable(written: str, where: Span, error: OSError) -> NoReturn:
    text = f"folder '{written}' cannot be read: {error.strerror or error}"
    raise ManifestError(Problem("unreadable-file", text, where)) from None


def _is_content(name: str) -> bool:
    """True unless a file or folder is hidden, or written by Python beside modules."""
    return not name.startswith(".") and name != "__pycache__"
