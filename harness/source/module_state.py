"""Puts back what the code of a project leaves changed in modules, and names what it replaced there.

    begin(folders)    before a run: notes all that the code of these folders can name
    end()             after it: the names of what was replaced, such as `json.dumps`
    put_back()        then: gives everything the value that it had

Two rules take the place of a list of modules:

- Of other modules, those attributes are watched which the project's source names, and those of classes that it names.
  `json.dumps = …` names both parts, and so do `setattr(json, "dumps", …)` and `patch("json.dumps")`.
- Modules of the project are as they were right after their import: attributes, classes, and the contents of lists,
  dicts, sets and objects of its own classes that can be reached from there. Locks that were free are released.

What the harness itself has put in place, before or since, is left alone: it wraps what it needs at first use.
A module that is imported may register itself in others of the project. So their state is noted anew after an import.
"""

from __future__ import annotations

import builtins
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import itemgetter, methodcaller
from pathlib import Path
from threading import Lock
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from harness.time.rebinding import HARNESS, USER, is_replacement, origin, origin_of

_MOST: Final = 2_000
"""The most objects that are watched."""
_LONGEST: Final = 1_000
"""The most items of a list, dict or set that is watched, and the most files that are read."""
_PLAIN: Final = (list, dict, set)
_LOCK: Final = type(Lock())
_WORD: Final = re.compile(r"[^\W\d]\w*")
_GLOBAL: Final = re.compile(r"^\s*global\s+(.+)$", re.MULTILINE)
_TEST: Final = re.compile(r"(test_.*|.*_test|conftest)\.py")
_BUILTINS: Final = vars(builtins)
_MISSING: Final = object()


class _Space:
    """A module, class, object, list, dict or set, with what it has now: some names of it, or all.

    What was replaced in it is named if it has a `label`.
    """

    def __init__(self, owner: Any, label: str = "", names: Sequence[str] = ()) -> None:
        self._owner, self._label, self._names = owner, label, names
        self._now: Any = owner if type(owner) in _PLAIN else vars(owner)
        self._read: Any = itemgetter(names[0], *names) if names else methodcaller("copy")
        self._noted = self._read(self._now)

    def has_changed(self) -> bool:
        try:
            return bool(self._read(self._now) != self._noted)
        except Exception:  # one is missing, or cannot be compared
            return True

    def replaced(self) -> Iterator[str]:
        """Yield the names of what was replaced, except by the module itself, whose state it is."""
        if self._label:
            own = _assigned(getattr(self._owner, "__file__", None))
            yield from (f"{self._label}{name}" for name, _ in self._changes() if name not in own)

    def put_back(self) -> None:
        if type(self._owner) in _PLAIN and not self._names:
            self._owner.clear()
            (self._owner.extend if isinstance(self._owner, list) else self._owner.update)(self._noted)
            return
        for name, value in [*self._changes()]:
            if isinstance(self._owner, type):
                with suppress(AttributeError, TypeError):  # it may refuse that
                    delattr(self._owner, name) if value is _MISSING else setattr(self._owner, name, value)
            elif value is _MISSING:
                del self._now[name]
            else:
                self._now[name] = value

    def _changes(self) -> Iterator[tuple[str, Any]]:
        """Yield the names of values that were replaced, removed or added, with the value before."""
        names = self._names
        before = dict(zip((names[0], *names), self._noted, strict=True)) if names else self._noted
        for name in sorted(before if names else before.keys() | self._now.keys()):
            was, now = before.get(name, _MISSING), self._now.get(name, _MISSING)
            if now is was or _is_of_harness(now) or (_is_of_harness(was) and not is_replacement(was)):
                continue
            if was is _MISSING and isinstance(now, ModuleType):  # it was imported since
                continue
            if name.startswith("__") and not isinstance(now if was is _MISSING else was, FunctionType):
                continue  # such as __warningregistry__
            yield name, was


class _Lock:
    """A lock that is free now. The next run would wait for ever for one that is left locked."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock

    def has_changed(self) -> bool:
        return bool(self._lock.locked())

    def replaced(self) -> Iterator[str]:
        yield from ()

    def put_back(self) -> None:
        self._lock.release()


def _is_of_harness(value: Any) -> bool:
    """True for what the harness puts in place of something else."""
    with suppress(Exception):  # a proxy of nothing
        value = getattr(value, "_self_wrapper", value)  # of wrapt
        code = getattr(getattr(value, "func", value), "__code__", None)
        return str(getattr(value, "__module__", "")).startswith("harness.") or (
            isinstance(code, CodeType) and origin(code.co_filename) is HARNESS
        )
    return False


# ---------------------------------------------------------------- source


@lru_cache(4096)
def _source(file: str | None) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return Path(file).read_text("utf-8") if file is not None and file.endswith(".py") else ""
    return ""


@lru_cache(4096)
def _words(file: str) -> frozenset[str]:
    return frozenset(_WORD.findall(_source(file)))


@lru_cache(4096)
def _assigned(file: str | None) -> frozenset[str]:
    """Return the names that the functions of a module assign as `global`."""
    return frozenset(_WORD.findall(" ".join(_GLOBAL.findall(_source(file)))))


@lru_cache(256)
def _files(folders: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files in folders that may yet be imported."""
    found = (str(file) for folder in folders for file in Path(folder).glob("*.py") if not _is_test(file))
    return tuple(itertools.islice(found, _LONGEST))


def _is_test(file: Path) -> bool:
    return _TEST.fullmatch(file.name) is not None


# ---------------------------------------------------------------- what is watched


