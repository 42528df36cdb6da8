"""Checkpointers and stores of libraries that need a server: offline, each is one in memory that looks like it.

A run has its own in place of one that is not in memory, so nothing that an app does to connect one is needed: making
it, `from_conn_string`, `setup`. What the app's own code asks it, such as the threads that there are, it answers from
memory. One that keeps a file with Python's own sqlite3 needs no server, and is the real one.
"""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
from collections.abc import Callable
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import Any, Final

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from harness.time.rebinding import origin_of

_FILES: Final = {"sqlite3", "aiosqlite"}
"""The modules of what keeps a file, and needs no server."""


class _ByCopy:
    """A serialiser that copies values, whatever they are: nodes may change what they have in place."""

    def dumps_typed(self, value: Any) -> tuple[str, Any]:
        try:
            return ("pickle", pickle.dumps(value, pickle.HIGHEST_PROTOCOL))  # several times as fast as a copy
        except Exception:  # a client, a lock: an app without a checkpointer of its own works with these, too
            return ("copy", _copied(value))

    def loads_typed(self, data: tuple[str, Any]) -> Any:
        return pickle.loads(data[1]) if data[0] == "pickle" else _copied(data[1])


class _Saver(InMemorySaver):
    """The checkpointer of an app that has none in memory.

    It saves after each superstep: a node that changes its state in place and then pauses runs again with the state
    as it was. Channels have a number as their version; LangGraph's own is random in part, for savers that processes
    share.
    """

    def get_next_version(self, current: Any, channel: Any = None) -> Any:
        return (current or 0) + 1


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:
        return value


def saver_of_run(found: Any) -> InMemorySaver:
    """Return the checkpointer of a run: that of the app if it is in memory, else one of the run's own."""
    found = getattr(found, "in_memory", found)
    return found if isinstance(found, InMemorySaver) else _Saver(serde=_ByCopy())


def store_of_run(found: Any) -> InMemoryStore:
    """Return the store of a run: that of the app if it is in memory, else one of the run's own."""
    found = getattr(found, "in_memory", found)
    return found if isinstance(found, InMemoryStore) else InMemoryStore()


@cache
def keep_in_memory(is_offline: Callable[[], bool]) -> None:
    """Let what would need a server be in memory whenever the app is offline, from now on in this process."""

    def needs_server(kind: type) -> bool:
        return is_offline() and _is_for_server(kind)

    for base in (BaseCheckpointSaver, BaseStore):
        _replace_makers(base, needs_server)


def _replace_makers(base: Any, needs_server: Callable[[type], bool]) -> None:
    def new(cls: type, *_args: Any, **_options: Any) -> Any:
        return object.__new__(_in_memory(cls, base) if needs_server(cls) else cls)

    def begin(cls: type, /, **options: Any) -> None:
        super(base, cls).__init_subclass__(**options)
        for name, each in [*vars(cls).items()]:
            if name.startswith("from_") and isinstance(each, classmethod):
                setattr(cls, name, classmethod(_connecting(each.__func__, needs_server)))

    base.__new__ = new
    base.__init_subclass__ = classmethod(begin)


@cache
def _is_for_server(kind: type) -> bool:
    """True for a class of a library that keeps nothing in this process, and no file."""
    module = sys.modules.get(kind.__module__)
    if module is None or issubclass(kind, InMemorySaver | InMemoryStore):
        return False
    is_of_library = isinstance(origin_of(module), str)
    return is_of_library and not any(
        getattr(each, "__name__", "") in _FILES for each in vars(module).values()
    )


def _connecting(make: Any, needs_server: Callable[[type], bool]) -> Any:
    """Return what takes the place of a context manager that connects, such as `from_conn_string`."""
    if inspect.isasyncgenfunction(inspect.unwrap(make)):

        @asynccontextmanager
        async def opened(cls: type, *args: Any, **options: Any) -> Any:
            if needs_server(cls):
                yield cls(*args, **options)
                return
            async with make(cls, *args, **options) as found:
                yield found

        return opened

    if inspect.isgeneratorfunction(inspect.unwrap(make)):

        @contextmanager
        def opened_at_once(cls: type, *args: Any, **options: Any) -> Any:
            if needs_server(cls):
                yield cls(*args, **options)
                return
            with make(cls, *args, **options) as found:
                yield found

        return opened_at_once
    return make


_kept: Final[dict[Any, Any]] = {}
"""The contents in memory, by the class and the arguments that would connect it: one made twice has one content."""


@cache
def _in_memory(kind: Any, base: Any) -> type:
    """Return a class like that of a library, which has everything in memory."""

    def begin(self: Any, *args: Any, **options: Any) -> None:
        made = saver_of_run(None) if base is BaseCheckpointSaver else store_of_run(None)
        try:
            self.in_memory = _kept.setdefault((kind, args, tuple(options.items())), made)
        except TypeError:  # an argument without a hash
            self.in_memory = made

    def missing(self: Any, name: str) -> Any:
        raise AttributeError(f"this {kind.__name__} is in memory, as it has no server, and lacks '{name}'")

    async def entered(self: Any) -> Any:
        return self

    async def left(self: Any, *_: Any) -> None:
        pass

    members: dict[str, Any] = {name: _nothing(each) for name, each in _without_arguments(kind)}
    members |= {name: _asking(name) for name, each in vars(base).items() if _is_public_function(name, each)}
    members |= {"__init__": begin, "__getattr__": missing, "__del__": lambda _: None}
    members |= {"__enter__": lambda self: self, "__exit__": lambda self, *_: None}
    members |= {"__aenter__": entered, "__aexit__": left}
    return type(kind.__name__, (kind,), members)


def _asking(name: str) -> Callable[..., Any]:
    return lambda self, *args, **options: getattr(self.in_memory, name)(*args, **options)


def _is_public_function(name: str, found: object) -> bool:
    return not name.startswith("_") and inspect.isfunction(found)


def _without_arguments(kind: type) -> list[tuple[str, Any]]:
    """Return the functions that can be called without arguments, such as `setup`."""
    found = []
    for name, each in inspect.getmembers(kind, inspect.isfunction):
        _, *parameters = inspect.signature(each).parameters.values()
        needed = [one for one in parameters if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
        if not name.startswith("_") and not needed:
            found.append((name, each))
    return found


def _nothing(function: Any) -> Callable[..., Any]:
    """Return a function that does nothing, in the same way as another one."""

    async def wait(*_args: Any, **_options: Any) -> None:
        pass

    return wait if inspect.iscoroutinefunction(function) else lambda *_args, **_options: None
