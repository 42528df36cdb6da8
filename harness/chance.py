"""Ids and random numbers that the code of a run draws: they come from the seed, so that every run draws the same.

    with seeded_chance(seed, scenario):     uuid4(), os.urandom, secrets, random, numpy.random, … repeat

Each draw takes the next number of a stream. There is one for each visit of a node and each package that draws: a
library that begins to draw, and a branch that runs more often, do not change what other code draws. Code that calls
`random.seed` gets what it asked for. What a module draws while it is imported depends on its name alone, since it is
imported once for all runs.
"""

from __future__ import annotations

import importlib
import itertools
import os
import random
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from types import FrameType, ModuleType
from typing import Any, Final
from weakref import WeakKeyDictionary

from harness.time.rebinding import HARNESS, PYTHON, USER, Origin, current_visit, origin, rebind, when_imported

_IMPORTS: Final[WeakKeyDictionary[ModuleType, dict[Any, Any]]] = WeakKeyDictionary()
"""The streams of modules that draw while they are imported."""
_IMPORTS_IN_PROGRESS: Final[Mapping[str, object]] = getattr(
    importlib._bootstrap, "_module_locks", {"?": None}
)
"""By name, the modules that are being imported. Where Python does not tell, each draw looks for one."""
_FOR_CALLERS: Final = frozenset({"pydantic", "numpy"})
"""Libraries that draw for their callers alone, as Python does: `Field(default_factory=uuid4)`."""
_RESEEDING: Final = ("seed", "setstate", "set_state")
"""Functions that set the state of a generator which a module shares between all its users."""


class Chance:
    """The streams of one run.

    Args:
        root: begins the key of each stream.

    Attributes:
        drawn: the user's code drew something, so that a run with another seed may differ.
        used: that, or a library drew something in a visit, so that the trace of a run with another seed may differ.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._streams: dict[Any, Any] = {}
        self._forks = itertools.count(1)
        self._numpy: _SharedNumpy | None = None
        self._drawn = self._used = False

    @property
    def drawn(self) -> bool:
        return self._drawn or (self._numpy is not None and self._numpy.moved)

    @property
    def used(self) -> bool:
        return self._used or self.drawn

    def seed_numpy(self) -> None:
        """Seed the generator that all users of numpy share, if numpy was imported."""
        module = sys.modules.get("numpy.random.mtrand")
        if module is not None and hasattr(module, "_rand"):
            self._numpy = _SharedNumpy(module._rand, f"{self._root}/numpy")

    def release_numpy(self) -> None:
        """Give that generator the state that it had."""
        if self._numpy is not None:
            self._numpy.restore()

    def fork(self) -> Chance:
        """Return the streams of a child process, which draws nothing that this one or another child draws."""
        return Chance(f"{self._root}/fork {next(self._forks)}")

    def generator(self, kind: Callable[[str], Any], owner: str, *, shared: bool = False) -> Any:
        """Return the generator of a kind for a package, in the current visit or, after `shared`, in all visits."""
        visit = current_visit.get()
        if not owner:
            self._drawn = True
        elif visit:
            self._used = True
        streams = self._streams
        stream = streams.get((kind, owner)) or streams.get((kind, owner, visit))
        if stream is None:
            key, name = ((kind, owner), owner) if shared else ((kind, owner, visit), f"{visit}/{owner}")
            stream = streams[key] = kind(f"{self._root}/{name}")
        return stream


class _SharedNumpy:
    """The generator behind numpy's functions, which libraries reach by its name: `numpy.random.mtrand._rand`."""

    def __init__(self, generator: Any, key: str) -> None:
        self._generator, self._before = generator, generator.get_state()
        generator.seed(random.Random(key).getrandbits(32))
        self._seeded = self._place()

    def _place(self) -> tuple[Any, ...]:
        _, words, *rest = self._generator.get_state()
        return (words[0], *rest)

    @property
    def moved(self) -> bool:
        """Something was drawn from it."""
        return self._place() != self._seeded

    def restore(self) -> None:
        self._generator.set_state(self._before)


_current: Chance | None = None
_of_fork: Chance | None = None
"""The streams of the child process that is about to be forked."""


def _owner(caller: FrameType | None, where: Origin | str) -> str:
    """Return the package that draws; "" for the user's code. Modules of Python draw for their callers.

    Only `tempfile` draws for itself: once in a process more than later. `where` is the origin of the caller.
    """
    while caller is not None:
        if where is PYTHON:
            if caller.f_code.co_filename == tempfile.__file__:
                return "tempfile"
        elif where is USER:
            return ""
        elif where not in _FOR_CALLERS:
            return str(where)
        caller = caller.f_back
        where = PYTHON if caller is None else origin(caller.f_code.co_filename)
    return str(PYTHON)


def _imported(caller: FrameType | None) -> ModuleType | None:
    """Return the module whose import the code belongs to, if it runs in one."""
    while caller is not None and origin(caller.f_code.co_filename) is not HARNESS:
        above = caller.f_back
        if caller.f_code.co_name != "<module>" or above is None:
            caller = above
        elif above.f_code.co_filename.startswith("<frozen importlib"):
            return sys.modules.get(caller.f_globals["__name__"])
        else:
            caller = above
    return None


