"""User code that waits in every way, and reads every source of time and chance."""

import asyncio
import os
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from time import perf_counter, sleep

import anyio.from_thread
import anyio.to_thread
import numpy as np

try:
    from sherma.hooks import BaseHookExecutor
except ImportError:

    class BaseHookExecutor:
        pass


REAL_WORK = [sys.executable, "-c", "import time; time.sleep(0.05)"]


def read_clocks():
    """Return every reading of the time."""
    return {
        "today": date.today().isoformat(),
        "local": datetime.now().isoformat(),
        "utc": datetime.now(UTC).isoformat(),
        "timestamp": time.time(),
        "zone": time.strftime("%Z"),
        "monotonic": time.monotonic_ns(),
        "counter": perf_counter(),
        "processor": time.process_time(),
    }


def draw():
    """Return something of every source of ids and chance."""
    return {
        "uuid1": str(uuid.uuid1()),
        "uuid4": str(uuid.uuid4()),
        "secret": secrets.token_hex(4),
        "bytes": os.urandom(4).hex(),
        "random": random.random(),
        "choice": random.sample(range(100), 3),
        "generator": random.Random().random(),
        "numpy": float(np.random.rand()),
        "numpy generator": float(np.random.default_rng().random()),
        "name": os.path.basename(tempfile.mktemp()),
    }


def real_work():
    """Wait for a process, for a twentieth of a real second."""
    return subprocess.run(REAL_WORK, check=True).returncode


def block():
    """Wait as blocking code does: 15 virtual seconds, and a little real work."""
    sleep(5)
    threads = [threading.Thread(target=time.sleep, args=(seconds,)) for seconds in (2, 4, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(time.sleep, [3, 3, 3]))
    return real_work()


async def wait():
    """Wait as asynchronous code does: 15 virtual seconds, and a little real work in every style."""
    loop = asyncio.get_running_loop()
    await asyncio.gather(asyncio.sleep(3), asyncio.to_thread(sleep, 5), anyio.to_thread.run_sync(sleep, 4))

    async def later():
        await asyncio.sleep(5)

    await asyncio.to_thread(lambda: asyncio.run_coroutine_threadsafe(later(), loop).result())
    await anyio.to_thread.run_sync(anyio.from_thread.run, later)
    with ThreadPoolExecutor(1) as pool:
        await asyncio.wrap_future(pool.submit(real_work))
    await loop.run_in_executor(None, real_work)
    await asyncio.to_thread(real_work)
    await anyio.to_thread.run_sync(real_work)
    process = await asyncio.create_subprocess_exec(*REAL_WORK, stdout=asyncio.subprocess.PIPE)
    await process.communicate()
    process = await asyncio.create_subprocess_shell("sleep 0.05")
    return await process.wait()


def report(before):
    after = read_clocks()
    return {
        "began": before["local"],
        "ended": after["local"],
        "took": after["counter"] - before["counter"],
        "readings": after,
        "drawn": draw(),
    }


def blocking():
    """Block, and report all readings."""
    before = read_clocks()
    block()
    return report(before)


async def waiting():
    """Wait, and report all readings."""
    before = read_clocks()
    await wait()
    return report(before)


def block_node(state):
    return {"blocking": blocking()}


async def wait_node(state):
    return {"waiting": await waiting()}


class ClockHook(BaseHookExecutor):
    """Runs the custom nodes of the sherma agent."""

    async def node_execute(self, ctx):
        ctx.result = {"blocking": blocking(), "waiting": await waiting()}
        return ctx
