"""The request to load a manifest: its options, its files, and the access rules for files and folders it names."""

from __future__ import annotations

import os
import stat
from asyncio import AbstractEventLoop
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from harness.errors import ManifestError, Problem, Span
from harness.graph.faults import Fault, with_faults
from harness.graph.model import Graph
from harness.graph.native import Invocation, NativeGraph
from harness.source.display import clip, did_you_mean
from harness.source.document import Document, hint_for_missing, is_special, read, real_path, shown_path
from harness.source.location import Rewrite
from harness.source.project import marked_root
from harness.source.yaml import Version

OPERATIONS: Final = ("add", "remove", "replace", "move", "copy", "test")
_LONGEST: Final = 200


@dataclass(frozen=True)
class TextReplacement:
    """A new text for the one that begins at a line and column of a file. `file` is absolute, its links resolved."""

    file: Path
    line: int
    column: int
    text: str


@dataclass(frozen=True)
class Changes:
    """The changes to a manifest and to the files that it refers to.

    texts     the replaced texts; in a file that is not YAML or JSON, one at line 1, column 1 replaces the whole file
    patch     operations of a JSON Patch (RFC 6902)
    patch_at  the location of the patch, for messages
    patched   the manifest that the patch and the faults apply to
    faults    faults of its compiled graph
    """

    texts: tuple[TextReplacement, ...] = ()
    patch: tuple[Mapping[str, Any], ...] = ()
    patch_at: Span | None = None
    patched: Path | None = None
    faults: tuple[Fault, ...] = ()

    def graph(self, graph: Graph, path: Path) -> Graph:
        """Return the graph compiled from the manifest at `path`, with the faults of that manifest."""
        if not self.faults or real_path(path) != self.patched:
            return graph
        if not isinstance(graph, NativeGraph):
            return with_faults(graph, self.faults)
        from harness.engine.native_faults import make_faults

        make_faults(graph, self.faults)
        return graph

    def apply(self, document: Document, path: Path) -> Document:
        """Return `document`, read from the file at `path`, with the changes to that file.

        Raises:
            ManifestError: an operation of the patch cannot be applied (`bad-patch`).
        """
        file = real_path(path)
        texts = {(found.line, found.column): found.text for found in self.texts if found.file == file}
        if texts:
            document = document.with_texts(texts)
        return self._patched(document) if self.patch and file == self.patched else document

    def text(self, path: Path) -> str | None:
        """Return the new text of a whole file; None if the file is unchanged."""
        file = real_path(path)
        whole = (each for each in self.texts if (each.file, each.line, each.column) == (file, 1, 1))
        return next((each.text for each in whole), None)

    def _patched(self, document: Document) -> Document:
        from jsonpatch import JsonPatchException, JsonPointerException, apply_patch

        value = document.value
        for number, operation in enumerate(self.patch, start=1):
            try:
                value = apply_patch(value, [dict(operation)])
            except (JsonPatchException, JsonPointerException, TypeError, KeyError) as error:
                prefix = "" if len(self.patch) == 1 else f"operation {number} of "
                why, hint = _refusal(value, operation) or (clip(str(error), _LONGEST), "")
                text = f"{prefix}the patch cannot be applied to {shown_path(document.file)}: {why}"
                raise ManifestError(Problem("bad-patch", text, self.patch_at, hint)) from None
        return document.replaced(value)


def _refusal(value: Any, operation: Mapping[str, Any]) -> tuple[str, str] | None:
    """Explain why an operation cannot be applied to `value`, with a hint.

    Returns None unless a pointer leads nowhere or a `test` fails.
    """
    op = operation["op"]
    for key in ("from", "path"):
        if key in operation:
            written = str(operation[key]).split("/")[1:]
            steps = [step.replace("~1", "/").replace("~0", "~") for step in written]
            new = steps[-1:] if key == "path" and op in ("add", "copy", "move") else []
            found = _first_missing(value, steps[: len(steps) - len(new)])
            if found is not None:
                return found
    return (f"the value at '{operation['path']}' is different", "") if op == "test" else None


