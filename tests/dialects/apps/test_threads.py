"""Blocking code of an app: its threads run one at a time in a defined order, each on its own virtual clock."""

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
