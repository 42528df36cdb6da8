"""What a front end is asked to load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import ManifestError, Problem, Span
from harness.source.document import similar_path


@dataclass(frozen=True)
class LoadRequest:
    """A manifest and the circumstances of its use.

    paths     the manifest, then the documents it draws components from
    agent     the agent, entry point or flow inside it; None where there is only one
    env       values of `${VAR}`; nothing else is looked up
    folders   where Python modules are imported from, in front of `sys.path`; files below them may be read
    hooks     hooks the caller installs: import paths, or the hooks themselves
    allowed   further folders a manifest may read files from
    named_at  where the manifest is named, for the message that it is not there
    text      the manifest itself, where it is not in a file; `base` is then what its paths are relative to
    named     the files that manifests were found to name, as they are resolved
    """

    paths: tuple[Path, ...]
    agent: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    hooks: tuple[Any, ...] = ()
    allowed: tuple[Path, ...] = ()
    named_at: Span | None = field(default=None, compare=False)
    text: str | None = None
    base: Path | None = None
    named: dict[Path, None] = field(default_factory=dict, compare=False, repr=False)

    @property
    def path(self) -> Path:
        """The manifest itself."""
        return self.paths[0]

    @property
    def base_path(self) -> Path | None:
        """What relative paths in the manifest are relative to; None where nothing says so."""
        return self.base if self.text is not None else self.path.resolve().parent

    def resolve(self, written: str, where: Span) -> Path:
        """The file a manifest names. spec (sherma): base_path.

        Raises:
            ManifestError: it is not there, outside every folder that may be read, or relative to nothing.
        """
        if self.base_path is None and not Path(written).is_absolute():
            text = f"the relative path '{written}' needs a base_path, or a manifest in a file"
            raise ManifestError(Problem("no-base-path", text, where))
        path = (self.base_path or Path()) / written
        try:
            path = path.resolve()
            is_file = path.is_file()
        except (OSError, ValueError) as error:  # a name no file can have
            reason = getattr(error, "strerror", None) or error
            raise ManifestError(
                Problem("missing-file", f"no file can be called that: {reason}", where)
            ) from None
        if not self.may_read(path):
            text = f"'{written}' is outside the folders a manifest may read"
            raise ManifestError(
                Problem("path-outside", text, where, "allow its folder in [tool.harness] allow_paths")
            )
        if not is_file:
            near = similar_path(path)
            hint = f"did you mean '{near}'?" if near else ""
            raise ManifestError(Problem("missing-file", f"file '{written}' is not there", where, hint))
        self.named[path] = None
        return path

    def may_read(self, path: Path) -> bool:
        """Whether a manifest may read what is at this (resolved) path."""
        return any(path.is_relative_to(folder) for folder in self.readable_folders())

    def readable_folders(self) -> Sequence[Path]:
        """The project the manifest stands in, the current folder, the import folders, and what was allowed."""
        here = self.path.resolve().parent
        marked = (
            p for p in (here, *here.parents) if (p / ".git").exists() or (p / "pyproject.toml").exists()
        )
        project = next(marked, here.parent if len(here.parents) > 2 else here)
        return [p.resolve() for p in (project, here, Path.cwd(), *self.folders, *self.allowed)]

    def beside(self, path: Path, agent: str | None) -> LoadRequest:
        """The request for another manifest, named by this one; hooks of the caller are not handed on."""
        return LoadRequest((path,), agent, self.env, self.folders, (), self.allowed, named=self.named)
