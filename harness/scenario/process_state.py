"""Isolation of runs within one process: global state is saved before a run and restored after it.

    with preserve_process_state():   every item of PROCESS_STATE is saved
        run                          tools, hooks and custom checks may change it
                                     every item is restored

This costs microseconds per run. Environment variables that a module sets while it is imported are set again for
each run that imports from its folder, since the module itself is imported only once (`harness.source.imports`).
Imported modules stay; what was changed in them is put back (`harness.source.module_state`).
"""

from __future__ import annotations

import asyncio
import builtins
import copyreg
import decimal
import faulthandler
import gc
import io
import locale
import logging
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from harness.chance import replace_sources
from harness.scenario.leftovers import OFFER
from harness.source.module_state import watch
from harness.time.alarms import get_handler, set_handler
from harness.time.frozen import read_clocks, restore_clocks
from harness.time.readings import hold_for_libraries, replace_clocks
from harness.time.rebinding import USER, bind_replacements, origin_of, rebind
from harness.world.network import closed_network

try:
    import resource
except ImportError:  # not a POSIX system
    resource = None  # type: ignore[assignment]


class StateItem(NamedTuple):
    """A piece of global state. `save` returns its value; `restore` sets it back to that value if it has changed."""

    name: str
    save: Callable[[], Any]
    restore: Callable[[Any], None]


@cache
def prepare_process() -> None:
    """Replace what real code of runs reads and draws from, before the state of the process is saved."""
    replace_clocks()
    replace_sources()
    rebind(os, [("putenv", _noting_put)])
    hold_for_libraries()
    bind_replacements()


@contextmanager
def preserve_process_state(folders: Sequence[Path], left: list[str]) -> Iterator[None]:
    """Restore all state in PROCESS_STATE on exit, in reverse order. An item that cannot be restored is skipped.

    Warnings are added to `left`: for what the code in `folders` left replaced in modules, and for what was skipped.
    """
    watch.begin(folders)
    saved = [(item, item.save()) for item in PROCESS_STATE]
    try:
        yield
    finally:
        (replaced, by_imports), skipped = watch.end(), []
        with closed_network():  # objects that are freed may have more to do
            for item, value in reversed(saved):
                try:
                    item.restore(value)
                except (OSError, ValueError):  # for example, the working directory was deleted
                    skipped.append(item.name)
        if replaced:
            left.append(f"this run left {', '.join(replaced)} replaced, which was put back: {OFFER}")
        if by_imports:
            text = f"an import in this run replaced {', '.join(by_imports)} for all runs that follow"
            left.append(f"{text}: {OFFER}")
        if skipped:
            left.append(f"this run changed what cannot be undone: {', '.join(skipped)}; {OFFER}")


def _value(name: str, read: Callable[[], Any], write: Callable[[Any], Any]) -> StateItem:
    """Return the item for a value that is written only if it has changed."""

    def restore(value: Any) -> None:
        if read() != value:
            write(value)

    return StateItem(name, read, restore)


def _attributes(owner: Any, *names: str) -> StateItem:
    """Return the item for attributes of a module, compared by identity."""

    def save() -> list[Any]:
        return [getattr(owner, name) for name in names]

    def restore(values: list[Any]) -> None:
        for name, value in zip(names, values, strict=True):
            if getattr(owner, name) is not value:
                setattr(owner, name, value)

    return StateItem(f"{owner.__name__}: {', '.join(names)}", save, restore)


def _list(name: str, owner: Any = sys) -> StateItem:
    """Return the item for a list in a module: the object and its items."""

    def save() -> tuple[list[Any], list[Any]]:
        values = getattr(owner, name)
        return values, [*values]

    def restore(saved: tuple[list[Any], list[Any]]) -> None:
        values, items = saved
        values[:] = items
        if getattr(owner, name) is not values:
            setattr(owner, name, values)

    return StateItem(f"{owner.__name__}.{name}", save, restore)


# ---------------------------------------------------------------- items that are more than a getter and a setter


def _environment() -> dict[Any, Any]:
    """Return the raw environment variables: `os.environ` would decode every name and value."""
    return dict(getattr(os.environ, "_data", os.environ))


