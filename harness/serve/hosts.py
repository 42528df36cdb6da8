"""Checks the `Host` and `Origin` headers of requests, to protect the server from pages in a browser.

A web page can reach a server on this machine: by its own requests, which have the page's host as their `Origin`, or
by a host name that resolves to 127.0.0.1 on the second look-up (DNS rebinding), which is then the `Host`. So only
names that no other machine can have are answered.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

ANY: Final = "*"
_LOCAL: Final = "localhost"


class AllowedHosts:
    """The names that are allowed: those of this machine, the address of the connection, and `more`; `*` is any."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        self._more = {_plain(name) for name in more}

    def disallowed(self, headers: Iterable[tuple[str, str]], address: str) -> str | None:
        """Return the first host in `Host` or `Origin` that is not allowed; None if all are.

        `address` is the local address of the connection. A missing or invalid `Host` is returned as "".
        """
        if ANY in self._more:
            return None
        hosts = [value for name, value in headers if name == "host"]
        origins = [value for name, value in headers if name == "origin"]
        named = [*(_host_of(f"//{host}") for host in hosts or [""]), *map(_host_of, origins)]
        return next((host for host in named if not self._allows(host, address)), None)

    def _allows(self, host: str, address: str) -> bool:
        if host in self._more or host == _LOCAL or host.endswith(f".{_LOCAL}"):
            return True
        try:
            ip = ip_address(host)
            return ip.is_loopback or ip == ip_address(address)
        except ValueError:  # a name, or an address of another kind
            return False


def _host_of(url: str) -> str:
    """Return the host in a URL; "" if there is none, as in the origin `null`."""
    try:
        return _plain(urlsplit(url).hostname or "") if "@" not in url else ""
    except ValueError:
        return ""


def _plain(name: str) -> str:
    return name.lower().rstrip(".")
