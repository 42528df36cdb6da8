"""One cassette on disk: its takes in the files of a folder, read and replaced as a whole.

The folder itself holds the first take, `take-2`, `take-3` … in it the others. What else is in it (a README) stays.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from harness.draw.escaping import clip, printable
from harness.errors import CassetteBroken, CassetteError, Span
from harness.recording import files, journal
from harness.recording.headers import kept_request_headers, kept_response_headers
from harness.recording.interactions import Take
from harness.recording.locks import locked
from harness.recording.names import flaw_in
from harness.recording.reading import MAX_BYTES, read
from harness.source.document import shown_path

__all__ = ["CassetteFolder", "cassette_names", "kept_request_headers", "kept_response_headers"]

_TAKE: Final = re.compile(r"take-([2-9]|[1-9][0-9]{1,5})")


class CassetteFolder:
    """The cassette `name` below `root`, which need not exist yet.

    Raises:
        ValueError: no cassette can have this name, or a link leads it out of `root`.
    """

    def __init__(self, root: Path, name: str) -> None:
        flaw = flaw_in(name)
        if flaw:
            raise ValueError(f"'{printable(clip(name, 80))}' cannot be the name of a cassette: {flaw}")
        self.name, self.path = name, root / name
        self._root = root
        if not self._is_inside(self.path):
            raise ValueError(f"the cassette '{name}' is not below {shown_path(root)}: a link leads out of it")

    def folder_of(self, take: int) -> Path:
        """Where the files of a take are, recorded or not.

        Raises:
            ValueError: takes are counted from 1.
        """
        if take < 1:
            raise ValueError(f"takes are counted from 1, not {take}")
        return self.path if take == 1 else self.path / f"take-{take}"

    def exists(self) -> bool:
        """Whether anything is recorded.

        Raises:
            CassetteBroken: an interrupted change cannot be finished.
        """
        return bool(self.takes())

    def takes(self) -> list[int]:
        """The numbers of the takes that are recorded, from 1.

        Raises:
            CassetteBroken: an interrupted change cannot be finished.
        """
        with self._settled():
            return self._takes()

    def load(self, take: int = 1) -> Take | None:
        """A take, or None when it is not recorded.

        Raises:
            CassetteBroken: its files cannot be read, or do not hold one.
        """
        folder = self.folder_of(take)
        with self._settled():
            found = {name: self._read(folder / name) for name in files.NAMES}
        there = {name: data for name, data in found.items() if data is not None}
        return read(there, lambda name: shown_path(folder / name)) if there else None

    def save(self, takes: Mapping[int, Take]) -> bool:
        """Make these, by number, the takes of the cassette; others go. Whoever reads sees all of it or nothing.

        Returns:
            False when the files would be as they are: they are not touched then.

        Raises:
            CassetteError: it cannot be written.
        """
        new = {
            self._from_here(self.folder_of(number) / name): data
            for number, take in takes.items()
            for name, data in files.write(take).items()
        }
        try:
            return self._save(new)
        except OSError as error:
            raise CassetteError(f"the cassette '{self.name}' cannot be written: {_reason(error)}") from None

    def remove(self) -> None:
        """Delete all takes, and the folders that are then empty. What else is in the folder stays.

        Raises:
            CassetteError: it cannot be done.
        """
        self.save({})
        for folder in (self.path, *self.path.parents):
            if folder == self._root:
                break
            try:
                folder.rmdir()
            except OSError:  # it is not there, or something is still in it
                break

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Keep other processes from recording this cassette for as long as this lasts.

        Raises:
            CassetteError: one does.
        """
        with ExitStack() as held:
            try:
                held.enter_context(locked(self.path, "recording", wait=False))
            except BlockingIOError:
                raise CassetteError(
                    f"the cassette '{self.name}' is being recorded by another process"
                ) from None
            except OSError as error:
                raise CassetteError(
                    f"the cassette '{self.name}' cannot be locked: {_reason(error)}"
                ) from None
            yield

    def _save(self, new: Mapping[str, bytes]) -> bool:
        if not new and not self.path.exists():
            return False
        self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path, "files"):
            self._settle()
            folders = {*self._folders().values(), *((self.path / name).parent for name in new)}
            known = [self._from_here(folder / name) for folder in folders for name in files.NAMES]
            journal.sweep(self.path, known)
            for name in known:
                path = self.path / name
                if path.is_dir() or not self._is_inside(path.parent):
                    raise CassetteError(f"{shown_path(path)} is in the way of the cassette '{self.name}'")
            put = {name: data for name, data in new.items() if not _holds(self.path / name, data)}
            remove = [name for name in known if name not in new and os.path.lexists(self.path / name)]
            if not put and not remove:
                return False
            journal.change(self.path, put, remove)
            return True

    def _from_here(self, path: Path) -> str:
        return path.relative_to(self.path).as_posix()

    def _folders(self) -> dict[int, Path]:
        """The folders of takes that are there, by number, recorded or not."""
        with os.scandir(self.path) as entries:
            found = [(match[1], entry) for entry in entries if (match := _TAKE.fullmatch(entry.name))]
        return {1: self.path} | {
            int(number): Path(entry.path) for number, entry in sorted(found) if entry.is_dir()
        }

    def _takes(self) -> list[int]:
        if not self.path.is_dir():
            return []
        folders = self._folders()
        return sorted(
            number
            for number, folder in folders.items()
            if any(os.path.lexists(folder / name) for name in files.NAMES)
        )

    @contextmanager
    def _settled(self) -> Iterator[None]:
        """No change of the files is going on, nor is one left unfinished."""
        if not self.path.is_dir():
            yield
            return
        with _locked_if_possible(self.path, shared=True):
            if not journal.is_open(self.path):
                yield
                return
        with _locked_if_possible(self.path, shared=False):
            try:
                self._settle()
            except OSError as error:
                text = f"its recording was interrupted, and cannot be finished: {_reason(error)}"
                raise CassetteBroken(text, self._at(self.path / journal.JOURNAL)) from None
            yield

    def _settle(self) -> None:
        if journal.is_open(self.path):
            path = self.path / journal.JOURNAL
            if path.is_symlink():
                raise CassetteBroken("a journal is never a link; delete it", self._at(path))
            journal.settle(self.path, shown_path(path), self._may_be_changed)

    def _may_be_changed(self, name: str) -> bool:
        folder, _, file = name.rpartition("/")
        of_take = not folder or _TAKE.fullmatch(folder) is not None
        return file in files.NAMES and of_take and self._is_inside((self.path / name).parent)

    def _read(self, path: Path) -> bytes | None:
        """What is in a file of the cassette, None when there is no such file."""
        try:
            info = path.stat()
            if not self._is_inside(path):
                raise CassetteBroken("a link leads out of the cassettes", self._at(path))
            if not stat.S_ISREG(info.st_mode):
                raise CassetteBroken("this is no file", self._at(path))
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            if path.is_symlink():
                raise CassetteBroken("a link that leads nowhere", self._at(path)) from None
            return None
        except OSError as error:
            raise CassetteBroken(f"cannot be read: {_reason(error)}", self._at(path)) from None
        if len(data) > MAX_BYTES:
            raise CassetteBroken(f"larger than {MAX_BYTES // 1024**2} MiB", self._at(path))
        return data

    def _at(self, path: Path) -> Span:
        return Span(shown_path(path), 1, 1)

    def _is_inside(self, path: Path) -> bool:
        try:
            return path.resolve().is_relative_to(self._root.resolve())
        except (OSError, RuntimeError):  # a link to itself
            return False


def cassette_names(root: Path) -> list[str]:
    """The cassettes below `root`, in the order of their names. Links are not followed."""
    marks = {*files.NAMES, journal.JOURNAL}
    names = []
    for path, folders, there in os.walk(root):
        takes = [f"{path}/{folder}" for folder in folders if _TAKE.fullmatch(folder)]
        folders[:] = [
            folder for folder in folders if not folder.startswith(".") and not _TAKE.fullmatch(folder)
        ]
        if marks & set(there) or any(
            os.path.lexists(f"{take}/{name}") for take in takes for name in files.NAMES
        ):
            names.append(Path(path).relative_to(root).as_posix())
    return sorted(name for name in names if not flaw_in(name))


@contextmanager
def _locked_if_possible(path: Path, *, shared: bool) -> Iterator[None]:
    """The lock on a cassette's files; nothing where no lock can be had, since reading must not fail for that."""
    with ExitStack() as held:
        with suppress(OSError):
            held.enter_context(locked(path, "files", shared=shared))
        yield


def _holds(path: Path, data: bytes) -> bool:
    try:
        return not path.is_symlink() and path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


def _reason(error: OSError) -> str:
    return printable(error.strerror or str(error))
