"""Intercepting the HTTP of this process while a scenario runs.

Each family of clients is patched where a request of its own goes out, in all threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from harness.interception.aiohttp_client import aiohttp_through
from harness.interception.httpx_clients import httpx_through
from harness.interception.interceptor import Interceptor
from harness.interception.stdlib_clients import http_client_through, urllib_through
from harness.interception.urllib3_clients import urllib3_through
from harness.interception.vcrpy_clients import vcrpy_through

_HTTPX: Final = ("httpx", "httpx2")
_ONLY_VCRPY: Final = ("httplib2", "tornado")


@contextmanager
def intercepted(interceptor: Interceptor) -> Iterator[None]:
    """Ask `interceptor` about every HTTP request of this process, inside."""
    # vcrpy takes what it finds when it is imported for the originals, so that must not be ours.
    import vcr.patch  # noqa: F401

    with ExitStack() as patches:
        for family in _families(interceptor):
            patches.enter_context(family)
        yield


def _families(interceptor: Interceptor) -> Iterator[AbstractContextManager[None]]:
    """Those that are installed."""
    for name in filter(find_spec, _HTTPX):
        yield httpx_through(import_module(name), interceptor)
    yield urllib_through(interceptor)
    yield http_client_through(interceptor)
    if find_spec("urllib3"):
        yield urllib3_through(interceptor)
    if find_spec("aiohttp"):
        yield aiohttp_through(interceptor)
    if any(map(find_spec, _ONLY_VCRPY)):
        yield vcrpy_through(interceptor)
