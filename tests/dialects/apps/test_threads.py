"""Blocking code of an app: its threads run one at a time in a defined order, each on its own virtual clock."""

import pytest

from tests.dialects.apps.conftest import RunApp

FAN_OUT = """
    import operator, threading, time, uuid
    from concurrent.futures import ThreadPoolExecutor
    from datetime import datetime
    from typing import Annotated, TypedDict

    import openai
    from langgraph.graph import START, StateGraph
    from langgraph.types import Send


    class State(TypedDict, total=False):
        seconds: list
        told: Annotated[list, operator.add]


    def ask(question):
        messages = [{"role": "user", "content": question}]
        reply = openai.OpenAI().chat.completions.create(model="gpt-4o", messages=messages)
        return reply.choices[0].message.content


    def plan(state):
        return {}


    def sleep(state):
        time.sleep(state["seconds"])
        return {"told": [[state["seconds"], datetime.now().isoformat(), str(uuid.uuid4())]]}


    def work(state):
        told = []
        with ThreadPoolExecutor(3) as pool:
            told += pool.map(ask, ["a", "b", "c"])
        thread = threading.Thread(target=lambda: told.append(ask("thread")))
        thread.start()
        thread.join()
        return {"told": [told, datetime.now().isoformat()]}


    def parts(state):
        return [Send("part", {"seconds": seconds}) for seconds in state["seconds"]]


    def graph_of(node):
        builder = StateGraph(State)
        builder.add_node("plan", plan)
        builder.add_node("part", node)
        builder.add_edge(START, "plan")
        builder.add_conditional_edges("plan", parts, ["part"])
        return builder.compile()


    sleepers, workers = graph_of(sleep), graph_of(work)
"""


def test_two_parallel_blocking_nodes_cost_the_longer_one(run_app: RunApp) -> None:
    (outcome,) = run_app(
        """
        manifest: app.py:sleepers
        scenarios:
          - name: it
            input: {seconds: [6, 7, 2]}
            expect: {path: [plan, [part, part, part]], latency: {total: 7}}
        """,
        {"app.py": FAN_OUT},
    ).values()
    assert outcome.passed, outcome.checks
    assert [told[1][-8:] for told in outcome.observed.state["told"]] == ["00:00:06", "00:00:07", "00:00:02"]


def test_threads_of_threads_leave_the_same_trace_in_every_run(run_app: RunApp) -> None:
    scenarios = """
        manifest: app.py:workers
        scenarios:
          - name: it
            input: {seconds: [1, 2, 3]}
            llm: [{reply: r, latency: 1.5, times: any}]
            expect: {latency: {total: 3}, calls: [{llm: gpt-4o, node: part}]}
    """
    found = [run_app(scenarios, {"app.py": FAN_OUT})["it"] for _ in range(3)]
    assert all(one.passed for one in found), found[0].checks
    assert len({one.digest for one in found}) == 1


def test_requests_without_a_loop_wait_on_the_clock_of_their_thread(run_app: RunApp) -> None:
    app = (
        FAN_OUT
        + """
    def agent(question):
        began = datetime.now()
        ask("one"), ask("two")
        return (datetime.now() - began).total_seconds()
    """
    )
    (outcome,) = run_app(
        """
        manifest: app.py:agent
        scenarios:
          - name: it
            input: hi
            llm: [{error: {kind: rate_limit, retry_after: 20}}, {reply: a, latency: 1.5}, {reply: b, latency: 2}]
            expect: {latency: {total: 23.5}, output: 23.5}
        """,
        {"app.py": app},
    ).values()
    assert outcome.passed, outcome.checks


ANYIO = """
    import asyncio, sys

    import anyio
    import openai

    sys.setswitchinterval(1e-6)  # the system may change between threads at any instant


    def ask(question, order):
        order.append(f"{question} begins")
        messages = [{"role": "user", "content": question}]
        openai.OpenAI().chat.completions.create(model="gpt-4o", messages=messages)
        order.append(f"{question} ends")


    async def part(question, order):
        await anyio.to_thread.run_sync(ask, question, order)
        order.append(f"{question} goes on")
        await anyio.to_thread.run_sync(order.append, f"{question} calls again")


    async def ask_all(questions):
        order = []
        await asyncio.gather(*(part(each, order) for each in questions["questions"]))
        return order


    async def sleep_by_twos(input):
        limiter = anyio.CapacityLimiter(2)
        work = [anyio.to_thread.run_sync(anyio.from_thread.run, anyio.sleep, 3, limiter=limiter) for _ in range(4)]
        await asyncio.gather(*work)
"""


