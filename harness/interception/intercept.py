"""Intercepts the HTTP requests of this process while a scenario runs.

Each family of clients is patched where it sends requests, for all threads. A family that is not imported yet is
patched when it is imported, since many scenarios never need it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any, Final

from harness.interception.c_clients import patched_curl_cffi, patched_grpc, patched_primp
from harness.interception.httpx_clients import patched_httpx
from harness.interception.interceptor import Interceptor
from harness.interception.real_effects import before_first_effect
from harness.interception.stdlib_clients import patched_http_client, patched_urllib, patched_urllib3
from harness.interception.vcrpy_clients import patched_aiohttp, patched_httplib2, patched_tornado

Patch = Callable[[Any, Interceptor], AbstractContextManager[None]]
"""Patches a module, whose requests the interceptor then gets."""

FAMILIES: Final[dict[str, Patch]] = {
    "urllib.request": patched_urllib,
    "http.client": patched_http_client,
    "httpx": patched_httpx,
    "httpx2": patched_httpx,
    "urllib3": patched_urllib3,
    "aiohttp": patched_aiohttp,
    "httplib2": patched_httplib2,
    "tornado.simple_httpclient": patched_tornado,
    "tornado.curl_httpclient": patched_tornado,
    "grpc._channel": patched_grpc,  # blocking
    "grpc.aio._channel": patched_grpc,
    "curl_cffi.requests.session": patched_curl_cffi,
    "primp": patched_primp,
}
"""The patch of each family of clients, by the module after whose import it is applied."""


@contextmanager
def intercepted_from_first_effect(interceptor: Interceptor) -> Iterator[None]:
    """Do the same as `intercepted`, from the first effect that is really performed; many scenarios perform none."""
    with ExitStack() as patches, before_first_effect(lambda: patches.enter_context(intercepted(interceptor))):
        yield


@contextmanager
def intercepted(interceptor: Interceptor) -> Iterator[None]:
    """Pass every HTTP request of this process to `interceptor`, within the context."""
    with ExitStack() as patches:
        pending = dict(FAMILIES)
        for name in [name for name in FAMILIES if name in sys.modules]:
            patches.enter_context(pending.pop(name)(sys.modules[name], interceptor))
        importer = _PatchOnImport(pending, interceptor, patches)
        sys.meta_path.insert(0, importer)
        try:
            yield
        finally:
            sys.meta_path.remove(importer)
            pending.clear()  # a module that was found within the context may be imported later


class _PatchOnImport(MetaPathFinder):
    """Patches a module after its import. The module is found by the other finders."""

    def __init__(
        self, pending: MutableMapping[str, Patch], interceptor: Interceptor, patches: ExitStack
    ) -> None:
        self._pending, self._interceptor, self._patches = pending, interceptor, patches

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> Any:
        if fullname not in self._pending:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in others)), None)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            # Not in `find_spec`: many modules only check whether this one exists.
            patch = self._pending.pop(fullname, None)
            if patch is not None:
                self._patches.enter_context(patch(module, self._interceptor))

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
