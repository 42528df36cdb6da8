"""Timeout, retry and fallback around a node, in virtual time. spec: "Resilience"."""

from pathlib import Path
from typing import Any

import pytest

from harness.errors import UnscriptedCall
from tests.dialects.yagra.runs import RunResult, answers, fails, handlers, run_workflow
from tests.world.stubs import world_spec

LOCKER = {"id": "locker", "handler": "leave"}


def ship(folder: Path, *stubs: Any, **said: Any) -> RunResult:
    """Run one node whose handler is stubbed. Its fallback, if it has one, is a node that does nothing."""
    node = {"id": "ship", "handler": "ship", **said}
    nodes = [node, LOCKER] if "fallback" in said else [node]
    return run_workflow(folder, *nodes, world=handlers(ship=stubs, leave=[answers()]), given={"to": "mill"})


@pytest.mark.parametrize(
    ("retry", "failures", "seconds"),
    [
        ({}, 2, 2 + 4),
        ({"backoff": "fixed"}, 2, 2 + 2),
        ({"max_attempts": 4, "base_delay_seconds": 1.5}, 3, 1.5 + 3 + 6),
        ({"max_attempts": 4, "backoff": "fixed", "base_delay_seconds": 0.1}, 3, 0.3),
        ({"base_delay_seconds": 0}, 2, 0),
        ({"max_attempts": 10, "base_delay_seconds": 60}, 9, 60 * (2**9 - 1)),
    ],
)
def test_delays_between_attempts(
    tmp_path: Path, retry: dict[str, Any], failures: int, seconds: float
) -> None:
    result = ship(tmp_path, fails("road closed", times=failures), answers(by="van"), retry=retry)
    assert (result.state["by"], result.seconds) == ("van", seconds)
    assert result.path == ["ship"]


def test_the_last_error_is_reported_unchanged_without_a_delay_after_it(tmp_path: Path) -> None:
    errors = [
        fails("closed", 1, "OSError"),
        fails("no driver", 1, "ValueError"),
        fails("lost", 1, "LookupError"),
    ]
    result = ship(tmp_path, *errors, retry={"backoff": "fixed"})
    assert (type(result.error), str(result.error)) == (LookupError, "lost")
    assert result.seconds == 4


def test_without_retry_there_is_one_attempt(tmp_path: Path) -> None:
    assert str(ship(tmp_path, fails("closed", times=1), answers(by="van")).error) == "closed"


def test_a_return_value_other_than_a_mapping_is_retried(tmp_path: Path) -> None:
    nothing = {"times": 1, "return": None}
    assert ship(tmp_path, nothing, answers(by="van"), retry={}).state["by"] == "van"
    assert "mapping" in ship(tmp_path, nothing, fallback="locker").state["__error__"]


# ------------------------------------------------------------ timeouts


def test_an_attempt_ends_at_its_timeout(tmp_path: Path) -> None:
    result = ship(tmp_path, answers(latency_s=8, by="donkey"), timeout_seconds=3)
    assert type(result.error) is TimeoutError
    assert str(result.error) == "node 'ship' timed out after 3 s"
    assert result.seconds == 3


def test_a_timeout_holds_for_each_attempt(tmp_path: Path) -> None:
    slow = [answers(1, 20, by="ox"), answers(1, 7, by="donkey"), answers(1, 2, by="horse")]
    retry = {"backoff": "fixed", "base_delay_seconds": 1}
    result = ship(tmp_path, *slow, retry=retry, timeout_seconds=4)
    assert (result.state["by"], result.seconds) == ("horse", 4 + 1 + 4 + 1 + 2)


def test_a_timeout_error_of_the_handler_is_reported_unchanged(tmp_path: Path) -> None:
    result = ship(tmp_path, fails("no answer from the road", kind="TimeoutError"), timeout_seconds=3)
    assert str(result.error) == "no answer from the road"


@pytest.mark.parametrize("then", ["return {'by': 'ox'}", "raise ValueError('interrupted')"])
def test_the_result_of_a_cancelled_handler_is_dropped(tmp_path: Path, then: str) -> None:
    python = f"""
import asyncio

async def slow(state):
    try:
        await asyncio.sleep(9)
    except asyncio.CancelledError:
        {then}
"""
    node = {"id": "ship", "handler": "slow", "timeout_seconds": 3}
    result = run_workflow(tmp_path, node, world=handlers(slow="slow"), python=python)
    assert str(result.error) == "node 'ship' timed out after 3 s"


# ------------------------------------------------------------ fallbacks


def test_a_fallback_reads_the_last_error_and_the_rest_of_the_state(tmp_path: Path) -> None:
    result = ship(
        tmp_path,
        fails("closed", times=1),
        answers(latency_s=9),
        retry={"max_attempts": 2, "base_delay_seconds": 1},
        timeout_seconds=5,
        fallback="locker",
    )
    assert result.path == ["ship", "locker"]
    assert result.state == {"to": "mill", "__error__": "node 'ship' timed out after 5 s"}
    assert result.seconds == 1 + 5


def test_a_fallback_is_skipped_on_success(tmp_path: Path) -> None:
    assert ship(tmp_path, answers(by="van"), fallback="locker").path == ["ship"]


def test_addresses_in_memory_do_not_get_into_the_state(tmp_path: Path) -> None:
    text = "<Van object at 0x7f12ab> broke down"
    assert ship(tmp_path, fails(text), fallback="locker").state["__error__"] == "<Van object> broke down"


def test_an_unscripted_call_is_not_absorbed(tmp_path: Path) -> None:
    never = {"when": "false", "return": {}}
    result = ship(tmp_path, never, retry={}, timeout_seconds=5, fallback="locker")
    assert isinstance(result.error, UnscriptedCall)
    assert (result.path, result.seconds) == (["ship"], 0)


def test_a_handler_that_cannot_be_imported_is_not_absorbed(tmp_path: Path) -> None:
    world = world_spec(handlers={"ship": "own.shipp", "leave": [answers()]})
    node = {"id": "ship", "handler": "ship", "retry": {}, "fallback": "locker"}
    result = run_workflow(tmp_path, node, LOCKER, world=world, python="def ship(state): return {}")
    assert "did you mean 'ship'?" in str(result.error)
    assert result.path == ["ship"]
