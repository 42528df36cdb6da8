"""Loading the world of a scenario. Source: docs/scenario-format.md, "The world"."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.scenario.load import load_file
from harness.world.spec import WorldSpec
from harness.world.stub_models import AnyStub

World = Callable[[str], WorldSpec]


@pytest.fixture
def world(tmp_path: Path) -> World:
    def load(keys: str) -> WorldSpec:
        file = tmp_path / "a.scenario.yaml"
        file.write_text(f"harness: 1\nmanifest: m.yaml\nscenarios:\n  - {{name: x, {keys}}}")
        return load_file(file).scenarios[0].world

    return load


def said(stub: AnyStub) -> dict[str, Any]:
    """Return what a stub says, without its location."""
    return {key: value for key, value in vars(stub).items() if key in stub.model_fields_set}


def test_a_text_is_a_reply(world: World) -> None:
    (stub,) = world("llm: [hello]").llm
    assert said(stub) == {"reply": "hello"}
    assert stub.uses == 1
    assert stub.span is not None
    assert (stub.span.line, stub.span.column) == (4, 21)


def test_stubs_of_a_mapping_ask_for_its_node_and_for_their_own(world: World) -> None:
    stubs = world("llm: {a: [one, {reply: two, node: 'in/*'}], b: [three]}").llm
    assert [(stub.nodes, stub.answer["reply"]) for stub in stubs] == [
        (("a",), "one"),
        (("a", "in/*"), "two"),
        (("b",), "three"),
    ]


def test_all_that_a_model_may_answer(world: World) -> None:
    stubs = world(
        "llm: [{json: null}, {reply: a, tool_calls: [{name: t, args: {q: 1}, id: c}]}, {chunks: [a, b]},"
        "{reply: a, usage: {input_tokens: 3, output_tokens: 4}, finish_reason: stop}, {reply: a, model: 'gpt*'}]"
    ).llm
    assert [stub.answer for stub in stubs] == [
        {"json": None},
        {"reply": "a", "tool_calls": [{"name": "t", "args": {"q": 1}, "id": "c"}]},
        {"chunks": ["a", "b"]},
        {"reply": "a", "usage": {"input_tokens": 3, "output_tokens": 4}, "finish_reason": "stop"},
        {"reply": "a"},
    ]
    assert stubs[4].model == "gpt*"


def test_all_that_a_stub_may_ask_for(world: World) -> None:
    (stub,) = world(
        "tools: {t: [{args: {q: {$gt: 1}}, when: state.ok == true, times: 3, latency: 2, node: n, return: 5}]}"
    ).stubs("tool")
    assert said(stub) == {
        "args": {"q": {"$gt": 1}},
        "when": "state.ok == true",
        "times": 3,
        "latency": 2.0,
        "node": "n",
        "return_": 5,
    }


@pytest.mark.parametrize(
    ("written", "error"),
    [
        ("rate_limit", ("rate_limit", None, None)),
        ("{kind: auth, message: no}", ("auth", "no", None)),
        ("{kind: exception, type: KeyError}", ("exception", None, "KeyError")),
        ("{kind: exception, type: LensDirty, message: m}", ("exception", "m", "LensDirty")),
    ],
)
def test_errors_are_a_kind_or_a_mapping(world: World, written: str, error: Any) -> None:
    (stub,) = world(f"llm: [{{error: {written}}}]").llm
    assert stub.error is not None
    assert (stub.error.kind, stub.error.message, stub.error.type) == error
    assert stub.answer == {}


@pytest.mark.parametrize("key", ["tools", "handlers", "agents", "scripts", "retrieval"])
def test_an_entry_is_real_a_mapping_or_a_stub_list(world: World, key: str) -> None:
    entries = getattr(
        world(f"{key}: {{a: real, b: {{return: [1]}}, c: [{{return: 1, times: 1}}, {{error: auth}}]}}"), key
    )
    assert entries["a"].function is None
    assert [(stub.answer, stub.uses) for stub in entries["b"]] == [({"return": [1]}, "any")]
    assert [stub.uses for stub in entries["c"]] == [1, "any"]
    assert entries["a"].span is not None


@pytest.mark.parametrize("key", ["tools", "handlers"])
def test_the_callable_of_a_tool_or_handler_may_be_named(world: World, key: str) -> None:
    entries = getattr(world(f"{key}: {{a: pkg.mod.fn, b: {{real: pkg.fn}}}}"), key)
    assert (entries["a"].function, entries["b"].function) == ("pkg.mod.fn", "pkg.fn")


def test_mcp_servers_have_tools_with_stubs(world: World) -> None:
    spec = world(
        "mcp: {a: real, b: {tools: [{name: t, description: d, input_schema: {type: object, properties: {}},"
        "stubs: [{args: {x: 1}, return: r}, {content: [{type: text, text: c}]}]}, {name: u}], latency: 1},"
        "c: {error: connection}}"
    ).mcp
    assert spec["a"].real
    tool, bare = spec["b"].tools
    assert (tool.name, tool.description, tool.input_schema["properties"]) == ("t", "d", {})
    assert [(stub.answer, stub.uses) for stub in tool.stubs] == [
        ({"return": "r"}, "any"),
        ({"content": [{"type": "text", "text": "c"}]}, "any"),
    ]
    assert (bare.input_schema, bare.stubs) == ({"type": "object"}, [])
    assert spec["b"].latency == 1.0
    assert spec["c"].error is not None
    assert spec["c"].error.kind == "connection"


def test_http_stubs(world: World) -> None:
    full, query, bare = world(
        "http: [{method: POST, url: 'https://a/*', args: {json: {a: 1}}, status: 201, json: {b: 2}, headers: {x: y}},"
        "{query: {p: '1'}, text: t}, {url: u}]"
    ).http
    assert (full.method, full.url, full.arguments()) == ("POST", "https://a/*", {"json": {"a": 1}})
    assert full.answer == {"status": 201, "json": {"b": 2}, "headers": {"x": "y"}}
    assert (query.arguments(), query.answer) == ({"query": {"p": "1"}}, {"text": "t"})
    assert (bare.answer, bare.uses) == ({}, 1)


def test_people_answer_with_text_a_mapping_or_reply(world: World) -> None:
    stubs = world(
        "human: {n: [yes, {messages: [{role: human, content: ok}], latency: 2}, {reply: 5, when: state.a == 1},"
        "{method: x, url: y}, {}, {error: timeout}]}"
    ).human
    assert [stub.answer for stub in stubs] == [
        {"reply": "yes"},
        {"reply": {"messages": [{"role": "human", "content": "ok"}]}},
        {"reply": 5},
        {"reply": {"method": "x", "url": "y"}},
        {"reply": {}},
        {},
    ]
    assert [stub.latency for stub in stubs[:2]] == [0.0, 2.0]
    assert {stub.nodes for stub in stubs} == {("n",)}
    assert {stub.uses for stub in stubs} == {1}


def test_hooks_and_faults(world: World) -> None:
    spec = world(
        "hooks: [pkg.Hook], faults: [{effect: llm, node: n, nth: 1, error: auth}, {effect: tool, name: t, every: 3,"
        "latency: 2}, {effect: http, rate: 0.5, truncate: 10}]"
    )
    assert spec.hooks == ["pkg.Hook"]
    first, second, third = spec.faults
    assert (first.effect, first.node, first.nth, first.error.kind) == ("llm", "n", 1, "auth")
    assert (second.name, second.every, second.latency) == ("t", 3, 2.0)
    assert (third.rate, third.truncate) == (0.5, 10)
    assert first.span is not None