_put: Final[set[str | bytes]] = set()
"""Variables that were set for child processes, as a rule through `os.environ`."""


def _noting_put(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def putenv(name: Any, value: Any, /) -> None:
        original(name, value)
        _put.add(name)

    return putenv


def _restore_environment(saved: dict[Any, Any]) -> None:
    for raw in {os.fsencode(each) for each in _put}:
        if raw in saved:
            os.putenv(raw, saved[raw])
        else:
            os.unsetenv(raw)
    _put.clear()
    if _environment() == saved:
        return
    zone = os.environ.get("TZ")
    before = {os.fsdecode(name): os.fsdecode(value) for name, value in saved.items()}
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)
    if os.environ.get("TZ") != zone and hasattr(time, "tzset"):
        time.tzset()


def _set_environment_class(kind: type[Any]) -> None:
    os.environ.__class__ = kind  # that of an app has dummy keys


def _folder() -> str | None:
    with suppress(FileNotFoundError):
        return os.getcwd()
    return None


def _restore_folder(saved: str | None) -> None:
    if saved is not None and _folder() != saved:
        os.chdir(saved)


def _restore_pickling(saved: dict[Any, Any]) -> None:
    if copyreg.dispatch_table != saved:
        copyreg.dispatch_table.clear()
        copyreg.dispatch_table.update(saved)


def _restore_default_decimals(saved: decimal.Context) -> None:
    if repr(decimal.DefaultContext) != repr(saved):
        for name in ("prec", "rounding", "Emin", "Emax", "capitals", "clamp", "flags", "traps"):
            setattr(decimal.DefaultContext, name, getattr(saved, name))


