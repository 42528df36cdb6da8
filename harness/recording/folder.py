"""A cassette on disk: a folder with one or more recordings, read and replaced as a whole.

The folder itself holds the first recording; its subfolders `recording-2`, `recording-3` … hold the others. Older
cassettes call them `take-2`, `take-3` …: these are read, and renamed when the cassette is written. Other files in the
folder are left alone. A change is made through a journal (`harness.recording.journal`), so that a reader sees all of
it or nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from harness.errors import CassetteBroken, CassetteError, SourceError, Span
from harness.recording import files, journal, unfinished
from harness.recording.interactions import Recording
from harness.recording.names import name_error
from harness.recording.reading import MAX_BYTES, broken, read
from harness.settings import RecordMode
from harness.source.display import clip, printable
from harness.source.document import Document, shown_path
from harness.source.document import read as read_document
from harness.time.real import real

PATIENCE_S: Final = 60.0
"""Real seconds to wait for another process that records the same cassette."""
_POLL_S: Final = 0.1


@contextmanager
def locked(path: Path, purpose: str, *, shared: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold a lock within the context. Does nothing on systems without `fcntl`.

    Args:
        path: what is locked; it need not exist.
        purpose: locks on one path with different purposes are independent.
        shared: allow other holders of a shared lock.
        wait: wait for another holder.

    Raises:
        BlockingIOError: another process holds it, and `wait` is false.
        OSError: the lock file cannot be opened.
    """
    try:
        import fcntl
    except ImportError:  # not a POSIX system: nothing to lock with
        yield
        return
    name = sha256(f"{purpose}:{path.resolve()}".encode("utf-8", "surrogateescape")).hexdigest()[:24]
    file = Path(tempfile.gettempdir()) / f"harness-{os.getuid()}-{name}.lock"
    how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    while True:
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, how)
            if _is_same_file(handle, file):
                break
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the previous holder has removed the file
    try:
        yield
    finally:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The exclusive lock shows that nobody else holds it; whoever opened the file sees that it is removed.
            if _is_same_file(handle, file):
                file.unlink()
        except OSError:
            pass
        fcntl.flock(handle, fcntl.LOCK_UN)  # a process that was forked meanwhile has it open, too
        os.close(handle)


def _is_same_file(handle: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), file.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


_NUMBERED: Final = re.compile(r"(?:recording|take)-([2-9]|[1-9][0-9]{1,5})")


