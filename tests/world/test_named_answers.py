"""Answers by the name or the alias of an effect."""

from typing import Any

import pytest

from harness.graph.effects import (
    AgentCall,
    HandlerCall,
    HTTPCall,
    HumanCall,
    MCPCall,
    MCPEndpoint,
    RetrievalCall,
    ScriptCall,
    ToolCall,
)
from harness.world.scripted import ScriptedWorld
from harness.world.spec import WorldSpec
from tests.world.stubs import answers, ask, llm, really, replies, reply, world_spec

NAMED = {
    "tools": ToolCall,
    "handlers": HandlerCall,
    "agents": AgentCall,
    "scripts": ScriptCall,
    "retrieval": RetrievalCall,
}


def world_of(key: str, value: Any) -> WorldSpec:
    """Return a world with one key."""
    return world_spec(**{key: value})


every_named_kind = pytest.mark.parametrize(("key", "effect"), NAMED.items(), ids=NAMED)


@every_named_kind
def test_an_effect_is_known_by_its_alias_where_its_name_is_not(key: Any, effect: Any) -> None:
    def says(text: str) -> Any:
        said = {"context": text, "sources": []} if key == "retrieval" else text
        return [{"return": said}]

    def answer(entries: dict[str, Any]) -> Any:
        (value,) = answers(world_of(key, entries), effect(name="n", alias="a"))
        return value.context if key == "retrieval" else value

    assert answer({"a": says("by alias")}) == "by alias"
    assert answer({"a": says("by alias"), "n": says("by name")}) == "by name"


@every_named_kind
@pytest.mark.parametrize("entry", ["real", [{"args": {"n": 1}, "return": 2}]])
def test_a_name_is_answered_for_when_it_has_an_entry_under_name_or_alias(
    key: Any, effect: Any, entry: Any
) -> None:
    world = ScriptedWorld(world_of(key, {"a": entry}))
    assert world.answers_for(effect(name="a"))
    assert world.answers_for(effect(name="n", alias="a"))
    assert not world.answers_for(effect(name="n", real=really))


STUBS = {"llm": {"reply": "x"}, "human": {"reply": "x"}, "http": {"text": "x"}}


@pytest.mark.parametrize("effect", [llm(), HTTPCall(name="u"), HumanCall(name="n")], ids=lambda e: e.kind)
def test_a_list_of_stubs_answers_for_its_kind_even_when_it_is_used_up(effect: Any) -> None:
    assert not ScriptedWorld(WorldSpec()).answers_for(effect)
    world = ScriptedWorld(world_of(effect.kind, [STUBS[effect.kind]]))
    ask(world, effect)
    assert world.answers_for(effect)


def test_an_mcp_tool_is_answered_for_when_its_server_is_there() -> None:
    world = ScriptedWorld(world_spec(mcp={"weather": {}}))
    for server, expected in {"weather": True, "charts": False}.items():
        call = MCPCall(name="report", endpoint=MCPEndpoint(server, "stdio"))
        assert world.answers_for(call) is expected


def test_checking_for_answers_consumes_nothing() -> None:
    world = ScriptedWorld(replies(reply("a")))
    assert world.answers_for(llm())
    assert ask(world, llm()).value.text == "a"
