"""Intercepts gRPC, whose answers no stub can write: a chat model is answered elsewhere, any other call is refused.

gRPC opens its connections in C, where no closed network stops it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, Final

from harness.errors import WorldError
from harness.interception.interceptor import Interceptor
from harness.interception.messages import Request
from harness.interception.patches import patched
from harness.interception.real_effects import not_intercepted, raise_unanswerable

MODULES: Final = ("grpc._channel", "grpc.aio._channel")
"""The modules that make calls: blocking, and with an event loop."""


@contextmanager
def patched_grpc(module: Any, interceptor: Interceptor) -> Iterator[None]:
    """Intercept the calls that the classes of a module of gRPC make."""
    with ExitStack() as patches:
        for name, owner in list(vars(module).items()):
            if name.endswith("MultiCallable") and owner.__module__ == module.__name__:
                # What is called through `_blocking` has a `future`, too.
                entries = [each for each in ("_blocking", "future") if each in vars(owner)] or ["__call__"]
                made = {
                    each: _claimed(vars(owner)[each], interceptor, _method)
                    for each in entries
                    if each in vars(owner)
                }
                patches.enter_context(patched(owner, **made))
        channel = getattr(module, "Channel", None)
        if channel is not None and "subscribe" in vars(channel):  # waiting for a connection would never end
            connect = _claimed(channel.subscribe, interceptor, lambda self: self._channel.target())
            patches.enter_context(patched(channel, subscribe=connect))
        yield


def _method(call: Any) -> Any:
    return call._method


def _claimed(
    original: Callable[..., Any], interceptor: Interceptor, name_of: Callable[[Any], bytes | str]
) -> Callable[..., Any]:
    @wraps(original)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        if not not_intercepted.get():
            name = name_of(self)
            address = f"grpc://{(name.decode() if isinstance(name, bytes) else name).lstrip('/')}"
            if interceptor.claim(Request("POST", address, {}, b"")) is not None:
                raise_unanswerable(
                    WorldError(f"an http stub cannot answer {address}: gRPC has answers of its own")
                )
            sys.audit("socket.connect", None, address)
        return original(self, *args, **options)

    return call