def _umask() -> int:
    """Return the umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


_SIGNALS: Final = [
    one.value for one in signal.Signals if one.name not in ("SIGKILL", "SIGSTOP", "SIGRTMIN", "SIGRTMAX")
]


def _handlers() -> list[Any]:
    return [get_handler(number) for number in _SIGNALS]


def _restore_handlers(saved: list[Any]) -> None:
    for number, handler, now in zip(_SIGNALS, saved, _handlers(), strict=True):
        if handler is not None and now is not handler:
            set_handler(number, handler)  # fails outside the main thread, where no tool can have changed it


def _save_warnings() -> Any:
    filters = warnings.catch_warnings()
    filters.__enter__()
    return filters


class _Logging(NamedTuple):
    """The state of logging. `states`: for each logger its level, `disabled`, `propagate`, handlers and filters."""

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
        if logger not in before:  # a new logger: reset it to the state in which libraries create loggers
            silent = tuple(one for one in logger.handlers if isinstance(one, logging.NullHandler))
            state = (logging.NOTSET, False, logger.propagate, silent, ())
        level, logger.disabled, logger.propagate, handlers, filters = before.get(logger, state)
        if logger.level != level:
            logger.setLevel(level)
        logger.handlers[:], logger.filters[:] = handlers, filters


def _finders() -> tuple[list[Any], list[Any]]:
    return sys.meta_path, [*sys.meta_path]


def _restore_finders(saved: tuple[list[Any], list[Any]]) -> None:
    """Put back what finds modules. What a library has added, with a module that stays imported, stays as well."""
    finders, before = saved
    if finders != before or sys.meta_path is not finders:
        known = [each for each in finders if getattr(each, "__module__", None) in sys.modules]
        of_libraries = [each for each in known if origin_of(sys.modules[each.__module__]) is not USER]
        finders[:] = [*(each for each in of_libraries if each not in before), *before]
        sys.meta_path = finders


_LIMITS: Final = ("AS", "CPU", "DATA", "FSIZE", "NOFILE", "NPROC", "STACK")


def _set_limit(limit: int, value: tuple[int, int]) -> None:
    try:
        resource.setrlimit(limit, value)
    except ValueError:  # only a privileged user may raise its upper bound again
        most = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most, most))
        raise


def _of_each(
    module: Any, kind: str, names: Iterable[str], read: str, write: Callable[..., Any]
) -> list[StateItem]:
    """Return the items for values that a function of a module reads by number, for those names that it has."""
    numbers = {name: getattr(module, kind + name) for name in names if hasattr(module, kind + name)}
    return [
        _value(kind + name, partial(getattr(module, read), number), partial(write, number))
        for name, number in numbers.items()
    ]


def _signal_mask() -> set[Any]:
    return signal.pthread_sigmask(signal.SIG_BLOCK, ()) if hasattr(signal, "pthread_sigmask") else set()


# ---------------------------------------------------------------- the table

PROCESS_STATE: Final = (
    StateItem("environment variables", _environment, _restore_environment),
    _value("kind of environment", lambda: os.environ.__class__, _set_environment_class),
    StateItem("working directory", _folder, _restore_folder),
    _value("umask", _umask, os.umask),
    StateItem("signal handlers", _handlers, _restore_handlers),
    _value("blocked signals", _signal_mask, lambda mask: signal.pthread_sigmask(signal.SIG_SETMASK, mask)),
    # The other timer is that of `harness.time.alarms`.
    *_of_each(
        signal, "ITIMER_", ("VIRTUAL", "PROF"), "getitimer", lambda n, value: signal.setitimer(n, *value)
    ),
    StateItem("warning filters", _save_warnings, lambda filters: filters.__exit__(None, None, None)),
    StateItem("logging", _logging, _restore_logging),
    _value("class of loggers", logging.getLoggerClass, logging.setLoggerClass),
    StateItem("default decimal context", decimal.DefaultContext.copy, _restore_default_decimals),
    StateItem("decimal context", lambda: decimal.getcontext().copy(), decimal.setcontext),
    _value("locale", lambda: locale.setlocale(locale.LC_ALL), partial(locale.setlocale, locale.LC_ALL)),
    _value("time-out of sockets", socket.getdefaulttimeout, socket.setdefaulttimeout),
    _value("recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    _value("switch interval", sys.getswitchinterval, sys.setswitchinterval),
    _value("digits of integers", sys.get_int_max_str_digits, sys.set_int_max_str_digits),
    _value("trace function", sys.gettrace, sys.settrace),
    _value("profile function", sys.getprofile, sys.setprofile),
    _value("trace function of threads", threading.gettrace, threading.settrace),
    _value("profile function of threads", threading.getprofile, threading.setprofile),
    _attributes(asyncio.events, "_event_loop_policy"),
    _value("thresholds of garbage collection", gc.get_threshold, lambda values: gc.set_threshold(*values)),
    _list("callbacks", gc),
    StateItem("garbage collection", gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    StateItem("faulthandler", lambda: None, lambda _: faulthandler.cancel_dump_traceback_later()),
    _list("path"),
    _list("argv"),
    _list("path_hooks"),
    StateItem("sys.meta_path", _finders, _restore_finders),
    _attributes(sys, "stdin", "stdout", "stderr", "excepthook", "unraisablehook", "displayhook"),
    _attributes(threading, "excepthook"),
    _attributes(builtins, "open"),
    _attributes(io, "open"),
    StateItem("modules", lambda: None, lambda _: watch.put_back()),
    StateItem("clocks", read_clocks, restore_clocks),
    StateItem("functions that pickle", copyreg.dispatch_table.copy, _restore_pickling),
    # The last ones, as they are restored first.
    *_of_each(resource, "RLIMIT_", _LIMITS, "getrlimit", _set_limit),
)


_ENDINGS: Final = ("_exit", "abort", "execv", "execve")
"""Functions that end a process, or the program in it."""


@contextmanager
def refuse_os_exit() -> Iterator[None]:
    """Make `os._exit` and the like raise a RuntimeError in this process. In forked child processes they work."""
    process = os.getpid()
    modules = os, sys.modules[os.name]
    before = [(module, name, getattr(module, name)) for module in modules for name in _ENDINGS]

    def refuse(name: str, real: Callable[..., NoReturn], *args: Any) -> NoReturn:
        if os.getpid() != process:
            real(*args)
        called = f"os.{name}({', '.join(map(str, args))})"
        raise RuntimeError(f"it called {called}, which would have ended the process of all scenarios")

    try:
        for module, name, real in before:
            setattr(module, name, partial(refuse, name, real))
        yield
    finally:
        for ending in before:
            setattr(*ending)
