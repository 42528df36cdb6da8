"""The network is closed while a scenario runs offline.

One audit hook, installed once, refuses what would leave the process: connections, name look-ups and
datagrams. It does nothing while no scenario runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from harness.errors import HarnessError

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


class NetworkClosed(HarnessError, OSError):
    """Something tried to reach the network during an offline scenario."""

    code = "network-closed"


class _Gate:
    """How many scenarios keep the network closed, and what was refused; the hook is installed with the first."""

    closed = 0
    installed = False
    refused: ClassVar[dict[str, None]] = {}


def _hook(event: str, args: tuple[Any, ...], gate: type[_Gate] = _Gate) -> None:
    # It is called until Python has ended, when this module has lost its names.
    if gate.closed and event in REFUSED:
        where = next((str(arg) for arg in args if isinstance(arg, (tuple, str, bytes))), "somewhere")
        text = f"the network is closed during a scenario, and something tried {event} {where}"
        gate.refused[text] = None
        raise NetworkClosed(text)


@contextmanager
def open_network() -> Iterator[Mapping[str, None]]:
    """Refuse nothing."""
    yield {}


@contextmanager
def closed_network() -> Iterator[Mapping[str, None]]:
    """Refuse connections from this process while inside; child processes are not covered.

    Gives the texts of what was refused so far, each once, in order.

    Raises (in whoever tries): NetworkClosed, which is an OSError too.
    """
    if not _Gate.installed:
        sys.addaudithook(_hook)
        _Gate.installed = True
    _Gate.closed += 1
    _Gate.refused.clear()
    try:
        yield _Gate.refused
    finally:
        _Gate.closed -= 1


def network_is_closed() -> bool:
    """True while connections from this process are refused."""
    return _Gate.closed > 0
