"""Which hosts a request may name in its `Host` and `Origin` headers.

A page in a browser can reach a server of this machine: by requests of its own, which name the page's host as their
`Origin`, or by a name that it has the browser look up anew as 127.0.0.1 (DNS rebinding), which is then the `Host`. So
only names that no stranger can have are answered.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

ANY: Final = "*"
_LOCAL: Final = "localhost"


class AllowedHosts:
    """This machine's own names, the address a connection came in at, and the names in `more`; `*` is any."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        self._more = {_plain(name) for name in more}

    def stranger(self, headers: Iterable[tuple[str, str]], address: str) -> str | None:
        """The first host in `Host` or `Origin` that is not allowed, at a connection to `address`; None if all are.

        A request without a `Host`, or with one that cannot be read, names the host `''`.
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
    """The host in a URL; empty if there is none, as in the origin `null`."""
    try:
        return _plain(urlsplit(url).hostname or "") if "@" not in url else ""
    except ValueError:
        return ""


def _plain(name: str) -> str:
    return name.lower().rstrip(".")
