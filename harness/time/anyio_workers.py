"""The worker threads of anyio, in which Starlette, the SDK of MCP and others run functions that block.

A call holds the clock from when it is handed to a thread; before, it may wait for the end of others. It has its
turn (`harness.time.turns`) until its result has been reported to the loop. So the loop goes on with one call before
another one begins, whichever thread is faster.
"""

from __future__ import annotations

import asyncio
import queue
from contextlib import AbstractContextManager, ExitStack, nullcontext
from types import ModuleType
from typing import Any

from harness.time.clock import VirtualTimeLoop
from harness.time.turns import active_turns


class _Call:
    """A function that a worker thread calls in a run. `holding` is closed when nobody waits for it any more."""

    def __init__(self, loop: VirtualTimeLoop, function: Any, holding: ExitStack) -> None:
        self._loop, self._function, self._holding = loop, function, holding

    def __call__(self, *args: Any) -> Any:
        with self._loop.sleepers.holding():
            return self._function(*args)

    def begin(self) -> AbstractContextManager[None]:
        """Hold the clock, and return the turn of the call, which is handed to a thread now."""
        self._holding.enter_context(self._loop.hold())
        turns = active_turns()
        if turns is None or not turns.is_member:
            return nullcontext()
        number = turns.number()
        turns.expect(number)
        return turns.turn(number)


class _Calls(queue.Queue[Any]):
    """The queue of a worker thread, which takes a call, makes it, reports its result, and calls `task_done`."""

    def put_nowait(self, item: Any) -> None:
        call = item[1] if item is not None else None
        super().put_nowait((item, call.begin() if isinstance(call, _Call) else nullcontext()))

    def get(self, *args: Any, **options: Any) -> Any:
        item, self._turn = super().get(*args, **options)
        self._turn.__enter__()
        return item

    def task_done(self) -> None:
        super().task_done()
        self._turn.__exit__(None, None, None)


def wrap_anyio(backend: ModuleType) -> None:
    """Let the calls of anyio's worker threads hold the clock and take turns."""
    asyncio_backend = backend.AsyncIOBackend
    run = asyncio_backend.run_sync_in_worker_thread.__func__

    async def run_sync_in_worker_thread(cls: Any, func: Any, args: Any, *more: Any, **options: Any) -> Any:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualTimeLoop):
            return await run(cls, func, args, *more, **options)
        with ExitStack() as holding:
            return await run(cls, _Call(loop, func, holding), args, *more, **options)

    asyncio_backend.run_sync_in_worker_thread = classmethod(run_sync_in_worker_thread)
    backend.Queue = _Calls  # type: ignore[attr-defined]