def test_the_loop_goes_on_with_one_call_of_anyio_before_another_begins(run_app: RunApp) -> None:
    questions = ["a", "b", "c", "d", "e", "f"]
    found = run_app(
        f"""
        manifest: app.py:ask_all
        scenarios:
          - name: it
            repeat: 4
            input: {{questions: {questions}}}
            llm: [{{reply: r, times: any}}]
        """,
        {"app.py": ANYIO},
    )
    assert all(one.passed for one in found.values()), found
    expected = [f"{each} {what}" for each in questions for what in ("begins", "ends", "goes on")]
    expected += [f"{each} calls again" for each in questions]
    assert [one.observed.output for one in found.values()] == [expected] * 4
    assert len({one.digest for one in found.values()}) == 1


def test_calls_of_anyio_that_have_no_thread_yet_do_not_stop_the_clock(run_app: RunApp) -> None:
    scenarios = """
        manifest: app.py:sleep_by_twos
        scenarios: [{name: it, input: hi, expect: {latency: {total: 6}}}]
    """
    (outcome,) = run_app(scenarios, {"app.py": ANYIO}, real_timeout=10).values()
    assert outcome.passed, outcome.observed.error


POOLS = """
    import asyncio, threading, time
    from concurrent.futures import ThreadPoolExecutor


    async def by_twos(input):
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(2) as pool:
            await asyncio.gather(*(loop.run_in_executor(pool, time.sleep, 3) for _ in range(4)))


    def named_arguments(input):
        found = []
        given = {"function": "a", "self": "b"}
        thread = threading.Thread(target=lambda **named: found.append(named), kwargs=given)
        thread.start()
        thread.join()
        with ThreadPoolExecutor() as pool:
            return [*found, pool.submit(dict, **given).result()]
"""


def test_work_of_a_pool_that_has_no_thread_yet_does_not_stop_the_clock(run_app: RunApp) -> None:
    scenarios = """
        manifest: app.py:by_twos
        scenarios: [{name: it, input: hi, expect: {latency: {total: 6}}}]
    """
    (outcome,) = run_app(scenarios, {"app.py": POOLS}, real_timeout=10).values()
    assert outcome.passed, outcome.observed.error


def test_what_a_thread_calls_may_have_arguments_of_any_name(run_app: RunApp) -> None:
    given = {"function": "a", "self": "b"}
    scenarios = """
        manifest: app.py:named_arguments
        scenarios: [{name: it, input: hi}]
    """
    (outcome,) = run_app(scenarios, {"app.py": POOLS}).values()
    assert outcome.observed.output == [given, given], outcome.observed.error


LOOPS = """
    import asyncio, socket, threading, time
    from queue import SimpleQueue

    import httpx

    loop = asyncio.new_event_loop()


    async def page(name):
        await asyncio.sleep(2)
        async with httpx.AsyncClient() as client:
            return (await client.get(f"https://pages.example/{name}")).text


    async def two():
        async with asyncio.timeout(6):
            return await asyncio.gather(page("a"), page("b"))


    def own_loop(question):
        began = time.monotonic()
        return [*asyncio.run(two()), time.monotonic() - began]


    def loop_of_a_thread(question):
        threading.Thread(target=loop.run_forever, daemon=True).start()
        found = [asyncio.run_coroutine_threadsafe(page(name), loop).result() for name in "ab"]
        loop.call_soon_threadsafe(loop.stop)
        return found


    async def awaiting_a_thread(question):
        return await asyncio.to_thread(own_loop, question)


    def worker_with_a_simple_queue(question):
        tasks, answers = SimpleQueue(), SimpleQueue()

        def work():
            while (task := tasks.get()) is not None:
                time.sleep(2)
                answers.put(asyncio.run(page(task)))

        threading.Thread(target=work).start()
        for task in ("a", "b", None):
            tasks.put(task)
        return [answers.get(), answers.get()]


    def waiting_for_a_socket(question):
        here, there = socket.socketpair()
        threading.Thread(target=lambda: here.recv(1), daemon=True).start()
        return asyncio.run(page("a"))


    def waiting_in_c(question):
        lock = threading.Lock()
        lock.acquire()
        threading.Thread(target=lock.acquire, daemon=True).start()
        return asyncio.run(page("a"))
"""


