"""Timeout, retry and fallback around a node, in virtual time. spec: "Resilience"."""

from pathlib import Path
from typing import Any

import pytest

from harness.errors import UnscriptedCall
from harness.world.spec import Entry, Stub, WorldSpec
from tests.dialects.yagra.small import Played, answers, fails, handlers, play

LOCKER = {"id": "locker", "handler": "leave"}


def ship(folder: Path, *stubs: Stub, **said: Any) -> Played:
    """A run of one node whose handler is stubbed; its fallback, if it has one, is a node that does nothing."""
    node = {"id": "ship", "handler": "ship", **said}
    nodes = [node, LOCKER] if "fallback" in said else [node]
    return play(folder, *nodes, world=handlers(ship=stubs, leave=[answers()]), given={"to": "mill"})


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
    played = ship(tmp_path, fails("road closed", times=failures), answers(by="van"), retry=retry)
    assert (played.state["by"], played.seconds) == ("van", seconds)
    assert played.path == ["ship"]


def test_the_last_error_is_told_as_it_is_and_nothing_waits_after_it(tmp_path: Path) -> None:
    errors = [
        fails("closed", 1, "OSError"),
        fails("no driver", 1, "ValueError"),
        fails("lost", 1, "LookupError"),
    ]
    played = ship(tmp_path, *errors, retry={"backoff": "fixed"})
    assert (type(played.error), str(played.error)) == (LookupError, "lost")
    assert played.seconds == 4


def test_without_retry_there_is_one_attempt(tmp_path: Path) -> None:
    assert str(ship(tmp_path, fails("closed", times=1), answers(by="van")).error) == "closed"


def test_an_answer_that_is_no_mapping_is_a_failure_like_any_other(tmp_path: Path) -> None:
    nothing = Stub(times=1, answer={"return": None})
    assert ship(tmp_path, nothing, answers(by="van"), retry={}).state["by"] == "van"
    assert "mapping" in ship(tmp_path, nothing, fallback="locker").state["__error__"]


# ------------------------------------------------------------ timeouts


def test_an_attempt_is_over_when_its_time_is(tmp_path: Path) -> None:
    played = ship(tmp_path, answers(latency_s=8, by="donkey"), timeout_seconds=3)
    assert type(played.error) is TimeoutError
    assert str(played.error) == "node 'ship' timed out after 3 s"
    assert played.seconds == 3


def test_a_timeout_holds_for_each_attempt(tmp_path: Path) -> None:
    slow = [answers(1, 20, by="ox"), answers(1, 7, by="donkey"), answers(1, 2, by="horse")]
    retry = {"backoff": "fixed", "base_delay_seconds": 1}
    played = ship(tmp_path, *slow, retry=retry, timeout_seconds=4)
    assert (played.state["by"], played.seconds) == ("horse", 4 + 1 + 4 + 1 + 2)


def test_a_timeout_of_the_handler_s_own_is_told_as_it_is(tmp_path: Path) -> None:
    played = ship(tmp_path, fails("no answer from the road", kind="TimeoutError"), timeout_seconds=3)
    assert str(played.error) == "no answer from the road"


@pytest.mark.parametrize("then", ["return {'by': 'ox'}", "raise ValueError('interrupted')"])
def test_what_a_handler_makes_of_being_late_is_dropped(tmp_path: Path, then: str) -> None:
    python = f"""
import asyncio

async def slow(state):
    try:
        await asyncio.sleep(9)
    except asyncio.CancelledError:
        {then}
"""
    node = {"id": "ship", "handler": "slow", "timeout_seconds": 3}
    played = play(tmp_path, node, world=handlers(slow="slow"), python=python)
    assert str(played.error) == "node 'ship' timed out after 3 s"


# ------------------------------------------------------------ fallbacks


def test_a_fallback_reads_the_last_error_and_the_rest_of_the_state(tmp_path: Path) -> None:
    played = ship(
        tmp_path,
        fails("closed", times=1),
        answers(latency_s=9),
        retry={"max_attempts": 2, "base_delay_seconds": 1},
        timeout_seconds=5,
        fallback="locker",
    )
    assert played.path == ["ship", "locker"]
    assert played.state == {"to": "mill", "__error__": "node 'ship' timed out after 5 s"}
    assert played.seconds == 1 + 5


def test_a_fallback_is_passed_by_on_success(tmp_path: Path) -> None:
    assert ship(tmp_path, answers(by="van"), fallback="locker").path == ["ship"]


def test_addresses_in_memory_do_not_get_into_the_state(tmp_path: Path) -> None:
    text = "<Van object at 0x7f12ab> broke down"
    assert ship(tmp_path, fails(text), fallback="locker").state["__error__"] == "<Van object> broke down"


def test_what_nobody_answers_is_not_absorbed(tmp_path: Path) -> None:
    played = ship(tmp_path, answers(times=0), retry={}, timeout_seconds=5, fallback="locker")
    assert isinstance(played.error, UnscriptedCall)
    assert (played.path, played.seconds) == (["ship"], 0)


def test_a_handler_that_cannot_be_imported_is_not_absorbed(tmp_path: Path) -> None:
    world = WorldSpec(handlers={"ship": Entry(real="own.shipp"), "leave": Entry(stubs=(answers(),))})
    node = {"id": "ship", "handler": "ship", "retry": {}, "fallback": "locker"}
    played = play(tmp_path, node, LOCKER, world=world, python="def ship(state): return {}")
    assert "did you mean 'ship'?" in str(played.error)
    assert played.path == ["ship"]
