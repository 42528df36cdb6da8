"""Puts back changes that the code of a project leaves in modules, and names those that are patches.

    begin(folders)    before a run: notes all that the code of these folders can name
    patches()         after it: the names of what was replaced, such as `json.dumps`
    put_back()        then: sets it back

Two rules take the place of a list of modules:

- Of other modules, those attributes are watched which the project's source names, and those of classes that it names.
  `json.dumps = …` names both parts, and so do `setattr(json, "dumps", …)` and `patch("json.dumps")`.
- Modules of the project are as they were right after their import: attributes, classes, and the contents of lists,
  dicts, sets and objects of its own classes that can be reached from there.

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
from operator import itemgetter
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from harness.time.rebinding import HARNESS, USER, is_replacement, origin, origin_of

_MOST: Final = 2_000
"""The most objects that are watched."""
_LONGEST: Final = 1_000
"""The most items of a list, dict or set that is watched."""
_PLAIN: Final = (list, dict, set)
_WORD: Final = re.compile(r"[^\W\d]\w*")
_GLOBAL: Final = re.compile(r"^\s*global\s+(.+)$", re.MULTILINE)
_TEST: Final = re.compile(r"(test_.*|.*_test|conftest)\.py")
_MUTABLE: Final = 1 << 9
"""The flag of classes that Python code has made."""
_LEAVES: Final = (str, bytes, int, float, FunctionType)
_BUILTINS: Final = vars(builtins)
_MISSING: Final = object()


class _Watched:
    """Attributes of a module, a class or an object, or items of a list, dict or set: those with some names, or all.

    Only what has a `label` is named.
    """

    def __init__(self, owner: Any, label: str = "", names: Sequence[str] = ()) -> None:
        self._owner, self._label, self._names = owner, label, names
        self._now: Any = owner if type(owner) in _PLAIN else vars(owner)
        self._read: Any = itemgetter(names[0], *names) if names else None
        self.note()

    def note(self) -> None:
        """Take the current values as those to put back."""
        now = self._now
        self._noted = self._read(now) if self._read else None
        self._before = {name: now[name] for name in self._names} if self._read else now.copy()

    def has_changed(self) -> bool:
        try:
            if self._read:
                return bool(self._read(self._now) != self._noted)
            return bool(self._now != self._before)
        except Exception:  # one is missing, or cannot be compared
            return True

    def accept(self) -> list[str]:
        """Take what was replaced, but not by the harness, as what is to be put back, and return the names."""
        changed = [name for name, _ in self._differences() if not _is_of_harness(self._now.get(name))]
        self._before |= {name: self._now[name] for name in changed if name in self._now}
        self._noted = (self._before[self._names[0]], *map(self._before.__getitem__, self._names))
        return [f"{self._label}{name}" for name in changed]

    def patches(self) -> Iterator[str]:
        """Yield the names of what was replaced, except by the module itself, whose state it is."""
        if self._label:
            own = _own_globals(getattr(self._owner, "__file__", None))
            yield from (f"{self._label}{name}" for name, _ in self._differences() if name not in own)

    def put_back(self) -> None:
        now, before = self._now, self._before
        if isinstance(before, list):
            now[:] = before
        elif isinstance(before, set):
            now.intersection_update(before)
            now.update(before)
        else:
            for name, value in [*self._differences()]:
                with suppress(AttributeError, TypeError):
                    if value is not _MISSING:
                        now.__setitem__(name, value) if now is self._owner else setattr(
                            self._owner, name, value
                        )
                    elif now is self._owner:
                        del now[name]
                    else:
                        delattr(self._owner, name)

    def _differences(self) -> Iterator[tuple[str, Any]]:
        """Yield the names of values that were replaced, removed or added, with the value before."""
        of_plain = self._now is self._owner
        for name, value in self._before.items():
            now = self._now.get(name, _MISSING)
            if now is value or _is_made_by_harness(now):  # it wraps what it needs when it is first used, for good
                continue
            if of_plain or not _is_special(name, value):
                yield name, value
        if not self._read:
            for name in self._now.keys() - self._before.keys():
                value = self._now[name]
                if of_plain or not (_is_special(name, value) or isinstance(value, ModuleType)):
                    yield name, _MISSING


def _is_special(name: str, value: Any) -> bool:
    """True for what Python and libraries note in modules and classes, such as `__warningregistry__`."""
    return name.startswith("__") and not isinstance(value, FunctionType)


@lru_cache(4096)
def _source(file: str | None) -> str:
    if file is None or not file.endswith(".py"):
        return ""
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


@lru_cache(256)
def _sources(folders: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files in folders that may yet be imported."""
    found = (
        str(file)
        for folder in folders
        for file in Path(folder).glob("*.py")
        if not _TEST.fullmatch(file.name)
    )
    return tuple(itertools.islice(found, _LONGEST))


@lru_cache(4096)
def _words(file: str | None) -> frozenset[str]:
    return frozenset(_WORD.findall(_source(file)))


@lru_cache(4096)
def _own_globals(file: str | None) -> frozenset[str]:
    """Return the names that the functions of a module assign as `global`."""
    return frozenset(_WORD.findall(" ".join(_GLOBAL.findall(_source(file)))))


