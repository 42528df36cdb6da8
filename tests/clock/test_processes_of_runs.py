"""Processes that the code of a run forks: they read the clock of the run, and draw what no other process draws."""

import multiprocessing

import pytest

from tests.clock.test_time_of_runs import Run, read, run

__all__ = ["run"]

pytestmark = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)

HEAD = """
import asyncio, datetime, multiprocessing, time, uuid
from concurrent.futures import ProcessPoolExecutor
fork = multiprocessing.get_context("fork")
def work(*_):
    time.sleep(100)
    return str(uuid.uuid4())
def read_clock():
    return time.monotonic()
def child(queue):
    queue.put((datetime.datetime.now().isoformat(), work()))
"""


def test_the_clock_stands_still_while_an_executor_of_processes_works(run: Run) -> None:
    body = """
loop = asyncio.get_running_loop()
with ProcessPoolExecutor(1, fork) as pool:
    first = loop.run_in_executor(pool, read_clock)
    await asyncio.gather(loop.run_in_executor(pool, work), asyncio.sleep(2), first)
return {"began": first.result()}
"""
    outcome = run(body, head=HEAD)
    assert read(outcome) == {"began": 1000}
    assert outcome.observed.latency["total"] == 2


def test_each_process_draws_its_own_and_the_same_in_every_run(run: Run) -> None:
    body = """
ids = [str(uuid.uuid4())]
for _ in range(2):
    queue = fork.SimpleQueue()
    process = fork.Process(target=child, args=(queue,))
    process.start()
    began, drawn = queue.get()
    process.join()
    ids.append(drawn)
return {"ids": ids, "began": began, "code": process.exitcode}
"""
    found = read(run(body, head=HEAD))
    assert len(set(found["ids"])) == 3
    assert (found["began"], found["code"]) == ("2026-01-01T00:00:00", 0)
    assert read(run(body, head=HEAD)) == found
