"""Closes the network while a scenario runs offline.

An audit hook, installed once, refuses connections, name look-ups and datagrams. It does nothing while no scenario
runs.
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
    """The number of scenarios that keep the network closed, and the refused attempts. The first installs the hook."""

    closed = 0
    installed = False
    refused: ClassVar[dict[str, None]] = {}


def _hook(event: str, args: tuple[Any, ...], gate: type[_Gate] = _Gate) -> None:
    # Default argument: the hook is called until Python exits, after this module's globals are gone.
    if gate.closed and event in REFUSED:
        where = next((str(arg) for arg in args if isinstance(arg, (tuple, str, bytes))), "somewhere")
        text = f"the network is closed during a scenario, and something tried {event} {where}"
        gate.refused[text] = None
        raise NetworkClosed(text)


@contextmanager
def open_network() -> Iterator[Mapping[str, None]]:
    """Refuse nothing; the counterpart of `closed_network`."""
    yield {}


@contextmanager
def closed_network() -> Iterator[Mapping[str, None]]:
    """Refuse connections of this process within the context; child processes are not covered.

    Yields the messages of the attempts refused so far, each once, in order.

    Raises (in the code that connects):
        NetworkClosed: also an OSError.
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