def _generator(kind: Callable[[str], Any], *, shared: bool = False) -> Any | None:
    """Return the generator that answers the caller of a replacement; None outside runs and for the harness itself."""
    chance, caller = _current, sys._getframe(2)
    if chance is None:
        return None
    where = origin(caller.f_code.co_filename)
    if where is HARNESS:
        return None
    module = _imported(caller) if _IMPORTS_IN_PROGRESS else None
    if module is None:
        return chance.generator(kind, _owner(caller, where), shared=shared)
    streams = _IMPORTS.setdefault(module, {})
    if kind not in streams:
        streams[kind] = kind(f"import/{module.__name__}")
    return streams[kind]


def _bytes(original: Callable[[int], bytes]) -> Callable[[int], bytes]:
    def urandom(size: int, /) -> bytes:
        stream = _generator(random.Random)
        return original(size) if stream is None else bytes(stream.randbytes(size))

    return urandom


def _node(original: Callable[[], int]) -> Callable[[], int]:
    def getnode() -> int:
        stream = _generator(random.Random)
        return (
            original() if stream is None else int(stream.getrandbits(48)) | 1 << 40
        )  # not one of a network card

    return getnode


def _seed(original: Callable[..., None]) -> Callable[..., None]:
    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        stream = _generator(random.Random) if a is None else None
        original(self, a if stream is None else stream.getrandbits(256), version)

    return seed


def _method(kind: Callable[[str], Any], name: str, both: bool) -> Callable[[Any], Callable[..., Any]]:
    """Return a maker of replacements for a function of a module that is a method of its shared generator.

    With `both`, setting its state also sets that of the shared generator, which the run gives back at its end.
    """

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def drawn(*args: Any, **named: Any) -> Any:
            if _current is not None and name == "seed" and args in ((), (None,)) and not named:
                return None  # real entropy is what it asks for
            generator = _generator(kind, shared=name in _RESEEDING)
            if both and generator is not None and name in _RESEEDING:
                original(*args, **named)
            return original(*args, **named) if generator is None else getattr(generator, name)(*args, **named)

        return drawn

    return make


def _rebind_methods(
    module: ModuleType, shared: Any, kind: Callable[[str], Any], *, both: bool = False
) -> None:
    names = [name for name, value in vars(module).items() if getattr(value, "__self__", None) is shared]
    rebind(module, [(name, _method(kind, name, both)) for name in names])


def _numpy(module: ModuleType) -> None:
    def state(key: str) -> Any:
        return module.RandomState(random.Random(key).getrandbits(32))

    _rebind_methods(module, module.mtrand._rand, state, both=True)
    if _current is not None:
        _current.seed_numpy()


def _uuid_utils(module: ModuleType) -> None:
    """Replace the ids that are drawn outside Python, by those of version 4 or of time and chance."""

    def make(version: int) -> Callable[[Any], Callable[..., Any]]:
        def replacement(original: Callable[..., Any]) -> Callable[..., Any]:
            def new(*args: Any, **named: Any) -> Any:
                stream = _generator(random.Random)
                if stream is None or args or named:
                    return original(*args, **named)
                bits = stream.getrandbits(128)
                if version != 4:  # sorted by time
                    bits = time.time_ns() // 10**6 << 80 | bits & (1 << 80) - 1
                bits = bits & ~(0xF << 76 | 3 << 62) | version << 76 | 2 << 62
                return module.UUID(int=bits)

            return new

        return replacement

    rebind(module, [("uuid4", make(4)), ("uuid7", make(7))])


def _before_fork() -> None:
    global _of_fork
    _of_fork = _current.fork() if _current is not None else None


def _in_fork() -> None:
    global _current
    _current = _of_fork


@cache
def replace_sources() -> None:
    """Replace the sources of ids and random numbers, once in a process."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before_fork, after_in_child=_in_fork)
    rebind(os, [("urandom", _bytes)])
    rebind(random, [("_urandom", _bytes)])  # of `SystemRandom`, and so of `secrets`
    rebind(uuid, [("getnode", _node)])
    random.Random.seed = _seed(random.Random.seed)  # type: ignore[method-assign]
    _rebind_methods(random, random._inst, random.Random)
    when_imported("numpy.random", _numpy)
    for name in ("uuid_utils", "uuid_utils.compat"):
        when_imported(name, _uuid_utils)


class _TemporaryNames(tempfile._RandomNameSequence):  # type: ignore[name-defined, misc]
    """The names of temporary files, from a seed. Few runs need one."""

    def __init__(self, seed: str) -> None:
        self._seed, self._process = seed, os.getpid()

    @cached_property
    def _seeded(self) -> random.Random:
        return random.Random(self._seed)

    @property
    def rng(self) -> random.Random:
        """The generator; that of a forked process is another one."""
        return self._seeded if os.getpid() == self._process else super().rng


@contextmanager
def seeded_chance(seed: int, scenario: str) -> Iterator[Chance]:
    """Let the code of a run draw from streams of a seed and of the name of the scenario."""
    global _current
    replace_sources()
    before, _current = _current, Chance(f"{seed}/{scenario}")
    _current.seed_numpy()
    names_before = tempfile._name_sequence  # type: ignore[attr-defined]
    tempfile._name_sequence = _TemporaryNames(f"{seed}/{scenario}/tempfile")  # type: ignore[attr-defined]
    try:
        yield _current
    finally:
        _current.release_numpy()
        _current = before
        tempfile._name_sequence = names_before  # type: ignore[attr-defined]
