"""Connections to PostgreSQL, which psycopg makes in C: told to Python's audit hooks, as those of sockets are.

So a closed network refuses them, whatever their address is. The client raises its own error for that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from harness.time.rebinding import when_imported


def tell_connections() -> None:
    """Tell the connections of both versions of psycopg, from now on in this process."""
    when_imported("psycopg", _tell_psycopg)
    when_imported("psycopg2", _tell_psycopg2)


def _tell_psycopg(psycopg: Any) -> None:
    def tell(conninfo: str, options: Mapping[str, Any]) -> None:
        named = {key: value for key, value in options.items() if key in ("host", "hostaddr", "port")}
        _tell(psycopg.conninfo.conninfo_to_dict(conninfo, **named), psycopg.OperationalError)

    really, really_async = psycopg.Connection.connect.__func__, psycopg.AsyncConnection.connect.__func__

    @wraps(really)
    def connect(cls: Any, /, conninfo: str = "", **options: Any) -> Any:
        tell(conninfo, options)
        return really(cls, conninfo, **options)

    @wraps(really_async)
    async def connect_async(cls: Any, /, conninfo: str = "", **options: Any) -> Any:
        tell(conninfo, options)
        return await really_async(cls, conninfo, **options)

    psycopg.Connection.connect = classmethod(connect)
    psycopg.AsyncConnection.connect = classmethod(connect_async)
    psycopg.connect = psycopg.Connection.connect


def _tell_psycopg2(psycopg2: Any) -> None:
    really: Callable[..., Any] = psycopg2.connect

    @wraps(really)
    def connect(dsn: Any = None, *args: Any, **options: Any) -> Any:
        named = {key: value for key, value in options.items() if key in ("host", "hostaddr", "port")}
        extensions = psycopg2.extensions
        given = extensions.parse_dsn(extensions.make_dsn(dsn, **named)) if dsn else named
        _tell(given, psycopg2.OperationalError)
        return really(dsn, *args, **options)

    psycopg2.connect = connect


def _tell(given: Mapping[str, Any], error: type[Exception]) -> None:
    """Raise the error of the client if an audit hook refuses its connection."""
    host = given.get("host") or given.get("hostaddr") or os.environ.get("PGHOST") or "localhost"
    address = f"{host}:{given.get('port') or os.environ.get('PGPORT') or 5432}"
    try:
        sys.audit("socket.connect", None, address)
    except OSError as refused:
        raise error(str(refused)) from refused
