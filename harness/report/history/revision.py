"""Read the commit and branch of a folder from `.git`. Git itself is not run, so neither are its hooks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

_COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_HEADS: Final = "refs/heads/"
_MAX_BYTES: Final = 50_000_000
"""The most bytes read of a file of `.git`; packed-refs has a line for each branch and tag."""


class Revision(NamedTuple):
    """The commit that is checked out, and its branch; None if unknown."""

    commit: str | None = None
    branch: str | None = None


def revision_of(folder: Path) -> Revision:
    """Return the revision of the repository that contains a folder; a detached HEAD has no branch."""
    for at in (folder.resolve(), *folder.resolve().parents):
        if (at / ".git").exists():
            return _revision(_git_folder(at / ".git"))
    return Revision()


def _git_folder(git: Path) -> Path:
    """Return the folder with HEAD. In a work tree or submodule `.git` is a file that names it."""
    named = _text(git).partition("gitdir:")[2].strip() if git.is_file() else ""
    return git.parent / named if named else git


def _revision(git: Path) -> Revision:
    head = _text(git / "HEAD").strip()
    if not head.startswith("ref:"):
        return Revision(_commit(head))
    name = head.removeprefix("ref:").strip()
    if not name.startswith(_HEADS) or ".." in name:
        return Revision()
    shared = git / (_text(git / "commondir").strip() or ".")  # work trees share the branches of the main one
    commit = _commit(_text(shared / name).strip()) or _packed(shared, name)
    return Revision(commit, name.removeprefix(_HEADS))


def _packed(git: Path, name: str) -> str | None:
    for line in _text(git / "packed-refs").splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name:
            return _commit(commit)
    return None


def _commit(text: str) -> str | None:
    return text if _COMMIT.fullmatch(text) else None


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_MAX_BYTES).decode(errors="replace")
    except OSError:
        return ""
