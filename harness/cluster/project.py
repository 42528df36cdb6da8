"""The files of a project that a worker needs, and their way to it: as an archive that is named by its digest.

    project_of(scenarios) ─▶ Project ─▶ archive_of ──bytes──▶ unpack, in the worker's own folder

Of each project these files travel: those that git does not ignore (all, without git), and what its scenarios are
known to read (`harness.selection.inputs`). Hidden files do not, unless a scenario is known to read them; neither do
keys and `.env` files, nor reports.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final

from harness.errors import HarnessError
from harness.scenario.model import Scenario
from harness.selection.changes import Changes
from harness.selection.inputs import InputFinder, Inputs
from harness.settings import Projects, Settings
from harness.source.document import real_path

_SECRET: Final = (
    ".env*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    ".netrc",
    ".npmrc",
    ".pypirc",
    "id_rsa*",
    "id_ed25519*",
)
_NO_SOURCE: Final = ("__pycache__", "node_modules")
_GIT: Final = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
_EXECUTABLE: Final = 0o755 << 16
_STARTED: Final = (1980, 1, 1, 0, 0, 0)


class UnsafeArchive(HarnessError):
    """An archive that is not what the command sent."""

    code = "cluster-worker"


@dataclass(frozen=True)
class Project:
    """The files of one or several projects.

    Attributes:
        top: a folder around all of them.
        folder: the current folder of the command, relative to `top`.
        names: the files, relative to `top`.
        digest: of the names and contents.
    """

    top: Path
    folder: str
    names: tuple[str, ...]
    digest: str

    def is_at(self, top: Path) -> bool:
        """True if a folder of this machine has the same files."""
        return (top / self.folder).is_dir() and digest_of(top, self.names) == self.digest


def project_of(scenarios: Iterable[Scenario], projects: Projects) -> Project:
    """Return the files that the workers need for these scenarios."""
    finder = InputFinder(projects, Changes("", frozenset()))
    files: set[Path] = set()
    roots: set[Path] = set()
    seen: dict[int, Inputs] = {}
    current = real_path(Path.cwd())
    for scenario in scenarios:
        settings = projects.of(scenario.file)
        root = real_path(settings.project)
        if root not in roots:
            roots.add(root)
            files |= set(_listed(root, settings))
        inputs = finder.inputs(scenario)
        if id(inputs) in seen:  # those of another scenario of its file
            continue
        seen[id(inputs)] = inputs
        known = {
            *inputs.files,
            *inputs.modules.files,
            *(each for at in inputs.folders for each in _below(at)),
        }
        allowed = [root, *map(real_path, _folders(scenario, settings))]
        files |= {each for each in known if os.path.isfile(each) and any(map(each.is_relative_to, allowed))}
    files = {each for each in files if not any(fnmatch(each.name, secret) for secret in _SECRET)}
    top = Path(os.path.commonpath([current, *roots, *files]))
    names = tuple(sorted(each.relative_to(top).as_posix() for each in files))
    return Project(top, os.path.relpath(current, top), names, digest_of(top, names))


def _folders(scenario: Scenario, settings: Settings) -> Iterator[Path]:
    """Yield the folders outside of its project of which a scenario may read files."""
    yield from (*settings.allow_paths, *settings.pythonpath, settings.cassettes)
    yield from (manifest.parent for manifest in scenario.manifests)
    if settings.judge_prompts is not None:
        yield settings.judge_prompts


def _listed(root: Path, settings: Settings) -> Iterator[Path]:
    """Yield the files of a project that are neither hidden nor made by a run."""
    reports = [root / "reports", real_path(settings.report)]
    for path in _in_git(root) or _below(root):
        inside = path.relative_to(root).parts
        if any(part.startswith(".") or part in _NO_SOURCE for part in inside):
            continue
        if (
            path.is_file()
            and real_path(path).is_relative_to(root)
            and not any(map(path.is_relative_to, reports))
        ):
            yield path


def _in_git(root: Path) -> list[Path]:
    """Return the files below a folder that git knows or would add; none if it is in no repository."""
    try:
        done = subprocess.run(_GIT, cwd=root, capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [root / os.fsdecode(name) for name in done.stdout.split(b"\0") if name and not done.returncode]


def _below(folder: Path) -> Iterator[Path]:
    for at, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not os.path.exists(os.path.join(at, name, "pyvenv.cfg"))]
        yield from (Path(at, name) for name in names)


def digest_of(top: Path, names: Sequence[str]) -> str:
    """Return the SHA-256 of files below a folder; "" if one of them cannot be read."""
    digest = sha256()
    try:
        for name in names:
            path = top / name
            content, executable = sha256(path.read_bytes()).hexdigest(), os.access(path, os.X_OK)
            digest.update(f"{name}\0{executable}\0{content}\n".encode())
    except OSError:
        return ""
    return digest.hexdigest()


def archive_of(project: Project) -> bytes:
    """Return the files as a ZIP archive, the same bytes for the same files."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in project.names:
            entry = zipfile.ZipInfo(name, _STARTED)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = _EXECUTABLE if os.access(project.top / name, os.X_OK) else 0o644 << 16
            archive.writestr(entry, (project.top / name).read_bytes())
    return file.getvalue()


def unpack(content: bytes, project: Project, folder: Path) -> Path:
    """Unpack an archive into a folder that is named by its digest, and return that. One that is there stays.

    Raises:
        UnsafeArchive: it names a file outside, or has other files than the project.
        OSError: it cannot be written.
    """
    place = folder / project.digest
    if project.is_at(place):
        return place
    folder.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(dir=folder))
    try:
        _extract(content, project, new)
        (new / project.folder).mkdir(parents=True, exist_ok=True)
        if not project.is_at(new):
            raise UnsafeArchive("the archive of the project arrived with other files than were sent")
        shutil.rmtree(place, ignore_errors=True)
        new.rename(place)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return place


def _extract(content: bytes, project: Project, new: Path) -> None:
    names = set(project.names)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for entry in archive.infolist():
            path = PurePosixPath(entry.filename)
            if path.is_absolute() or ".." in path.parts or entry.filename not in names:
                raise UnsafeArchive(
                    f"the archive of the project has a file that is not of it: {entry.filename}"
                )
            (new / path).parent.mkdir(parents=True, exist_ok=True)
            (new / path).write_bytes(archive.read(entry))
            if entry.external_attr >> 16 & 0o100:
                (new / path).chmod(0o755)
