"""The network is closed while a scenario runs offline.

One audit hook, installed once, refuses what would leave the process: connections, name look-ups and
datagrams. It does nothing while no scenario runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness.errors import HarnessError

REFUSED = frozenset(
    {
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyaddr",
        "socket.sendto",
        "socket.sendmsg",
    }
)


class NetworkClosed(HarnessError, OSError):
    """Something tried to reach the network during an offline scenario."""

    code = "network-closed"


class _Gate:
    """How many scenarios keep the network closed; the hook is installed with the first."""

    closed = 0
    installed = False


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _Gate.closed and event in REFUSED:
        where = next((str(arg) for arg in args if isinstance(arg, (tuple, str, bytes))), "somewhere")
        raise NetworkClosed(f"the network is closed during a scenario, and something tried {event} {where}")


@contextmanager
def closed_network() -> Iterator[None]:
    """Refuse connections from this process while inside.

    Raises (in whoever tries): NetworkClosed, which is an OSError too.
    """
    if not _Gate.installed:
        sys.addaudithook(_hook)
        _Gate.installed = True
    _Gate.closed += 1
    try:
        yield
    finally:
        _Gate.closed -= 1
