"""Answers without stubs: by a function named by its dotted path, and by the real thing."""

import asyncio
import re
from typing import Any

import pytest

from harness.errors import UnscriptedCall
from harness.graph.effects import AgentCall, ToolCall
from harness.world.scripted import ScriptedWorld
from harness.world.spec import WorldSpec
from tests.world.stubs import answers, ask, really, world_spec


def doubled(n: Any) -> Any:
    return n * 2


def test_a_dotted_path_replaces_a_tool() -> None:
    spec = world_spec(tools={"t": f"{__name__}.doubled"})
    assert answers(spec, ToolCall(name="t", args={"n": 4})) == [8]


def test_local_agents_run_for_real_unless_stubbed_and_tools_only_when_told() -> None:
    assert answers(WorldSpec(), AgentCall(name="a", real=really)) == ["really"]
    assert answers(world_spec(tools={"t": "real"}), ToolCall(name="t", real=really)) == ["really"]
    with pytest.raises(UnscriptedCall):
        answers(WorldSpec(), ToolCall(name="t", real=really))


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (SystemExit(3), "it called sys.exit(3)"),
        (GeneratorExit("bye"), "it raised GeneratorExit: bye"),
        (asyncio.CancelledError(), "it raised CancelledError"),
        (KeyboardInterrupt(), "it raised KeyboardInterrupt"),
        (BaseExceptionGroup("two", [KeyboardInterrupt(), ValueError()]), "it raised BaseExceptionGroup: two"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_base_exceptions_of_a_tool_are_its_failure(raised: Any, told: Any) -> None:
    async def ends() -> None:
        raise raised

    world = ScriptedWorld(world_spec(tools={"t": "real"}))
    with pytest.raises(RuntimeError, match=re.escape(told)):
        ask(world, ToolCall(name="t", real=ends))
