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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple


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


def _restore_environment(saved: dict[str, str]) -> None:
    if saved == dict(os.environ):
        return
    zone = os.environ.get("TZ")
    for name in set(os.environ) - set(saved):
        del os.environ[name]
    os.environ.update(saved)
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
    one for one in signal.Signals if one.name not in ("SIGKILL", "SIGSTOP", "SIGRTMIN", "SIGRTMAX")
]


def _handlers() -> list[Any]:
    return [signal.getsignal(number) for number in _SIGNALS]


def _restore_handlers(saved: list[Any]) -> None:
    for number, handler in zip(_SIGNALS, saved, strict=True):
        if handler is not None and signal.getsignal(number) is not handler:
            signal.signal(number, handler)  # in another thread than the main one, no tool can have changed it


def _save_warnings() -> Any:
    filters = warnings.catch_warnings()
    filters.__enter__()
    return filters


class _Logger(NamedTuple):
    level: int
    disabled: bool
    propagate: bool
    handlers: Sequence[logging.Handler]
    filters: list[Any]


def _loggers() -> list[logging.Logger]:
    known = list(logging.root.manager.loggerDict.values())
    return [logging.root, *(logger for logger in known if isinstance(logger, logging.Logger))]


def _save_logging() -> tuple[int, dict[logging.Logger, _Logger]]:
    return logging.root.manager.disable, {
        logger: _Logger(
            logger.level, logger.disabled, logger.propagate, logger.handlers[:], logger.filters[:]
        )
        for logger in _loggers()
    }


def _restore_logging(saved: tuple[int, dict[logging.Logger, _Logger]]) -> None:
    disable, before = saved
    logging.disable(disable)
    for logger in _loggers():
        old = before.get(logger) or _new(logger)
        if logger.level != old.level:
            logger.setLevel(old.level)
        logger.disabled, logger.propagate = old.disabled, old.propagate
        logger.handlers[:], logger.filters[:] = old.handlers, old.filters


def _new(logger: logging.Logger) -> _Logger:
    """A logger that the run made is as a library makes it: silent, unless the application says otherwise."""
    silent = [one for one in logger.handlers if isinstance(one, logging.NullHandler)]
    return _Logger(logging.NOTSET, False, logger.propagate, silent, [])


# ---------------------------------------------------------------- the table

KEPT: Final = (
    Kept("environment variables", lambda: dict(os.environ), _restore_environment),
    Kept("working directory", _folder, _restore_folder),
    Kept("umask", _umask, _set_if_changed(_umask, os.umask)),
    Kept("signal handlers", _handlers, _restore_handlers),
    Kept("warning filters", _save_warnings, lambda filters: filters.__exit__(None, None, None)),
    Kept("logging", _save_logging, _restore_logging),
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
