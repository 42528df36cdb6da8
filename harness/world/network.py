"""Closes the network while a scenario runs offline.

An audit hook, installed once, refuses connections, name look-ups and datagrams. It does nothing while no scenario
runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from harness.errors import HarnessError
from harness.interception.real_effects import is_late

REFUSED = frozenset(
    {
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyaddr",
        "socket.sendto",
        "socket.sendmsg",
        "socket.getnameinfo",
    }
)


_PROCESSES = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"})


class NetworkClosed(HarnessError, OSError):
    """Something tried to reach the network during an offline scenario. `hint` says what to do about it."""

    code = "network-closed"
    hint: ClassVar[str] = (
        "stub the tool that makes it; a request of HTTP needs an `http` stub, a database another address in `env`, "
        "such as `:memory:`"
    )


class _Gate:
    """The number of scenarios that keep the network closed, and the refused attempts. The first installs the hook.

    `on_refusal` is called at each attempt. `processes` is the number of processes that were started since.
    """

    closed = 0
    installed = False
    processes = 0
    refused: ClassVar[dict[str, None]] = {}
    on_refusal: ClassVar[Callable[[], object] | None] = None


def _hook(
    event: str,
    args: tuple[Any, ...],
    gate: type[_Gate] = _Gate,
    refused: frozenset[str] = REFUSED,
    processes: frozenset[str] = _PROCESSES,
    is_late: Any = is_late,
) -> None:
    # Default arguments: the hook is called until Python exits, after this module's globals are gone.
    if event in refused and (gate.closed or is_late()):
        where = next((str(arg) for arg in args if isinstance(arg, (tuple, str, bytes))), "somewhere")
        if event == "socket.getaddrinfo" and args[1]:
            where = f"{where}:{args[1]}"
        text = f"the network is closed during a scenario, and something tried {event} {where}"
        if not is_late():
            gate.refused[f"{text}: {NetworkClosed.hint}"] = None
            if gate.on_refusal is not None:
                gate.on_refusal()
        raise NetworkClosed(text)
    if event in processes:
        gate.processes += 1


@contextmanager
def open_network() -> Iterator[Mapping[str, None]]:
    """Refuse nothing; the counterpart of `closed_network`."""
    yield {}


@contextmanager
def closed_network(on_refusal: Callable[[], object] | None = None) -> Iterator[Mapping[str, None]]:
    """Refuse connections of this process within the context; child processes are not covered.

    Yields the messages of the attempts refused so far, each once, in order. `on_refusal` is called at each of them,
    in whatever thread makes it.

    Raises (in the code that connects):
        NetworkClosed: also an OSError.
    """
    _install()
    _Gate.closed += 1
    _Gate.refused.clear()
    before, _Gate.on_refusal = _Gate.on_refusal, on_refusal
    try:
        yield _Gate.refused
    finally:
        _Gate.on_refusal = before
        _Gate.closed -= 1


def _install() -> None:
    if not _Gate.installed:
        sys.addaudithook(_hook)
        _Gate.installed = True


def close_network_for_good() -> None:
    """Refuse all connections of this process from now on."""
    _install()
    _Gate.closed += 1


def started_processes() -> int:
    """Return the number of processes that this one has started since this was first asked."""
    _install()
    return _Gate.processes


def refused_attempts() -> list[str]:
    """Return the messages of the attempts refused since the network was closed; none while it is open."""
    return [*_Gate.refused] if network_is_closed() else []


def network_is_closed() -> bool:
    """True while connections from this process are refused."""
    return _Gate.closed > 0