def test_loops_of_other_threads_follow_the_clock(run_app: RunApp) -> None:
    found = run_app(
        """
        manifest: app.py:own_loop
        defaults: {input: hi, http: [{url: "https://pages.example/*", text: page, latency: 3, times: any}]}
        scenarios:
          - {name: asyncio.run, expect: {output: [page, page, 5.0], latency: {total: 5}}}
          - name: asyncio.run in a thread
            manifest: app.py:awaiting_a_thread
            expect: {output: [page, page, 5.0], latency: {total: 5}}
          - name: a loop that works for others
            manifest: app.py:loop_of_a_thread
            expect: {output: [page, page], latency: {total: 10}}
          - name: a thread that waits for tasks, as those of aiosqlite do
            manifest: app.py:worker_with_a_simple_queue
            expect: {output: [page, page], latency: {total: 14}}
          - name: a time limit on such a loop
            http: [{url: "https://pages.example/*", text: page, latency: 30, times: any}]
            expect: {status: failed, error: {type: TimeoutError}, latency: {total: 6}}
        """,
        {"app.py": LOOPS},
    )
    assert {name: one.checks for name, one in found.items() if not one.passed} == {}


def test_a_thread_that_the_import_starts_is_there_in_each_run(run_app: RunApp) -> None:
    """It is not in a fork, so each run imports the app itself."""
    app = (
        LOOPS
        + """
    threading.Thread(target=loop.run_forever, daemon=True).start()


    def loop_of_the_import(question):
        return asyncio.run_coroutine_threadsafe(page("a"), loop).result(100)
    """
    )
    found = run_app(
        """
        manifest: app.py:loop_of_the_import
        scenarios:
          - name: it
            repeat: 2
            input: hi
            http: [{url: "https://pages.example/*", text: page, latency: 3}]
            expect: {output: page, latency: {total: 5}}
        """,
        {"app.py": app},
        real_timeout=10.0,
    )
    assert {name: one.checks for name, one in found.items() if not one.passed} == {}
    assert len({one.digest for one in found.values()}) == 1


def test_a_thread_that_waits_outside_of_python_keeps_no_turn(
    run_app: RunApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the poller of gRPC does, which waits in C for ever."""
    monkeypatch.setattr("harness.time.turns._ASLEEP_S", 0.3)
    found = run_app(
        """
        manifest: app.py:waiting_in_c
        defaults:
          input: hi
          http: [{url: "https://pages.example/*", text: page, latency: 3}]
          expect: {output: page, latency: {total: 5}}
        scenarios:
          - {name: a function that is not of Python}
          - {name: a function that waits for the system, manifest: "app.py:waiting_for_a_socket"}
        """,
        {"app.py": LOOPS},
        real_timeout=10.0,
    )
    assert {name: one.checks for name, one in found.items() if not one.passed} == {}


ASKED = """
    import asyncio
    import queue
    import threading
    from typing import TypedDict

    from langgraph.graph import StateGraph

    class State(TypedDict):
        total: int

    asked = queue.SimpleQueue()
    started = []

    def work():
        while (future := asked.get()) is not None:
            total = sum(range(300_000))
            future.get_loop().call_soon_threadsafe(future.set_result, total)

    async def ask():
        if not started:
            started.append(threading.Thread(target=work, daemon=True))
            started[0].start()
        future = asyncio.get_running_loop().create_future()
        asked.put(future)
        return await future

    async def add(state):
        return {"total": await ask() + await ask()}

    graph = StateGraph(State).add_node(add).set_entry_point("add").compile()

    async def make():
        await ask()
        return graph
"""


def test_a_thread_works_for_what_comes_after_the_part_of_the_run_that_starts_it(run_app: RunApp) -> None:
    """Such as that of a connection with a database, which the making of the graph or the first turn opens."""
    found = run_app(
        """
        defaults: {timeout: 5}
        scenarios:
          - {name: made, manifest: "app.py:make", input: {total: 0}}
          - name: turns
            manifest: app.py:graph
            turns: [{input: {total: 0}}, {input: {total: 1}}, {input: {total: 2}}]
        """,
        {"app.py": ASKED},
    )
    for outcome in found.values():
        assert outcome.observed.status == "completed"
        assert outcome.observed.state["total"] == 2 * sum(range(300_000))
        assert outcome.observed.latency["total"] == 0