class _Watch:
    """All that is watched in this process."""

    def __init__(self) -> None:
        self._folders: tuple[str, ...] = ()
        self._modules: dict[int, ModuleType] = {}
        self._seen: set[int] = set()
        self._scanned = 0
        self._key: Any = None
        self._builtins = _BUILTINS.copy()
        self._others: list[_Space] = []
        self._own: list[_Space | _Lock] = []
        self._replaced: list[str] = []
        self._by_imports: list[str] = []
        self._is_on = False

    def begin(self, folders: Sequence[Path]) -> None:
        """Watch what the code in these folders can name, with the values that it has now; nothing without any."""
        self._is_on, self._replaced, self._by_imports = bool(folders), [], []
        if not folders:
            return
        self._folders = tuple(f"{folder}/" for folder in folders)
        self._scan()
        key = self._folders, self._scanned, len(self._modules)
        if key != self._key or any(each.has_changed() for each in (*self._others, *self._own)):
            self._note()
            self._key = key
        self._builtins = _BUILTINS.copy()

    def add(self, modules: Iterable[ModuleType]) -> None:
        """Note modules of the project that a run has imported."""
        self._modules.update((id(module), module) for module in modules)
        for each in self._others:
            if each.has_changed():
                self._by_imports += each.replaced()
        self._note()
        self._key = None  # what the harness has in place during the run is not noted

    def put_back_builtins(self) -> None:
        """Put back the built-in names, which the harness needs, too, as soon as the code of the project has ended."""
        if self._is_on and self._builtins != _BUILTINS:
            for name in _BUILTINS.keys() - self._builtins.keys():
                del _BUILTINS[name]
                self._replaced += [f"builtins.{name}"]
            for name, value in self._builtins.items():
                if name not in _BUILTINS or _BUILTINS[name] is not value:
                    _BUILTINS[name] = value
                    self._replaced += [f"builtins.{name}"]

    def end(self) -> tuple[list[str], list[str]]:
        """Return the names of what was replaced since the run began, and of what imports replaced, which stays."""
        if not self._is_on:
            return [], []
        self.put_back_builtins()
        self._is_on = False
        if self._scan():  # a new module may have registered itself
            self._own = []
        for each in (*self._others, *self._own):
            if each.has_changed():
                self._replaced += each.replaced()
        return sorted({*self._replaced}), sorted({*self._by_imports})

    def put_back(self) -> None:
        """Give everything the value that it had when the run began."""
        for each in (*self._others, *self._own):
            if each.has_changed():
                each.put_back()

    def _scan(self) -> bool:
        """Look for modules of the project that were imported by other means. True if there are new ones."""
        if self._scanned == len(sys.modules):
            return False
        self._scanned, found = len(sys.modules), []
        for module in [module for module in [*sys.modules.values()] if id(module) not in self._seen]:
            self._seen.add(id(module))
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and origin(file) is USER and id(module) not in self._modules:
                self._modules[id(module)] = module
                found.append(file)
        return any(file.startswith(self._folders) for file in found)

    def _note(self) -> None:
        own = {
            key: module
            for key, module in self._modules.items()
            if (file := module.__file__ or "").startswith(self._folders) and not _is_test(Path(file))
        }
        files = {*(module.__file__ or "" for module in own.values()), *_files(self._folders)}
        spaces: dict[int, _Space] = {}
        for owner, label, names in _named(frozenset[str]().union(*map(_words, files))):
            if names and id(owner) not in spaces:
                spaces[id(owner)] = _Space(owner, label, [*names])
        self._others, self._own = [*spaces.values()], [*_state_of(own)]


def _named(words: frozenset[str]) -> Iterator[tuple[Any, str, Iterable[str]]]:
    """Yield modules that are not the project's and their classes, with the attributes that are named."""
    modules = {
        name: module
        for name, module in [*sys.modules.items()]
        if words.issuperset(name.split("."))
        and isinstance(module, ModuleType)
        and origin_of(module) not in (HARNESS, USER)
        and (getattr(module, "__file__", None) or name in sys.builtin_module_names)  # a folder, or a stand-in
    }
    yield sys.modules, "sys.modules: ", modules
    for name, module in modules.items():
        found = vars(module)
        yield module, f"{name}.", words & found.keys()
        for each in words & found.keys():
            if isinstance(cls := found[each], type):
                yield cls, f"{name}.{each}.", words & vars(cls).keys()


def _state_of(own: Mapping[int, ModuleType]) -> Iterator[_Space | _Lock]:
    """Yield modules of the project, and all that can be reached from them and belongs to them."""
    names = {module.__name__ for module in own.values()}
    waiting: list[Any] = [*own.values()]
    seen = {id(_BUILTINS), id(sys.modules)}
    while waiting and len(seen) < _MOST:
        owner = waiting.pop()
        kind, label = type(owner), ""
        if id(owner) in seen:
            continue
        seen.add(id(owner))
        if kind in _PLAIN or kind is tuple:
            inner = owner.values() if kind is dict else owner
        elif id(owner) in own:
            inner, label = vars(owner).values(), f"{owner.__name__}."
        elif isinstance(owner, type) and owner.__module__ in names:
            inner, label = vars(owner).values(), f"{owner.__module__}.{owner.__qualname__}."
        elif kind.__module__ in names and hasattr(owner, "__dict__"):
            inner = vars(owner).values()
        else:
            if kind is _LOCK and not owner.locked():
                yield _Lock(owner)
            continue
        if len(inner) <= _LONGEST:
            waiting += inner
            if kind is not tuple:
                yield _Space(owner, label)


watch: Final = _Watch()
"""The watch of this process, in which runs follow each other."""