class CassetteFolder:
    """The cassette `name` below the folder `root`. Neither need exist yet.

    Raises:
        CassetteError: the name is invalid, or a link leads out of `root`.
    """

    def __init__(self, root: Path, name: str) -> None:
        flaw = name_error(name)
        if flaw:
            raise CassetteError(f"'{printable(clip(name, 80))}' cannot be the name of a cassette: {flaw}")
        self.name, self.path = name, root / name
        self._root = root
        if not self._is_inside(self.path):
            raise CassetteError(
                f"the cassette '{name}' is not below {shown_path(root)}: a link leads out of it"
            )

    def folder_of(self, number: int) -> Path:
        """Return the folder that holds the files of a recording, or will hold them.

        Raises:
            ValueError: the number is less than 1.
        """
        folder, older = self._folder(number), self.path / f"take-{number}"
        return older if _has_files(older) and not _has_files(folder) else folder

    def _folder(self, number: int) -> Path:
        if number < 1:
            raise ValueError(f"recordings are counted from 1, not {number}")
        return self.path if number == 1 else self.path / f"recording-{number}"

    def numbers(self) -> list[int]:
        """Return the numbers of the recordings, in ascending order. The first is 1.

        Raises:
            CassetteBroken: an interrupted change cannot be finished.
        """
        with self._consistent():
            return self._numbers()

    def files(self) -> list[str]:
        """Return the existing files of the recordings as paths relative to the folder, in the order of recordings."""
        folders = [self.folder_of(number) for number in self.numbers()]
        paths = [folder / name for folder in folders for name in files.NAMES]
        return [self._from_here(path) for path in paths if path.is_file()]

    def load(self, number: int = 1) -> Recording | None:
        """Return a recording; None if there is none with this number.

        Raises:
            CassetteBroken: its files cannot be read, or are not valid.
        """
        with self._consistent():
            folder = self.folder_of(number)
            found = {name: self._document(folder / name) for name in files.NAMES}
        there = {name: document for name, document in found.items() if document is not None}
        return read(there) if there else None

    def save(self, recordings: Mapping[int, Recording]) -> bool:
        """Replace all recordings of the cassette by these, by number, atomically.

        Returns:
            True if files changed; False if they were up to date, and were not touched.

        Raises:
            CassetteError: the files cannot be written.
        """
        new = {
            self._from_here(self._folder(number) / name): data
            for number, recording in recordings.items()
            for name, data in files.write(recording).items()
        }
        try:
            return self._save(new)
        except OSError as error:
            raise CassetteError(f"the cassette '{self.name}' cannot be written: {_reason(error)}") from None

    def unfinished(self, mode: RecordMode, number: int) -> Path:
        """Return the folder for the calls of a recording that is being made; it need not exist.

        What was made to replace a recording does not complete one, and the reverse.
        """
        kind = mode.value if mode in (RecordMode.ALL, RecordMode.REWRITE) else "missing"
        return self.path / unfinished.FOLDER / kind / str(number)

    def calls_unfinished(self) -> int:
        """Return the number of calls that recordings which did not end have left for the next one."""
        return sum(each.name.isdecimal() for each in (self.path / unfinished.FOLDER).glob("*/*/*"))

    def discard_unfinished(self) -> None:
        """Remove what recordings that did not end have left."""
        shutil.rmtree(self.path / unfinished.FOLDER, ignore_errors=True)

    def remove(self) -> None:
        """Delete all recordings, and the folders that become empty. Other files stay.

        Raises:
            CassetteError: the files cannot be deleted.
        """
        self.save({})
        self.discard_unfinished()
        for folder in (self.path, *self.path.parents):
            if folder == self._root:
                break
            try:
                folder.rmdir()
            except OSError:  # missing, or not empty
                break

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Reserve the cassette for recording by this process, within the context.

        The processes of a command that was killed still finish their calls: they are waited for.

        Raises:
            CassetteError: another process is recording it, or it cannot be locked.
        """
        with ExitStack() as held:
            until = real.monotonic() + PATIENCE_S
            try:
                while True:
                    with suppress(BlockingIOError) if real.monotonic() < until else nullcontext():
                        held.enter_context(locked(self.path, "recording", wait=False))
                        break
                    real.sleep(_POLL_S)
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
            self._recover()
            folders = {*self._folders(), *((self.path / name).parent for name in new)}
            known = [self._from_here(folder / name) for folder in folders for name in files.NAMES]
            journal.discard(self.path, known)
            for name in known:
                path = self.path / name
                if path.is_dir() or not self._is_inside(path.parent):
                    raise CassetteError(f"{shown_path(path)} is in the way of the cassette '{self.name}'")
            put = {name: data for name, data in new.items() if not _has_content(self.path / name, data)}
            remove = [name for name in known if name not in new and os.path.lexists(self.path / name)]
            if not put and not remove:
                return False
            journal.commit(self.path, put, remove)
            return True

    def _from_here(self, path: Path) -> str:
        return path.relative_to(self.path).as_posix()

    def _folders(self) -> list[Path]:
        """Return the existing folders that may hold recordings, `take-N` included."""
        with os.scandir(self.path) as entries:
            numbered = [
                Path(entry.path) for entry in entries if _NUMBERED.fullmatch(entry.name) and entry.is_dir()
            ]
        return [self.path, *numbered]

    def _numbers(self) -> list[int]:
        if not self.path.is_dir():
            return []
        folders = filter(_has_files, self._folders())
        names = (_NUMBERED.fullmatch(self._from_here(folder)) for folder in folders)
        return sorted({1 if name is None else int(name[1]) for name in names})

    @contextmanager
    def _consistent(self) -> Iterator[None]:
        """Within the context, no change of the files is in progress. An interrupted one is completed first."""
        if not self.path.is_dir():
            yield
            return
        with _locked_if_possible(self.path, shared=True):
            if not journal.is_pending(self.path):
                yield
                return
        with _locked_if_possible(self.path, shared=False):
            try:
                self._recover()
            except OSError as error:
                text = f"its recording was interrupted, and cannot be finished: {_reason(error)}"
                raise CassetteBroken(text, self._at(self.path / journal.JOURNAL)) from None
            yield

    def _recover(self) -> None:
        if journal.is_pending(self.path):
            path = self.path / journal.JOURNAL
            if path.is_symlink():
                raise CassetteBroken("a journal is never a link; delete it", self._at(path))
            journal.recover(self.path, shown_path(path), self._may_be_changed)

    def _may_be_changed(self, name: str) -> bool:
        folder, _, file = name.rpartition("/")
        is_ours = not folder or _NUMBERED.fullmatch(folder) is not None
        return file in files.NAMES and is_ours and self._is_inside((self.path / name).parent)

    def _document(self, path: Path) -> Document | None:
        """Read a file of the cassette; None if there is no such file."""
        try:
            info = path.stat()
            if not self._is_inside(path):
                raise CassetteBroken("a link leads out of the cassettes", self._at(path))
            if not stat.S_ISREG(info.st_mode):
                raise CassetteBroken("this is not a file", self._at(path))
            if info.st_size > MAX_BYTES:
                raise CassetteBroken(f"larger than {MAX_BYTES // 1024**2} MiB", self._at(path))
            return read_document(path, yaml="vcr", error=SourceError, max_bytes=MAX_BYTES)
        except SourceError as error:
            raise broken(error) from None
        except (FileNotFoundError, NotADirectoryError):
            if path.is_symlink():
                raise CassetteBroken("a link that leads nowhere", self._at(path)) from None
            return None
        except OSError as error:
            raise CassetteBroken(f"cannot be read: {_reason(error)}", self._at(path)) from None

    def _at(self, path: Path) -> Span:
        return Span(shown_path(path), 1, 1)

    def _is_inside(self, path: Path) -> bool:
        try:
            return path.resolve().is_relative_to(self._root.resolve())
        except (OSError, RuntimeError):  # a link to itself
            return False


def cassette_names(root: Path) -> list[str]:
    """Return the names of the cassettes below `root`, sorted, also of those begun. Links are not followed."""
    marks = {*files.NAMES, journal.JOURNAL}
    names = []
    for path, folders, there in os.walk(root):
        numbered = [folder for folder in folders if _NUMBERED.fullmatch(folder)]
        begun = unfinished.FOLDER in folders
        folders[:] = [name for name in folders if not name.startswith(".") and name not in numbered]
        if begun or marks & set(there) or any(_has_files(Path(path, folder)) for folder in numbered):
            names.append(Path(path).relative_to(root).as_posix())
    return sorted(name for name in names if not name_error(name))


@contextmanager
def _locked_if_possible(path: Path, *, shared: bool) -> Iterator[None]:
    """Lock a cassette's files within the context, if possible: a reader must not fail for want of a lock."""
    with ExitStack() as held:
        with suppress(OSError):
            held.enter_context(locked(path, "files", shared=shared))
        yield


def _has_files(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in files.NAMES)


def _has_content(path: Path, data: bytes) -> bool:
    try:
        return not path.is_symlink() and path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


def _reason(error: OSError) -> str:
    return printable(error.strerror or str(error))
