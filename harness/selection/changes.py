"""The files that have changed, according to git: in the working tree, or since a branch point."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from harness.errors import FormatError, Problem
from harness.source.display import did_you_mean
from harness.source.document import real_path, shown_path

HEAD: Final = "HEAD"
_TIMEOUT_S: Final = 120.0
_HUNK: Final = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


@dataclass(frozen=True)
class Changes:
    """The files that were changed, added or removed since `ref`. The paths contain no links."""

    ref: str
    files: frozenset[Path]

    @cached_property
    def below(self) -> Mapping[Path, Path]:
        """One of the files by folder, for each folder that contains any, at any depth."""
        return {folder: path for path in sorted(self.files, reverse=True) for folder in path.parents}

    @cached_property
    def submodules(self) -> Sequence[Path]:
        """The changed paths that are folders: nested repositories, whose files git does not list."""
        return [path for path in sorted(self.files) if path.is_dir()]

    @property
    def description(self) -> str:
        """The changes as a reason for a selection."""
        return f"{'changed' if self.files else 'no file changed'} since {self.ref}"


def changes(folders: Iterable[Path], ref: str = HEAD) -> Changes:
    """Return the changed files in the working trees around these folders, since HEAD branched off from `ref`.

    The working tree is compared with the merge base of HEAD and `ref` (`git diff REF...`). So the result has the
    files of later commits, uncommitted changes, and untracked files that git does not ignore.

    Raises:
        FormatError: there is no repository (`no-repository`), no such commit (`unknown-ref`), or git fails.
    """
    roots = dict.fromkeys(_Repository.around(folder) for folder in dict.fromkeys(folders))
    files = {path for root in roots for path in root.changed_since(ref)}
    return Changes(ref, frozenset(files | {real_path(path) for path in files if path.is_symlink()}))


class ChangedLines:
    """The lines that were changed or added since a commit, and those around removed ones; all of a new file.

    Raises:
        FormatError: as `changes`.
    """

    def __init__(self, folders: Iterable[Path], ref: str = HEAD) -> None:
        self._repositories = dict.fromkeys(_Repository.around(folder) for folder in dict.fromkeys(folders))
        self._ref, self._ranges = ref, dict[Path, list[tuple[int, int]]]()
        self.files = changes(folders, ref).files

    def touches(self, file: Path, first: int, last: int) -> bool:
        """True if a line from `first` to `last` of a file has changed. The path contains no links."""
        if file not in self.files:
            return False
        if file not in self._ranges:
            home = next((each for each in self._repositories if file.is_relative_to(each.top)), None)
            self._ranges[file] = home.changed_lines(file, self._ref) if home is not None else []
        return any(start <= last and end >= first for start, end in self._ranges[file])


def is_ref(folder: Path, name: str) -> bool:
    """True if a name refers to a commit in the repository around a folder.

    Raises:
        FormatError: there is no repository.
    """
    return _Repository.around(folder).commit(name) is not None


@dataclass(frozen=True)
class _Repository:
    """A git repository, identified by the top folder of its working tree."""

    top: Path

    @classmethod
    def around(cls, folder: Path) -> _Repository:
        done = _git(folder, "rev-parse", "--show-toplevel")
        if done.returncode or not done.stdout.strip():
            text = f"{shown_path(folder)} is not in a git repository, so the changes are not known"
            said = _first_line(done.stderr)
            hint = "" if "not a git repository" in said else f"git says: {said}"
            raise FormatError(Problem("no-repository", text, hint=hint))
        return cls(real_path(Path(os.fsdecode(done.stdout.rstrip(b"\r\n")))))

    def commit(self, name: str) -> str | None:
        """Return the id of the commit that a name refers to, or None."""
        done = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        return done.stdout.decode().strip() or None if done.returncode == 0 else None

    def changed_since(self, ref: str) -> set[Path]:
        base = self._base(ref)
        diff = ("diff", "--name-only", "--no-renames", "--no-relative", "--no-ext-diff", "-z", base, "--")
        others = ("ls-files", "--others", "--exclude-standard", "-z")
        names = [*self._names(*diff), *self._names(*others)]
        return {self.top / os.fsdecode(name) for name in names if name}

    def changed_lines(self, file: Path, ref: str) -> list[tuple[int, int]]:
        """Return the first and last lines of each change of a file; of a new one, a range that has them all."""
        name = os.path.relpath(file, self.top)
        if not self._git("ls-files", "-z", "--", name).stdout:
            return [(1, sys.maxsize)]
        shown = (
            "diff",
            "--unified=0",
            "--no-color",
            "--no-ext-diff",
            "--no-renames",
            self._base(ref),
            "--",
            name,
        )
        hunks = _HUNK.findall(self._git(*shown).stdout.decode("utf-8", "replace"))
        return [(int(start), int(start) + max(int(count or 1), 1) - 1) for start, count in hunks]

    def _base(self, ref: str) -> str:
        """Return the merge base of a ref and HEAD."""
        commit = self.commit(ref)
        if commit is None:
            raise FormatError(self._unknown(ref))
        done = self._git("merge-base", commit, HEAD)
        if done.returncode:
            text = f"'{ref}' and the working tree have no commit in common"
            raise FormatError(Problem("unknown-ref", text, hint=self._shallow_hint()))
        return done.stdout.decode().split()[0]

    def _unknown(self, ref: str) -> Problem:
        if self.commit(HEAD) is None:
            return Problem("unknown-ref", "the repository has no commit yet")
        if os.path.lexists(ref):
            hint = "it is a path: write it in front of the option, or give the option its commit with '='"
            return Problem("unknown-ref", f"no branch, tag or commit '{ref}'", hint=hint)
        listed = self._git("for-each-ref", "--format=%(refname:short)", "--count=1000")
        known = listed.stdout.decode("utf-8", "replace").split()
        hint = did_you_mean(ref, known, listing=False) or self._shallow_hint() or did_you_mean(ref, known)
        return Problem("unknown-ref", f"no branch, tag or commit '{ref}'", hint=hint)

    def _shallow_hint(self) -> str:
        done = self._git("rev-parse", "--is-shallow-repository")
        if done.stdout.strip() != b"true":
            return ""
        return "this clone is shallow: `git fetch --unshallow`, or `fetch-depth: 0` where it is checked out"

    def _names(self, *args: str) -> list[bytes]:
        done = self._git(*args)
        if done.returncode:
            text = f"git cannot determine the changes: {_first_line(done.stderr)}"
            raise FormatError(Problem("no-repository", text))
        return done.stdout.split(b"\0")

    def _git(self, *args: str) -> subprocess.CompletedProcess[bytes]:
        return _git(self.top, *args)


def _git(folder: Path, *args: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *args],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"},
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        text = "git is not installed, so the changes are not known"
        raise FormatError(Problem("no-repository", text)) from None
    except subprocess.TimeoutExpired:
        text = f"git did not answer within {_TIMEOUT_S:.0f} s: git {args[0]}"
        raise FormatError(Problem("no-repository", text)) from None


def _first_line(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else "it failed without a message"
