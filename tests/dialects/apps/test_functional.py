"""The functional API: tasks, which run in the loop or in threads, and functions that wait for them."""

import pytest

from tests.dialects.apps.conftest import RunApp

APP = """
    import asyncio, inspect, time
    from langgraph.func import entrypoint, task
    from langgraph.types import RetryPolicy

    @task
    async def wait(seconds):
        await asyncio.sleep(seconds)
        return seconds

    @task
    def sleep(seconds):
        time.sleep(seconds)
        return seconds

    attempts = []

    policy = RetryPolicy(max_attempts=3, initial_interval=2, jitter=False, retry_on=ValueError)
    keyword = "retry_policy" if "retry_policy" in inspect.signature(task).parameters else "retry"

    @task(**{keyword: policy})
    def fail_twice(seconds):
        attempts.append(seconds)
        if len(attempts) < 3:
            raise ValueError("not yet")
        return seconds

    @task
    async def twice(seconds):
        return await wait(seconds) + await wait(seconds)

    @entrypoint()
    def waiting(_):
        return [each.result() for each in [wait(2), wait(3)]]

    @entrypoint()
    def mixing(_):
        return [each.result() for each in [wait(2), sleep(4)]]

    @entrypoint()
    def retrying(_):
        return fail_twice(1).result()

    @entrypoint()
    async def nesting(_):
        return await asyncio.gather(twice(1), twice(3)) + [await twice(1)]
"""


@pytest.mark.parametrize(
    ("name", "output", "latency", "path"),
    [
        ("waiting", "[2, 3]", 3, "[waiting, [wait, wait]]"),
        ("mixing", "[2, 4]", 4, "[mixing, [wait, sleep]]"),
        ("retrying", "1", 6, "[retrying, fail_twice]"),
        (
            "nesting",
            "[2, 6, 2]",
            8,
            "[nesting, [twice, twice], [wait, wait, wait], wait, twice, wait, wait]",
        ),
    ],
)
def test_a_function_waits_for_its_tasks_in_virtual_time(
    run_app: RunApp, name: str, output: str, latency: int, path: str
) -> None:
    expected = f"{{output: {output}, path: {path}, latency: {{total: {latency}}}}}"
    scenario = f"{{name: it, input: x, expect: {expected}}}"
    scenarios = f"manifest: app.py:{name}\nscenarios: [{scenario}]"
    outcome = run_app(scenarios, {"app.py": APP}, real_timeout=10)["it"]
    assert outcome.passed, outcome.checks
    assert outcome.observed.latency["total"] == latency
