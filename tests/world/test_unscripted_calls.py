"""The messages about calls that nothing answers, and about stubs that no call used."""

from pathlib import Path

import pytest

from harness.errors import UnscriptedCall
from harness.graph.effects import (
    Effect,
    HandlerCall,
    HumanCall,
    MCPCall,
    MCPEndpoint,
    RetrievalCall,
    ToolCall,
)
from harness.graph.http_call import http_call
from harness.scenario.load import load_file
from harness.scenario.outcome import error_json
from harness.world.scripted import ScriptedWorld
from harness.world.spec import WorldSpec
from tests.world.stubs import ask, llm, replies, reply, world_spec


def test_an_unscripted_call_shows_the_request_and_why_the_nearest_stub_did_not_match() -> None:
    world = ScriptedWorld(
        replies(reply("far", node="x", model="y"), reply("near", when='request.prompt == "bye"'))
    )
    with pytest.raises(UnscriptedCall) as caught:
        ask(world, llm())
    text = str(caught.value)
    assert "human: hello" in text
    assert "'near'" in text
    assert 'request.prompt == "bye" is False' in text


def test_a_stub_that_another_node_used_up_is_told_with_that_node() -> None:
    world = ScriptedWorld(replies(reply("outer", node="model")))
    ask(world, llm(node="tools/searcher/model"))
    with pytest.raises(UnscriptedCall, match=r"it was used up \(1 of 1\) by tools/searcher/model\n"):
        ask(world, llm(node="model"))


def test_an_unscripted_tool_suggests_the_name_that_was_meant() -> None:
    world = ScriptedWorld(world_spec(tools={"weather": []}))
    with pytest.raises(UnscriptedCall, match="did you mean 'weather'"):
        ask(world, ToolCall(name="wether"))


def test_unused_stubs_are_reported_unless_they_may_be_used_any_number_of_times() -> None:
    world = ScriptedWorld(replies(reply("a"), reply("b", times=3), reply("c", times="any")))
    ask(world, llm())
    ask(world, llm())
    (left,) = world.unused()
    assert left == "not used up: llm: reply: 'b', used 1 of 3 times"


def test_an_unused_stub_is_told_from_one_that_was_not_used_up() -> None:
    (left,) = ScriptedWorld(replies(reply("a", times=2))).unused()
    assert left == "never used: llm: reply: 'a', used 0 of 2 times"


RATING = {
    "type": "object",
    "properties": {
        "why": {"type": "string"},
        "stars": {"type": "integer"},
        "the case": {
            "type": "object",
            "properties": {
                "open": {"type": "boolean"},
                "kind": {"enum": ["a", "b"]},
                "note": {"type": "string"},
            },
            "required": ["open", "kind"],
        },
        "tags": {"type": "array"},
        "more": {"type": "string"},
    },
    "required": ["why", "stars", "the case", "tags"],
}


@pytest.mark.parametrize(
    ("effect", "stub"),
    [
        (llm("answer"), 'llm: {answer: ["…"]}'),
        (llm("outer/Node 2"), 'llm: {outer/Node 2: ["…"]}'),
        (llm("a: b"), 'llm: {"a: b": ["…"]}'),
        (llm("null"), 'llm: {"null": ["…"]}'),
        (llm("sort", response_format={"type": "json_object"}), "llm: {sort: [{json: {}}]}"),
        (
            llm(
                "rate",
                response_format={"type": "json_schema", "json_schema": {"name": "r", "schema": RATING}},
            ),
            'llm: {rate: [{json: {why: "…", stars: 1, the case: {open: true, kind: "a"}, tags: []}}]}',
        ),
        (
            llm("rate", response_format={"name": "r", "schema": {"type": "object"}}),
            "llm: {rate: [{json: {}}]}",
        ),
        (
            llm("rate", response_format={"schema": {"properties": {1: 2}, "required": [["a"], 1, "b"]}}),
            'llm: {rate: [{json: {b: "…"}}]}',
        ),
        (llm("rate", response_format={"schema": {"required": 5}}), "llm: {rate: [{json: {}}]}"),
        (llm(None), 'llm: ["…"]'),
        (HumanCall(node="ask", name="ask", args={"value": "Go?"}), 'human: {ask: ["…"]}'),
        (ToolCall(name="find"), 'tools: {find: {return: "…"}}'),
        (HandlerCall(name="sort"), "handlers: {sort: {return: {}}}"),
        (RetrievalCall(name="recall"), 'retrieval: {recall: {return: {context: "…", sources: []}}}'),
        (
            MCPCall(name="search", endpoint=MCPEndpoint("docs", "stdio")),
            'mcp: {docs: {tools: [{name: search, stubs: [{return: "…"}]}]}}',
        ),
        (http_call("GET", "https://a.test/x"), 'http: [{url: "https://a.test/x", json: {}}]'),
    ],
)
def test_the_shortest_stub_for_what_nothing_answers_is_shown_and_answers_it(
    effect: Effect, stub: str, tmp_path: Path
) -> None:
    with pytest.raises(UnscriptedCall) as caught:
        ask(ScriptedWorld(WorldSpec()), effect)
    shown = error_json(caught.value)["message"]
    assert shown == f"{caught.value}\n  the shortest stub that answers: `{stub}`"
    file = tmp_path / "x.scenario.yaml"
    file.write_text(f"harness: 1\nmanifest: m.yaml\nscenarios: [{{name: x, {stub}}}]")
    [scenario] = load_file(file).scenarios
    assert ask(ScriptedWorld(scenario.world), effect)
