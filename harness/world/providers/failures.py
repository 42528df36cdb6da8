"""Unwraps failures of model calls to the exceptions that the provider's client raised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.errors import HarnessError

_CLIENTS: Final = ("openai", "anthropic")
_TRANSPORTS: Final = ("httpx", "httpx2")


def client_error(error: Exception) -> Exception:
    """Return the error of the harness in the chain of causes, else the one that the provider's client raised.

    Clients wrap an error of the harness as a failed connection. LangChain raises subclasses of the clients' errors,
    and before some of them a warning, which may be an error, too; manifests use the clients' names.
    """
    for item in _chain(error):
        if isinstance(item, HarnessError):
            return item
    for item in _chain(error):
        if _package(type(item)) in _CLIENTS and isinstance(error, (type(item), Warning)):
            return item
    return error


def is_down(error: BaseException) -> bool:
    """True if the provider could not be reached. A time-out while waiting for the answer does not count."""
    return any(_unreachable(item) for item in _chain(error))


def _unreachable(error: BaseException) -> bool:
    names = {base.__name__ for base in type(error).__mro__ if _package(base) in (*_CLIENTS, *_TRANSPORTS)}
    if names & {"ConnectError", "ConnectTimeout"}:
        return True
    return "APIConnectionError" in names and "APITimeoutError" not in names


def _chain(error: BaseException) -> Iterator[Exception]:
    seen: set[int] = set()
    item: BaseException | None = error
    while isinstance(item, Exception) and id(item) not in seen:
        seen.add(id(item))
        yield item
        item = item.__cause__ or item.__context__


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]