class _Watch:
    """All that is watched in this process."""

    def __init__(self) -> None:
        self._folders: tuple[str, ...] = ()
        self._modules: dict[int, ModuleType] = {}
        self._scanned = 0
        self._known: tuple[Any, ...] = ()
        self._builtins: dict[str, Any] = {}
        self._replaced_builtins: list[str] = []
        self._others: list[_Watched] = []
        self._names: dict[int, set[str]] = {}
        self._own: list[_Watched] = []
        self.by_imports: list[str] = []
        """Names that were replaced while modules of the project were imported, since the run began. They stay so."""

    def begin(self, folders: Iterable[Path]) -> None:
        """Watch what the code in these folders can name, with the values that it has now."""
        self._folders = tuple(f"{folder}/" for folder in folders)
        self.by_imports = []
        if self._known != (self._folders, len(sys.modules), len(self._modules)):
            self._others, self._names, self._builtins = [], {}, {}
            self._note()
        else:
            for each in (*self._others, *self._own):
                if each.has_changed():
                    each.note()

    def add(self, modules: Iterable[ModuleType]) -> None:
        """Note modules of the project that a run has imported."""
        self._modules.update((id(module), module) for module in modules)
        for each in self._others:
            if each.has_changed():
                self.by_imports += each.accept()
        self._note()

    def put_back_builtins(self) -> None:
        """Put back the built-in names, which the harness needs, too, as soon as the code of the project has ended."""
        before = self._builtins
        if before and before != _BUILTINS:
            found = [name for name in _BUILTINS if name not in before or before[name] is not _BUILTINS[name]]
            for name in found:
                del _BUILTINS[name]
            _BUILTINS.update(before)
            self._replaced_builtins += [f"builtins.{name}" for name in found]

    def patches(self) -> list[str]:
        """Return the names of what was replaced since, except for the state of modules of the project."""
        self.put_back_builtins()
        found, self._replaced_builtins = self._replaced_builtins, []
        if self._scan():  # it may have registered itself
            self._own = []
        for each in (*self._others, *self._own):
            if each.has_changed():
                found += each.patches()
        return list(dict.fromkeys(found))

    def put_back(self) -> None:
        """Give everything the value that it had."""
        for each in (*self._others, *self._own):
            if each.has_changed():
                each.put_back()

    def _scan(self) -> bool:
        """Look for modules of the project that were imported by other means. True if there are new ones."""
        known, self._scanned = self._scanned, len(sys.modules)
        found = []
        for module in [*sys.modules.values()] if known != self._scanned else ():
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and id(module) not in self._modules and origin(file) is USER:
                self._modules[id(module)] = module
                found.append(file)
        return any(file.startswith(self._folders) for file in found)

    def _note(self) -> None:
        self._scan()
        self._known = (self._folders, len(sys.modules), len(self._modules))
        own = {
            key: module
            for key, module in self._modules.items()
            if (file := module.__file__ or "").startswith(self._folders)
            and not _TEST.fullmatch(Path(file).name)
        }
        files = {*(module.__file__ for module in own.values()), *_sources(self._folders)}
        if words := frozenset[str]().union(*map(_words, files)):
            self._builtins = self._builtins or _BUILTINS.copy()
            for owner, label, names in _named(words):
                known = self._names.setdefault(id(owner), set())
                if new := [
                    name for name in names if name not in known
                ]:  # what is known has its value of before
                    known.update(new)
                    self._others.append(_Watched(owner, label, new))
        self._own = [*_state_of(own)]


def _named(words: frozenset[str]) -> Iterator[tuple[Any, str, Sequence[str]]]:
    """Yield modules that are not the project's and their classes, with the attributes that are named."""
    modules = []
    for name, module in [*sys.modules.items()]:
        if (
            words.issuperset(name.split("."))
            and isinstance(module, ModuleType)
            and origin_of(module) not in (HARNESS, USER)
        ):
            modules.append(name)
            found = vars(module)
            named = [each for each in words.intersection(found) if not _is_of_harness(found[each])]
            if named:
                yield module, f"{name}.", named
            for each in named:
                if isinstance(cls := found[each], type) and cls.__flags__ & _MUTABLE:
                    attributes = vars(cls)
                    if of_class := [
                        a for a in words.intersection(attributes) if not _is_of_harness(attributes[a])
                    ]:
                        yield cls, f"{name}.{each}.", of_class
    if modules:
        yield sys.modules, "sys.modules: ", modules


def _is_of_harness(value: Any) -> bool:
    """True for the replacements that the harness has during a run alone."""
    return not is_replacement(value) and _is_made_by_harness(value)


def _is_made_by_harness(value: Any) -> bool:
    value = getattr(value, "_self_wrapper", value)  # of wrapt
    code = getattr(getattr(value, "func", value), "__code__", None)
    return type(value).__module__.startswith("harness.") or (
        isinstance(code, CodeType) and origin(code.co_filename) is HARNESS
    )


def _state_of(own: Mapping[int, ModuleType]) -> Iterator[_Watched]:
    """Yield modules of the project, and all that can be reached from them and belongs to them."""
    names = {module.__name__ for module in own.values()}
    waiting: list[Any] = [*own.values()]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST:
        owner = waiting.pop()
        kind, label = type(owner), ""
        if id(owner) in seen or isinstance(owner, _LEAVES):
            continue
        seen.add(id(owner))
        if kind is tuple:
            waiting += owner[:_LONGEST]
            continue
        if kind in _PLAIN:
            inner = owner.values() if kind is dict else owner
        elif id(owner) in own:
            inner, label = vars(owner).values(), f"{owner.__name__}."
        elif isinstance(owner, type) and owner.__module__ in names:
            inner, label = vars(owner).values(), f"{owner.__module__}.{owner.__qualname__}."
        elif kind.__module__ in names and hasattr(owner, "__dict__"):
            inner = vars(owner).values()
        else:
            continue
        if len(inner) <= _LONGEST:
            yield _Watched(owner, label)
            waiting += inner


watch: Final = _Watch()
"""The watch of this process, in which runs follow each other."""
