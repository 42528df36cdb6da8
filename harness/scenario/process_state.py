"""What a run may change in its process, and what is put back after it.

    with kept():      every row of KEPT is saved here
        run           tools, hooks and custom checks do what they like
                      every row is put back here

So no run changes what the next one sees, at a cost of microseconds. What a module sets in the environment while it is
imported is set again for each run that imports from its folder, since the module itself is imported only once
(`harness.source.imports`). Imported modules, and what they hold, stay; `isolation = "process"` ends those too.
"""

from __future__ import annotations

import decimal
import gc
import locale
import logging
import os
import random
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

from harness.time.signals import get_handler, set_handler


class Kept(NamedTuple):
    """Something that is put back: `save` gives its value, `restore` puts that value back if it has changed."""

    name: str
    save: Callable[[], Any]
    restore: Callable[[Any], None]


@contextmanager
def kept() -> Iterator[None]:
    """Put back what is changed inside, in the reverse order of KEPT. A row that cannot be put back is left."""
    saved = [(row, row.save()) for row in KEPT]
    try:
        yield
    finally:
        for row, value in reversed(saved):
            with suppress(OSError, ValueError):  # such as a folder that is gone
                row.restore(value)


def _set_if_changed(read: Callable[[], Any], write: Callable[[Any], Any]) -> Callable[[Any], None]:
    def restore(value: Any) -> None:
        if read() != value:
            write(value)

    return restore


def _attributes(owner: Any, *names: str) -> Kept:
    """The objects that these names of a module stand for."""

    def save() -> list[Any]:
        return [getattr(owner, name) for name in names]

    def restore(values: list[Any]) -> None:
        for name, value in zip(names, values, strict=True):
            if getattr(owner, name) is not value:
                setattr(owner, name, value)

    return Kept(f"{owner.__name__}: {', '.join(names)}", save, restore)


def _list(name: str) -> Kept:
    """A list of `sys`: the object, and its items."""

    def save() -> tuple[list[Any], list[Any]]:
        values = getattr(sys, name)
        return values, [*values]

    def restore(saved: tuple[list[Any], list[Any]]) -> None:
        values, items = saved
        values[:] = items
        setattr(sys, name, values)

    return Kept(f"sys.{name}", save, restore)


# ---------------------------------------------------------------- rows that are more than a getter and a setter


def _environment() -> dict[Any, Any]:
    """The variables as the system has them: `os.environ` decodes every name and value when it is read."""
    return dict(getattr(os.environ, "_data", os.environ))


def _restore_environment(saved: dict[Any, Any]) -> None:
    if _environment() == saved:
        return
    zone = os.environ.get("TZ")
    before = {os.fsdecode(name): os.fsdecode(value) for name, value in saved.items()}
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)
    if os.environ.get("TZ") != zone and hasattr(time, "tzset"):
        time.tzset()


def _folder() -> str | None:
    with suppress(FileNotFoundError):
        return os.getcwd()
    return None


def _restore_folder(saved: str | None) -> None:
    if saved is not None and _folder() != saved:
        os.chdir(saved)


def _umask() -> int:
    """The umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _numpy_random() -> Any:
    numpy = sys.modules.get("numpy")
    return numpy.random.get_state() if numpy is not None else None


def _restore_numpy_random(saved: Any) -> None:
    if saved is not None:
        sys.modules["numpy"].random.set_state(saved)


_SIGNALS: Final = [
    one.value for one in signal.Signals if one.name not in ("SIGKILL", "SIGSTOP", "SIGRTMIN", "SIGRTMAX")
]


def _handlers() -> list[Any]:
    return [get_handler(number) for number in _SIGNALS]


def _restore_handlers(saved: list[Any]) -> None:
    for number, handler, now in zip(_SIGNALS, saved, _handlers(), strict=True):
        if handler is not None and now is not handler:
            set_handler(number, handler)  # in another thread than the main one, no tool can have changed it


def _save_warnings() -> Any:
    filters = warnings.catch_warnings()
    filters.__enter__()
    return filters


class _Logging(NamedTuple):
    """`states`: the level of each logger, whether it is disabled and propagates, its handlers and its filters."""

    disable: int
    loggers: list[logging.Logger]
    states: list[tuple[int, bool, bool, tuple[logging.Handler, ...], tuple[Any, ...]]]


def _logging() -> _Logging:
    manager = logging.root.manager
    known = [one for one in manager.loggerDict.values() if not isinstance(one, logging.PlaceHolder)]
    loggers = [logging.root, *known]
    states = [
        (one.level, one.disabled, one.propagate, tuple(one.handlers), tuple(one.filters)) for one in loggers
    ]
    return _Logging(manager.disable, loggers, states)


def _restore_logging(saved: _Logging) -> None:
    now = _logging()
    if now == saved:
        return
    logging.disable(saved.disable)
    before = dict(zip(saved.loggers, saved.states, strict=True))
    for logger, state in zip(now.loggers, now.states, strict=True):
        if logger not in before:  # it is as a library makes it: silent, unless the application says otherwise
            silent = tuple(one for one in logger.handlers if isinstance(one, logging.NullHandler))
            state = (logging.NOTSET, False, logger.propagate, silent, ())
        level, logger.disabled, logger.propagate, handlers, filters = before.get(logger, state)
        if logger.level != level:
            logger.setLevel(level)
        logger.handlers[:], logger.filters[:] = handlers, filters


# ---------------------------------------------------------------- the table

KEPT: Final = (
    Kept("environment variables", _environment, _restore_environment),
    Kept("working directory", _folder, _restore_folder),
    Kept("umask", _umask, _set_if_changed(_umask, os.umask)),
    Kept("signal handlers", _handlers, _restore_handlers),
    Kept("warning filters", _save_warnings, lambda filters: filters.__exit__(None, None, None)),
    Kept("logging", _logging, _restore_logging),
    Kept("random", random.getstate, random.setstate),
    Kept("numpy's random", _numpy_random, _restore_numpy_random),
    Kept("decimal context", lambda: decimal.getcontext().copy(), decimal.setcontext),
    Kept(
        "locale",
        lambda: locale.setlocale(locale.LC_ALL),
        _set_if_changed(
            lambda: locale.setlocale(locale.LC_ALL), lambda saved: locale.setlocale(locale.LC_ALL, saved)
        ),
    ),
    Kept(
        "time-out of sockets",
        socket.getdefaulttimeout,
        _set_if_changed(socket.getdefaulttimeout, socket.setdefaulttimeout),
    ),
    Kept(
        "recursion limit",
        sys.getrecursionlimit,
        _set_if_changed(sys.getrecursionlimit, sys.setrecursionlimit),
    ),
    Kept(
        "switch interval",
        sys.getswitchinterval,
        _set_if_changed(sys.getswitchinterval, sys.setswitchinterval),
    ),
    Kept("garbage collection", gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    _list("path"),
    _list("argv"),
    _attributes(sys, "stdin", "stdout", "stderr", "excepthook", "unraisablehook", "displayhook"),
    _attributes(threading, "excepthook"),
)