def _first_missing(value: Any, steps: Sequence[str]) -> tuple[str, str] | None:
    """Describe the first step of a JSON Pointer that does not exist in `value`, with a hint; None if all exist."""
    for number, step in enumerate(steps):
        pointer = "/" + "/".join(steps[: number + 1])
        if isinstance(value, Mapping):
            if step not in value:
                return f"there is no '{pointer}'", did_you_mean(step, [*map(str, value)])
            value = value[step]
        elif isinstance(value, list):
            if not (step.isdecimal() and int(step) < len(value)):
                return f"there is no '{pointer}'", f"the list has {len(value)} items, the first is 0"
            value = value[int(step)]
        else:
            return f"there is no '{pointer}'", "the value above it is neither a mapping nor a list"
    return None


def faulty_operations(patch: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a message for each malformed operation of a patch, with its number. No document is needed."""
    faults = ((number, _fault(operation)) for number, operation in enumerate(patch, start=1))
    return [f"operation {number}: {fault}" for number, fault in faults if fault]


def _fault(operation: Mapping[str, Any]) -> str:
    """Return what is malformed in an operation of a patch; "" if nothing is."""
    from jsonpatch import JsonPatch, JsonPatchException, JsonPointerException

    op, pointers = operation.get("op"), [operation[key] for key in ("path", "from") if key in operation]
    if op not in OPERATIONS:
        return f"{op!r} is not an operation; expected one of {', '.join(OPERATIONS)}"
    for pointer in pointers:
        if isinstance(pointer, str) and pointer and pointer[0] != "/":
            return f"'{pointer}' is not a path: write '/{pointer}'"
    try:
        JsonPatch([dict(operation)])
    except (JsonPatchException, JsonPointerException, TypeError) as error:
        return str(error)
    return ""


class Stamp(NamedTuple):
    """The modification stamp of a file or folder. A folder's stamp changes when an entry is added or removed."""

    modified_ns: int
    size: int
    inode: int
    is_folder: bool


def stamp(path: Path) -> Stamp | None:
    """Return the current stamp of the file or folder at a path; None if there is none."""
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

    paths     the manifest, then the documents that hold components of it
    agent     the agent, entry point or flow to load; None if the manifest has only one
    env       the values of `${VAR}`; the environment itself is not read
    folders   folders searched for Python modules before `sys.path`; files below them may be read
    hooks     hooks installed by the caller: import paths, or the hooks themselves
    imports   import Python objects that the manifest names; if False, they are looked up without running code, and
              the front end has an `UnimportedObject` in place of each (`harness.dialects.kit.manifest.load_object`)
    allowed   further folders that a manifest may read files from
    named_at  the span that names the manifest, for messages that it does not exist
    agent_at  the span that names the agent, or else the manifest, for messages that it does not exist
    hooks_at  the spans that name hooks, by import path
    text      the manifest itself, if it is not in a file; its paths are then relative to `base`
    changes   the changes of a variant to the files
    components     ids that the documents refer to, each with the key of the component that it stands for
    components_at  the spans of these keys, by id
    invocation     what a scenario gives to the invocation of an app, besides inputs
    loop      returns the event loop of the run, which an app's factory runs in, too; None outside of runs
    stamps    the files and folders resolved so far, with their stamps at that time
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
    components: Mapping[str, str] = field(default_factory=dict)
    components_at: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)
    invocation: Invocation = field(default_factory=Invocation, compare=False)
    loop: Callable[[], AbstractEventLoop] | None = field(default=None, compare=False, repr=False)
    stamps: dict[Path, Stamp | None] = field(default_factory=dict, compare=False, repr=False)

    @property
    def path(self) -> Path:
        """The manifest itself."""
        return self.paths[0]

    @property
    def base_path(self) -> Path | None:
        """The base of relative paths in the manifest; None if it has no file and no `base` was given."""
        return self.base if self.text is not None else real_path(self.path).parent

    def span_of_hook(self, hook: Any) -> Span | None:
        """Return the span that names a hook, or else the manifest."""
        return self.hooks_at.get(hook, self.named_at) if isinstance(hook, str) else self.named_at

    def read(
        self, path: Path, *, yaml: Version, named_at: Span | None = None, rewrite: Rewrite | None = None
    ) -> Document:
        """Parse a file of the manifest and apply the changes; see `harness.source.document.read`.

        Raises:
            ManifestError: the file cannot be read or parsed, or a change cannot be applied.
        """
        return self.changes.apply(read(path, yaml=yaml, named_at=named_at, rewrite=rewrite), path)

    def read_text(self, path: Path) -> str:
        """Return the text of a file of the manifest, with the changes applied.

        Raises:
            OSError, UnicodeDecodeError: it cannot be read as UTF-8.
        """
        changed = self.changes.text(path)
        return path.read_text(encoding="utf-8-sig") if changed is None else changed

    def resolve(self, written: str, where: Span) -> Path:
        """Return the path of the file that a manifest names at `where`, and record it. spec (sherma): base_path.

        Raises:
            ManifestError: the file does not exist, is outside the readable folders, or is relative without a base.
        """
        path = self._resolved(written, where)
        self.record(path)
        if not path.is_file():
            raise ManifestError(_missing("file", written, path, where))
        return path

    def resolve_folder(
        self, written: str, where: Span, pattern: str = "*", *, recursive: bool = True
    ) -> FolderListing:
        """Return the folder that a manifest names at `where`, with its files whose names match `pattern`.

        Hidden files and folders are left out, and symbolic links to folders are not followed.

        Raises:
            ManifestError: the folder does not exist, is outside the readable folders, or is relative without a
                base; or one of its files is a link to a file outside the readable folders.
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
        """Record that the graph depends on this file or folder in its current state."""
        self.stamps.setdefault(path, stamp(path))

    def files(self) -> tuple[Path, ...]:
        """Return the files resolved so far, in that order."""
        return tuple(path for path, seen in self.stamps.items() if seen is None or not seen.is_folder)

    def may_read(self, path: Path) -> bool:
        """True if a manifest may read the file or folder at this (resolved) path."""
        return any(path.is_relative_to(folder) for folder in self.readable_folders())

    def readable_folders(self) -> Sequence[Path]:
        """Return the readable folders: the manifest's project, its folder, the current one, `folders`, `allowed`."""
        here = real_path(self.path).parent
        project = marked_root(here) or (here.parent if len(here.parents) > 2 else here)
        return [p.resolve() for p in (project, here, Path.cwd(), *self.folders, *self.allowed)]

    def for_manifest(self, path: Path, agent: str | None) -> LoadRequest:
        """Return the request for another manifest that this one names, without the caller's hooks."""
        nowhere: dict[str, Any] = dict.fromkeys(("agent_at", "named_at", "text", "base"))
        return replace(self, paths=(path,), agent=agent, components={}, hooks=(), **nowhere)


def _missing(kind: str, written: str, path: Path, where: Span) -> Problem:
    if path.is_dir():
        return Problem("not-a-file", f"'{written}' is a folder, and a {kind} is needed", where)
    if path.exists() and is_special(path):
        return Problem("not-a-file", f"'{written}' is a pipe, a socket or a device, not a {kind}", where)
    if path.exists():
        return Problem("not-a-folder", f"'{written}' is a file, and a {kind} is needed", where)
    return Problem("missing-file", f"{kind} '{written}' does not exist", where, hint_for_missing(path))


def _refuse_unreadable(written: str, where: Span, error: OSError) -> NoReturn:
    text = f"folder '{written}' cannot be read: {error.strerror or error}"
    raise ManifestError(Problem("unreadable-file", text, where)) from None


def _is_content(name: str) -> bool:
    """True unless the name is that of a hidden file or folder, or of Python's cache."""
    return not name.startswith(".") and name != "__pycache__"
