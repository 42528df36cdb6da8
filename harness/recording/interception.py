"""The HTTP of this process, led through a recorder while a scenario runs.

Each family of clients is met where a request of its own goes out, in any thread; see `clients`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from harness.recording.clients.aiohttp_client import aiohttp_through
from harness.recording.clients.httpx_clients import httpx_through
from harness.recording.clients.stdlib_clients import http_client_through, urllib_through
from harness.recording.clients.urllib3_clients import urllib3_through
from harness.recording.clients.vcrpy_clients import vcrpy_through
from harness.recording.recorder import HTTPRecorder

_HTTPX: Final = ("httpx", "httpx2")
_ONLY_VCRPY: Final = ("httplib2", "tornado")


@contextmanager
def led_through(recorder: HTTPRecorder) -> Iterator[None]:
    """Answer all HTTP of this process from the recorder, or as the recorder says."""
    # vcrpy takes what it finds when it is imported for the originals, so that must not be ours.
    import vcr.patch  # noqa: F401

    with ExitStack() as patches:
        for family in _families(recorder):
            patches.enter_context(family)
        yield


def _families(recorder: HTTPRecorder) -> Iterator[AbstractContextManager[None]]:
    """Those that are installed."""
    for name in filter(find_spec, _HTTPX):
        yield httpx_through(import_module(name), recorder)
    yield urllib_through(recorder)
    yield http_client_through(recorder)
    if find_spec("urllib3"):
        yield urllib3_through(recorder)
    if find_spec("aiohttp"):
        yield aiohttp_through(recorder)
    if any(map(find_spec, _ONLY_VCRPY)):
        yield vcrpy_through(recorder)
