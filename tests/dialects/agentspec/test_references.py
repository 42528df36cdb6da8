"""References to components and values, and tables of components. spec: "Symbolic references"."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.dialects.agentspec.agents import Agent
from harness.dialects.agentspec.plugins import Plugins, serialize
from harness.dialects.agentspec.tools import RemoteTool
from tests.dialects.agentspec.configurations import (
    MODEL,
    TABLE,
    VERSION,
    agent,
    codes,
    entry,
    ref,
    tool,
)
from tests.dialects.agentspec.loader import Loader


def test_all_references_to_a_component_give_one_object(loader: Loader) -> None:
    root = loader.agent(agent(tools=f"[{ref('a')}, {ref('a')}]") + TABLE + entry("a", tool()))
    assert root.tools[0] is root.tools[1]


def test_references_may_precede_or_follow_their_target(loader: Loader) -> None:
    tables = TABLE + entry("first", ref("second")) + entry("second", tool())
    after = loader.agent(agent(tools=f"[{ref('first')}]") + tables)
    before = loader.agent(tables + agent(tools=f"[{ref('first')}]"))
    assert [item.name for item in after.tools] == [item.name for item in before.tools] == ["tool"]


def test_a_reference_uses_the_key_and_not_the_id(loader: Loader) -> None:
    text = agent(tools=f"[{ref('key')}]") + TABLE + entry("key", tool(id_="other"))
    assert loader.agent(text).tools[0].id == "other"
    problem = loader.problem(text.replace("ref: key", "ref: other"))
    assert (problem.code, problem.message) == (
        "unknown-reference",
        "no component 'other' is defined",
    )
    assert problem.hint.endswith(
        "document_0.yaml:8:53: put that component under $referenced_components, with the key 'other'"
    )


def test_tables_may_be_at_any_depth_and_are_visible_everywhere(loader: Loader) -> None:
    inner = f"{{component_type: ServerTool, name: tool, $referenced_components: {{inner: {tool('deep')}}}}}"
    text = agent(tools=f"[{ref('outer')}, {ref('inner')}]") + TABLE + entry("outer", inner)
    assert [item.name for item in loader.agent(text).tools] == ["tool", "deep"]


def test_a_reference_may_bring_a_table(loader: Loader) -> None:
    brought = f"{{$component_ref: far, $referenced_components: {{far: {tool('far')}}}}}"
    assert loader.agent(agent(tools=f"[{brought}]")).tools[0].name == "far"


def test_a_key_in_two_tables(loader: Loader) -> None:
    inner = f"{{component_type: ServerTool, name: t, $referenced_components: {{key: {tool('inner')}}}}}"
    text = agent(tools=f"[{ref('key')}, {inner}]") + TABLE + entry("key", tool("outer"))
    problem = loader.problem(text)
    assert problem.code == "duplicate-reference"
    assert problem.message.startswith("'key' is in two tables of components; first at ")


def test_a_table_is_a_mapping(loader: Loader) -> None:
    problem = loader.problem(agent() + "$referenced_components: [1]\n")
    assert problem.message == "$referenced_components: expected a mapping, found a list"


@pytest.mark.parametrize(
    ("field", "value", "read", "expected"),
    [
        ("system_prompt", "'Help {{you}}.'", lambda it: it.system_prompt, "Help {{you}}."),
        ("description", "null", lambda it: it.description, None),
        ("outputs", "[{title: n, type: integer}]", lambda it: list(it.outputs), ["n"]),
        ("tools", f"[{tool('x')}, {tool('y')}]", lambda it: [part.name for part in it.tools], ["x", "y"]),
        ("llm_config", MODEL, lambda it: it.llm_config.name, "model"),
    ],
)
def test_any_value_may_be_a_reference(
    loader: Loader, field: Any, value: Any, read: Any, expected: Any
) -> None:
    table = TABLE + entry("value", value)
    assert read(loader.agent(agent(**{field: ref("value")}) + table)) == expected
    chain = table + entry("link", ref("value"))
    assert read(loader.agent(agent(**{field: ref("link")}) + chain)) == expected


def test_nested_values_may_be_references(loader: Loader) -> None:
    remote = (
        "{component_type: RemoteTool, name: t, http_method: GET, url: {$component_ref: url},"
        " data: {a: [{b: {$component_ref: leaf}}]}, inputs: [{$component_ref: city}]}"
    )
    table = (
        TABLE + entry("url", "'http://x/{{city}}'") + entry("leaf", "[1, 2]") + entry("city", "{title: city}")
    )
    [found] = loader.agent(agent(tools=f"[{remote}]") + table).tools
    assert isinstance(found, RemoteTool)
    assert (found.url, found.data, list(found.inputs)) == (
        "http://x/{{city}}",
        {"a": [{"b": [1, 2]}]},
        ["city"],
    )


def test_a_value_of_the_wrong_type_is_located_where_it_is_used(loader: Loader) -> None:
    problem = loader.problem(agent(system_prompt=ref("value")) + TABLE + entry("value", "5"))
    assert problem.message == "'guide': system_prompt: expected text, found the number 5"
    assert loader.place(problem) == ref("value")


REFUSED = {
    "of nothing": (
        {"tools": f"[{ref('tol')}]"},
        {"tool": tool()},
        ("unknown-reference", "no component 'tol' is defined", "tol"),
    ),
    "of nothing, for a value": (
        {"system_prompt": ref("prompt")},
        {},
        ("unknown-reference", "no component 'prompt' is defined", "prompt"),
    ),
    "of nothing, for a list": (
        {"tools": ref("tools")},
        {},
        ("unknown-reference", "no component 'tools' is defined", "tools"),
    ),
    "that is no text": (
        {"tools": "[{$component_ref: 5}]"},
        {},
        ("wrong-type", "$component_ref: expected text, found the number 5", "5"),
    ),
    "with another key beside it": (
        {"tools": "[{$component_ref: tool, name: mine}]"},
        {"tool": tool()},
        ("unknown-key", "unknown key 'name' next to $component_ref", "name"),
    ),
    "with another key beside it, for a value": (
        {"outputs": "[{$component_ref: city, default: x}]"},
        {"city": "{title: city}"},
        ("unknown-key", "unknown key 'default' next to $component_ref", "default"),
    ),
    "of a component of another kind": (
        {"tools": f"[{ref('model')}]", "llm_config": ref("model")},
        {"model": MODEL},
        ("wrong-component", "'guide': expected a tool, found the OpenAiConfig 'model'", ref("model")),
    ),
    "of a component for a value": (
        {"system_prompt": ref("tool")},
        {"tool": tool()},
        ("wrong-component", "expected a value, found the ServerTool 'tool'", ref("tool")),
    ),
    "of a value for a component": (
        {"llm_config": ref("model")},
        {"model": "gpt"},
        ("wrong-component", "'model' is used as a component, but it is text 'gpt'", "gpt"),
    ),
    "of a component without a type, used twice": (
        {"tools": f"[{ref('tool')}, {ref('tool')}]"},
        {"tool": "{component_typ: ServerTool, name: x}"},
        (
            "wrong-component",
            "'tool' is used as a component, but it has no component_type",
            "{component_typ: ServerTool, name: x}",
        ),
    ),
    "of itself": (
        {"system_prompt": ref("a")},
        {"a": ref("a")},
        ("circular-reference", "components contain each other: a → a", "a"),
    ),
    "of a value that contains it": (
        {"metadata": "{}", "description": ref("a")},
        {"a": "[{x: {$component_ref: b}}]", "b": ref("a")},
        ("circular-reference", "components contain each other: a → b → a", "a"),
    ),
    "of a component that contains it": (
        {"tools": f"[{ref('a')}]"},
        {"a": "{component_type: MCPTool, name: t, client_transport: {$component_ref: b}}", "b": ref("a")},
        ("circular-reference", "components contain each other: a → b → a", "a"),
    ),
    "of a list that contains it": (
        {"tools": ref("a")},
        {"a": f"[{ref('a')}]"},
        ("circular-reference", "components contain each other: a → a", "a"),
    ),
}


@pytest.mark.parametrize(("fields", "table", "expected"), REFUSED.values(), ids=REFUSED)
def test_a_reference(loader: Loader, fields: Any, table: Any, expected: Any) -> None:
    text = agent(**fields) + "$referenced_components: {}\n"
    if table:
        text = agent(**fields) + TABLE + "".join(entry(key, value) for key, value in table.items())
    problem = loader.problem(text)
    assert (problem.code, problem.message, loader.place(problem)) == expected


OTHER_DOCUMENT = (
    "give the document that has it: `manifest: [document_0.yaml, parts.yaml]`, or `--with parts.yaml`"
)


def test_the_hint_for_an_unknown_reference_is_the_nearest_key(loader: Loader) -> None:
    near = agent(tools=f"[{ref('tol')}]") + TABLE + entry("tool", tool())
    assert loader.problem(near).hint == f"did you mean 'tool'? Otherwise {OTHER_DOCUMENT}"
    assert loader.problem(near, "$referenced_components: {}").hint == "did you mean 'tool'?"
    assert loader.problem(agent(tools=f"[{ref('tol')}]")).hint == OTHER_DOCUMENT


@pytest.mark.parametrize(
    ("field", "value", "message", "hint"),
    [
        (
            "llm_config",
            "model",
            "expected a component, with a component_type, or a $component_ref; found text 'model'",
            "write {$component_ref: model}",
        ),
        (
            "llm_config",
            "modell",
            "expected a component, with a component_type, or a $component_ref; found text 'modell'",
            "",
        ),
        (
            "tools",
            "[hammer]",
            "expected a component, with a component_type, or a $component_ref; found text 'hammer'",
            "write {$component_ref: hammer}",
        ),
        (
            "tools",
            "hammer",
            "tools: expected a list of components, found text 'hammer'",
            "write [{$component_ref: hammer}]",
        ),
        ("tools", "tongs", "tools: expected a list of components, found text 'tongs'", ""),
        ("tools", "5", "tools: expected a list of components, found the number 5", ""),
    ],
)
def test_a_key_instead_of_a_reference(
    loader: Loader, field: Any, value: Any, message: Any, hint: Any
) -> None:
    text = agent(**{field: value}) + TABLE + entry("hammer", tool())
    text += entry("model", MODEL.replace("small", "other"))
    problem = loader.problem(text)
    assert (problem.code, problem.message, problem.hint) == ("wrong-component", message, hint)
    assert loader.place(problem) == value.strip("[]")


def nested(levels: Any, end: Any) -> Any:
    """Return flows and AgentNodes nested by reference, `levels` deep, with `end` as the innermost component."""

    def part(at: Any) -> Any:
        inner = ref(f"k{at + 1}")
        if at % 2:
            return f"{{component_type: AgentNode, name: n, agent: {inner}}}"
        start = "start_node: {component_type: StartNode, name: s}"
        return f"{{component_type: Flow, name: f, nodes: [{inner}], control_flow_connections: [], {start}}}"

    parts = [entry(f"k{at}", part(at)) for at in range(levels)]
    return "$component_ref: k0\n" + VERSION + TABLE + "".join(parts) + entry(f"k{levels}", end)


def test_references_may_nest_up_to_the_limit(loader: Loader) -> None:
    found = loader.problems(nested(39, "{component_type: EndNode, name: e}"))
    assert "too-deep" not in codes(found)


def test_references_that_nest_too_deep(loader: Loader) -> None:
    problem = loader.problem(nested(1000, "{component_type: EndNode, name: e}"))
    assert (problem.code, loader.place(problem)) == ("too-deep", "k40")
    assert problem.message == "'k40' is nested too deep: at most 40 references may be nested"


def test_values_that_are_too_deep_with_references_expanded(loader: Loader) -> None:
    """Values that are almost too deep by themselves exceed the limit with fewer references."""
    links = [entry(f"k{at}", "[" * 90 + ref(f"k{at + 1}") + "]" * 90) for at in range(30)]
    problem = loader.problem(agent(description=ref("k0")) + TABLE + "".join(links) + entry("k30", "x"))
    assert problem.code == "too-deep"
    assert problem.message == "nested more than 100 levels deep, with references expanded"


def test_a_cycle_of_any_length_is_reported(loader: Loader) -> None:
    problem = loader.problem(
        nested(1000, "{component_type: AgentNode, name: n, agent: {$component_ref: k0}}")
    )
    assert problem.code == "circular-reference"
    assert problem.message == "components contain each other: k40 → k41 → k42 → … → k39 → k40"


def test_a_list_of_components_that_contains_itself(loader: Loader) -> None:
    flow = (
        "[{component_type: FlowNode, name: n, subflow: {component_type: Flow, name: f,"
        " start_node: {component_type: StartNode, name: s}, nodes: {$component_ref: a},"
        " control_flow_connections: []}}]"
    )
    top = "component_type: Flow\nname: f\nstart_node: {component_type: StartNode, name: s}\n"
    text = VERSION + top + "nodes: {$component_ref: a}\ncontrol_flow_connections: []\n" + TABLE
    problem = loader.problem(text + entry("a", flow))
    assert (problem.code, problem.message) == (
        "circular-reference",
        "components contain each other: a → a",
    )


def test_all_references_to_a_list_of_components_give_the_same_components(loader: Loader) -> None:
    two = f"{{component_type: Agent, name: two, system_prompt: x, llm_config: {ref('m')}, tools: {ref('tools')}}}"
    table = TABLE + entry("m", MODEL) + entry("tools", f"[{tool()}]") + entry("two", two)
    one = loader.configuration(agent(llm_config=ref("m"), tools=ref("tools")) + table)
    root, two_ = one.root, one.find("two")
    assert isinstance(root, Agent)
    assert isinstance(two_, Agent)
    assert root.tools[0] is two_.tools[0]


def test_components_without_an_id_get_unused_keys(loader: Loader) -> None:
    tools = f"[{', '.join(map(ref, 'aabcc'))}]"
    table = TABLE + entry("a", tool()) + entry("b", tool(id_="tool-1")) + entry("c", tool())
    text = agent(tools=tools) + table
    written = serialize(loader.agent(text), Plugins(()))
    keys = ["tool-2", "tool-2", None, "tool-3", "tool-3"]
    assert [item.get("$component_ref") for item in written["tools"]] == keys
    assert serialize(loader.agent(json.dumps(written), json=True), Plugins(())) == written


def test_problems_of_unused_components_are_warnings(loader: Loader) -> None:
    text = agent() + TABLE + entry("old", "{component_type: ServerTool}") + entry("plain", "[1, {a: 2}]")
    [warning] = loader.graph(text).warnings
    assert (warning.code, warning.severity) == ("missing-key", "warning")
    assert warning.message == "missing key 'name' in a ServerTool (in 'old', which nothing uses)"
    assert loader.place(warning) == "{component_type: ServerTool}"


def test_rules_do_not_apply_to_unused_components(loader: Loader) -> None:
    bad = "{component_type: OutputMessageNode, name: n, message: x, inputs: [{title: a}]}"
    assert loader.graph(agent() + TABLE + entry("bad", bad)).warnings == ()
