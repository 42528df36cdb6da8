"""Real work that other libraries start and the loop waits for. It holds the clock, as the loop's own threads do.

asyncio.wrap_future                   a future of another thread
asyncio.run_coroutine_threadsafe      the thread that waits for the result gives the clock back meanwhile
anyio's worker threads                (`anyio.to_thread.run_sync`, and the libraries on top of it)
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from harness.time.clock import VirtualTimeLoop
from harness.time.rebinding import rebind, when_imported


@cache
def hold_for_libraries() -> None:
    """Replace the functions through which libraries start real work, once in a process."""
    for module in (asyncio.futures, asyncio):
        rebind(module, [("wrap_future", _wrap_future)])
    for module in (asyncio.tasks, asyncio):
        rebind(module, [("run_coroutine_threadsafe", _run_coroutine_threadsafe)])
    when_imported("anyio._backends._asyncio", _hold_for_anyio)


def _wrap_future(original: Callable[..., asyncio.Future[Any]]) -> Callable[..., asyncio.Future[Any]]:
    def wrap_future(future: Any, *, loop: asyncio.AbstractEventLoop | None = None) -> asyncio.Future[Any]:
        wrapped = original(future, loop=loop)
        on = wrapped.get_loop()
        foreign = isinstance(future, concurrent.futures.Future) and not hasattr(future, "waits_for_loop")
        if foreign and isinstance(on, VirtualTimeLoop):
            on.hold_until_done(wrapped)
        return wrapped

    return wrap_future


def _run_coroutine_threadsafe(original: Callable[..., Any]) -> Callable[..., Any]:
    def run_coroutine_threadsafe(coroutine: Any, loop: asyncio.AbstractEventLoop) -> Any:
        future = original(coroutine, loop)
        if isinstance(loop, VirtualTimeLoop):
            future.waits_for_loop = True
            for name in ("result", "exception"):
                setattr(future, name, _yielding(loop, future, getattr(future, name)))
        return future

    return run_coroutine_threadsafe


def _yielding(loop: VirtualTimeLoop, future: Any, wait: Callable[..., Any]) -> Callable[..., Any]:
    def yielding(timeout: float | None = None) -> Any:
        if future.done():
            return wait(0)
        take_back = loop.sleepers.yield_until(future.add_done_callback)
        try:
            return wait(timeout)
        finally:
            take_back(future)

    return yielding


def _hold_for_anyio(backend: ModuleType) -> None:
    asyncio_backend = backend.AsyncIOBackend
    run = asyncio_backend.run_sync_in_worker_thread.__func__

    async def run_sync_in_worker_thread(cls: Any, func: Any, args: Any, *more: Any, **options: Any) -> Any:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualTimeLoop):
            return await run(cls, func, args, *more, **options)

        def work(*given: Any) -> Any:
            with loop.sleepers.holding():
                return func(*given)

        with loop.hold():
            return await run(cls, work, args, *more, **options)

    asyncio_backend.run_sync_in_worker_thread = classmethod(run_sync_in_worker_thread)
