"""Faults hit the effects of a scripted world by count, by rate and by their matchers."""

import asyncio
import threading
from typing import Any

from harness.graph.effects import ToolCall
from harness.world.responder import Faults
from harness.world.scripted import ScriptedWorld
from harness.world.spec import Fault
from tests.world.stubs import ask, llm, reply, world_spec


def answers_under(fault: Any, count: Any = 6, seed: Any = 0, **effect: Any) -> Any:
    spec = world_spec(llm=[reply("hello", times="any")], faults=[{"effect": "llm", **fault}])
    world = ScriptedWorld(spec, seed=seed)
    return [ask(world, llm(**effect)) for _ in range(count)]


OVERLOAD = "server_error"


def test_the_nth_and_every_nth_effect_are_hit() -> None:
    assert [bool(a.error) for a in answers_under({"nth": 2, "error": OVERLOAD})] == [
        False,
        True,
    ] + [False] * 4
    assert [bool(a.error) for a in answers_under({"every": 3, "error": OVERLOAD})] == [
        False,
        False,
        True,
    ] * 2


def test_a_rate_is_drawn_from_the_seed() -> None:
    def hits(seed: Any) -> Any:
        return [bool(a.error) for a in answers_under({"rate": 0.5, "error": OVERLOAD}, 40, seed)]

    assert hits(1) == hits(1)
    assert hits(1) != hits(2)
    assert 5 < sum(hits(1)) < 35


def test_latency_is_added_and_text_is_cut() -> None:
    slow, cut = (
        answers_under({"nth": 1, "latency": 2.5})[0],
        answers_under({"nth": 1, "truncate": 3})[0],
    )
    assert (slow.latency_s, cut.value.text) == (2.5, "hel")


def test_faults_look_at_kind_node_and_name() -> None:
    assert not any(a.error for a in answers_under({"effect": "tool", "nth": 1, "error": OVERLOAD}))
    assert not any(a.error for a in answers_under({"node": "other", "nth": 1, "error": OVERLOAD}))
    assert any(a.error for a in answers_under({"node": "n", "name": "gpt*", "nth": 1, "error": OVERLOAD}))


def test_of_two_threads_that_ask_at_once_one_is_hit_by_the_fault_of_the_second_call() -> None:
    hit: list[bool] = []

    class Slow(Fault):
        """A fault that lets another thread make a call while its count is read."""

        def __getattribute__(self, name: str) -> Any:
            if name == "nth" and not beside.ident:
                beside.start()
                beside.join(0.2)
            return super().__getattribute__(name)

    faults = Faults(seed=0)
    faults.add([Slow.model_validate({"effect": "tool", "nth": 2, "error": "timeout"})])

    def ask_and_note() -> None:
        active = faults.draw(ToolCall(name="f", args={}))
        hit.append(asyncio.run(active.answer(ToolCall(name="f", args={}), {})) is not None)

    beside = threading.Thread(target=ask_and_note)
    ask_and_note()
    beside.join()
    assert sorted(hit) == [False, True]
