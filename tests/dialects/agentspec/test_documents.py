"""Documents: versions, references, tables of components, documents of parts, plugins.

spec: "Versioning", "Symbolic references", "Disaggregated components", "Ecosystem of plugins".
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from harness.dialects.agentspec.agents import AgenticComponent
from harness.dialects.agentspec.dialect import agents, detect
from harness.dialects.agentspec.flows import Node
from harness.dialects.agentspec.plugins import ComponentPlugin, Plugins, installed
from harness.dialects.agentspec.serialize import serialize
from harness.dialects.agentspec.visit import NodeResult
from harness.errors import ManifestError, Problem, Span
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario
from harness.source.document import parse

VERSION = "agentspec_version: 25.4.1\n"
MODEL = "{component_type: OpenAiConfig, id: small, name: model, model_id: m}"
AGENT = f"""\
component_type: Agent
id: the_agent
name: guide
llm_config: {MODEL}
system_prompt: Help.
"""
TABLE = "$referenced_components:\n"


def agent(**fields: Any) -> Any:
    """An agent with other fields, each as YAML."""
    written = {
        "component_type": "Agent",
        "name": "guide",
        "llm_config": MODEL,
        "system_prompt": "Help.",
        **fields,
    }
    return VERSION + "".join(f"{key}: {value}\n" for key, value in written.items())


def entry(key: Any, text: Any) -> Any:
    return f"  {key}: {text}\n"


def tool(name: Any = "tool", id_: Any = "") -> Any:
    return f"{{component_type: ServerTool, name: {name}{id_ and ', id: ' + id_}}}"


def ref(key: Any) -> Any:
    return f"{{$component_ref: {key}}}"


def codes(problems: Any) -> Any:
    return [problem.code for problem in problems]


# ------------------------------------------------------------------ form and version


def test_json_and_yaml_say_the_same(loader: Any) -> None:
    from_yaml = loader.configuration(VERSION + AGENT).root
    from_json = loader.configuration(json.dumps(yaml.safe_load(VERSION + AGENT)), json=True).root
    assert from_yaml.model_dump(exclude={"llm_config"}) == from_json.model_dump(exclude={"llm_config"})
    assert from_yaml.llm_config.model_dump() == from_json.llm_config.model_dump()


@pytest.mark.parametrize("version", ["25.4.1", "25.4.2", "'25.4.1'"])
def test_a_version_that_is_known(loader: Any, version: Any) -> None:
    assert loader.graph(f"agentspec_version: {version}\n{AGENT}").warnings == ()


def test_an_old_version_is_read_as_the_first(loader: Any) -> None:
    [warning] = loader.graph("agentspec_version: 25.4.0\n" + AGENT).warnings
    assert (warning.code, warning.severity) == ("old-version", "warning")
    assert warning.message == "agentspec_version 25.4.0 is read as 25.4.1"
    assert loader.place(warning) == "25.4.0"


def test_without_a_version_the_newest_is_assumed(loader: Any) -> None:
    [warning] = loader.graph(AGENT).warnings
    assert (warning.code, warning.severity) == ("no-version", "warning")
    assert warning.message == "no agentspec_version: 25.4.2 is assumed"


@pytest.mark.parametrize(
    ("version", "code", "message"),
    [
        ("26.1.0", "unknown-version", "agentspec_version 26.1.0 is not known; known are 25.4.1, 25.4.2"),
        ("''", "unknown-version", "agentspec_version  is not known; known are 25.4.1, 25.4.2"),
        ("25.4", "wrong-type", "agentspec_version: expected text, found the number 25.4"),
        ("null", "wrong-type", "agentspec_version: expected text, found nothing (null)"),
        ("[25.4.1]", "wrong-type", "agentspec_version: expected text, found a list"),
    ],
)
def test_a_version_that_is_not(loader: Any, version: Any, code: Any, message: Any) -> None:
    problem = loader.problem(f"agentspec_version: {version}\n{AGENT}")
    assert (problem.code, problem.message) == (code, message)
    assert loader.place(problem) == version


def test_a_version_belongs_to_the_top(loader: Any) -> None:
    text = agent(tools="[{component_type: ServerTool, name: t, agentspec_version: 25.4.1}]")
    problem = loader.problem(text)
    assert problem.message == "'t': unknown key 'agentspec_version' in a ServerTool"


@pytest.mark.parametrize("version", ["agentspec_version: 25.4.2\n", ""])
def test_later_fields_may_say_what_25_4_1_does(loader: Any, version: Any) -> None:
    later = "{component_type: ServerTool, name: t, requires_confirmation: false}"
    text = version + AGENT + f"human_in_the_loop: true\ntoolboxes: []\ntools: [{later}]\n"
    loader.configuration(text)


def test_later_fields_cannot_say_more(loader: Any) -> None:
    later = "{component_type: ServerTool, name: t, requires_confirmation: true}"
    problem = loader.problem(agent(tools=f"[{later}]").replace("25.4.1", "25.4.2"))
    assert (problem.code, loader.place(problem)) == ("unsupported", "true")
    assert problem.message == "'requires_confirmation' other than false is not supported"


def test_25_4_1_has_no_later_fields(loader: Any) -> None:
    assert loader.problem(agent(toolboxes="[]")).code == "unknown-key"


@pytest.mark.parametrize(
    ("text", "found"), [("[1]", "a list"), ("hello", "text 'hello'"), ("5", "the number 5")]
)
def test_a_document_is_a_mapping(loader: Any, text: Any, found: Any) -> None:
    problem = loader.problem(text)
    assert (problem.code, problem.message) == ("wrong-type", f"a configuration is a mapping, found {found}")


# ------------------------------------------------------------------ references


def test_a_component_is_one_wherever_it_is_referred_to(loader: Any) -> None:
    root = loader.configuration(agent(tools=f"[{ref('a')}, {ref('a')}]") + TABLE + entry("a", tool())).root
    assert root.tools[0] is root.tools[1]


def test_references_may_stand_before_and_after_what_they_refer_to(loader: Any) -> None:
    tables = TABLE + entry("first", ref("second")) + entry("second", tool())
    after = loader.configuration(agent(tools=f"[{ref('first')}]") + tables).root
    before = loader.configuration(tables + agent(tools=f"[{ref('first')}]")).root
    assert [item.name for item in after.tools] == [item.name for item in before.tools] == ["tool"]


def test_a_reference_goes_by_the_key_and_not_by_the_id(loader: Any) -> None:
    text = agent(tools=f"[{ref('key')}]") + TABLE + entry("key", tool(id_="other"))
    assert loader.configuration(text).root.tools[0].id == "other"
    problem = loader.problem(text.replace("ref: key", "ref: other"))
    assert (problem.code, problem.message) == (
        "unknown-reference",
        "no component 'other' is here to refer to",
    )


def test_tables_stand_at_any_depth_and_are_seen_everywhere(loader: Any) -> None:
    inner = f"{{component_type: ServerTool, name: tool, $referenced_components: {{inner: {tool('deep')}}}}}"
    text = agent(tools=f"[{ref('outer')}, {ref('inner')}]") + TABLE + entry("outer", inner)
    assert [item.name for item in loader.configuration(text).root.tools] == ["tool", "deep"]


def test_a_reference_may_bring_a_table(loader: Any) -> None:
    brought = f"{{$component_ref: far, $referenced_components: {{far: {tool('far')}}}}}"
    assert loader.configuration(agent(tools=f"[{brought}]")).root.tools[0].name == "far"


def test_a_key_in_two_tables(loader: Any) -> None:
    inner = f"{{component_type: ServerTool, name: t, $referenced_components: {{key: {tool('inner')}}}}}"
    text = agent(tools=f"[{ref('key')}, {inner}]") + TABLE + entry("key", tool("outer"))
    problem = loader.problem(text)
    assert problem.code == "duplicate-reference"
    assert problem.message.startswith("'key' is in two tables of components; first at ")


def test_a_table_is_a_mapping(loader: Any) -> None:
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
def test_any_value_may_be_referred_to(loader: Any, field: Any, value: Any, read: Any, expected: Any) -> None:
    table = TABLE + entry("value", value)
    assert read(loader.configuration(agent(**{field: ref("value")}) + table).root) == expected
    chain = table + entry("link", ref("value"))
    assert read(loader.configuration(agent(**{field: ref("link")}) + chain).root) == expected


def test_values_inside_values_may_be_referred_to(loader: Any) -> None:
    remote = (
        "{component_type: RemoteTool, name: t, http_method: GET, url: {$component_ref: url},"
        " data: {a: [{b: {$component_ref: leaf}}]}, inputs: [{$component_ref: city}]}"
    )
    table = (
        TABLE + entry("url", "'http://x/{{city}}'") + entry("leaf", "[1, 2]") + entry("city", "{title: city}")
    )
    [found] = loader.configuration(agent(tools=f"[{remote}]") + table).root.tools
    assert (found.url, found.data, list(found.inputs)) == (
        "http://x/{{city}}",
        {"a": [{"b": [1, 2]}]},
        ["city"],
    )


def test_a_value_of_the_wrong_type_is_told_of_where_it_is_used(loader: Any) -> None:
    problem = loader.problem(agent(system_prompt=ref("value")) + TABLE + entry("value", "5"))
    assert problem.message == "'guide': system_prompt: expected text, found the number 5"
    assert loader.place(problem) == ref("value")


REFUSED = {
    "of nothing": (
        {"tools": f"[{ref('tol')}]"},
        {"tool": tool()},
        ("unknown-reference", "no component 'tol' is here to refer to", "tol"),
    ),
    "of nothing, for a value": (
        {"system_prompt": ref("prompt")},
        {},
        ("unknown-reference", "no component 'prompt' is here to refer to", "prompt"),
    ),
    "of nothing, for a list": (
        {"tools": ref("tools")},
        {},
        ("unknown-reference", "no component 'tools' is here to refer to", "tools"),
    ),
    "that is no text": (
        {"tools": "[{$component_ref: 5}]"},
        {},
        ("wrong-type", "$component_ref: expected text, found the number 5", "5"),
    ),
    "with another key beside it": (
        {"tools": "[{$component_ref: tool, name: mine}]"},
        {"tool": tool()},
        ("unknown-key", "unknown key 'name' beside $component_ref", "name"),
    ),
    "with another key beside it, for a value": (
        {"outputs": "[{$component_ref: city, default: x}]"},
        {"city": "{title: city}"},
        ("unknown-key", "unknown key 'default' beside $component_ref", "default"),
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
def test_a_reference(loader: Any, fields: Any, table: Any, expected: Any) -> None:
    text = agent(**fields) + "$referenced_components: {}\n"
    if table:
        text = agent(**fields) + TABLE + "".join(entry(key, value) for key, value in table.items())
    problem = loader.problem(text)
    assert (problem.code, problem.message, loader.place(problem)) == expected


OTHER_DOCUMENT = (
    "give the document that has it: `manifest: [document_0.yaml, parts.yaml]`, or `--with parts.yaml`"
)


def test_a_reference_of_nothing_is_told_of_with_the_nearest_key(loader: Any) -> None:
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
def test_a_key_in_place_of_a_reference(loader: Any, field: Any, value: Any, message: Any, hint: Any) -> None:
    text = agent(**{field: value}) + TABLE + entry("hammer", tool())
    text += entry("model", MODEL.replace("small", "other"))
    problem = loader.problem(text)
    assert (problem.code, problem.message, problem.hint) == ("wrong-component", message, hint)
    assert loader.place(problem) == value.strip("[]")


def nested(levels: Any, end: Any) -> Any:
    """A component in an agent node in a flow in an agent node …, each referred to from the one around it."""

    def part(at: Any) -> Any:
        inner = ref(f"k{at + 1}")
        if at % 2:
            return f"{{component_type: AgentNode, name: n, agent: {inner}}}"
        start = "start_node: {component_type: StartNode, name: s}"
        return f"{{component_type: Flow, name: f, nodes: [{inner}], control_flow_connections: [], {start}}}"

    parts = [entry(f"k{at}", part(at)) for at in range(levels)]
    return "$component_ref: k0\n" + VERSION + TABLE + "".join(parts) + entry(f"k{levels}", end)


def test_references_inside_each_other(loader: Any) -> None:
    found = loader.problems(nested(39, "{component_type: EndNode, name: e}"))
    assert "too-deep" not in codes(found)


def test_references_that_nest_too_deep(loader: Any) -> None:
    problem = loader.problem(nested(1000, "{component_type: EndNode, name: e}"))
    assert (problem.code, loader.place(problem)) == ("too-deep", "k40")
    assert problem.message == "'k40' is nested too deep: at most 40 references may be inside each other"


def test_what_stands_deep_inside_what_is_referred_to(loader: Any) -> None:
    """Where the documents themselves are as deep as documents can be, less is too much."""
    links = [entry(f"k{at}", "[" * 90 + ref(f"k{at + 1}") + "]" * 90) for at in range(30)]
    problem = loader.problem(agent(description=ref("k0")) + TABLE + "".join(links) + entry("k30", "x"))
    assert problem.code == "too-deep"
    assert problem.message == "nested more than 100 levels deep, references written out"


def test_a_circle_is_told_of_however_long_it_is(loader: Any) -> None:
    problem = loader.problem(
        nested(1000, "{component_type: AgentNode, name: n, agent: {$component_ref: k0}}")
    )
    assert problem.code == "circular-reference"
    assert problem.message == "components contain each other: k40 → k41 → k42 → … → k39 → k40"


def test_a_list_of_components_that_contains_itself(loader: Any) -> None:
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


def test_a_list_of_components_is_one_wherever_it_is_referred_to(loader: Any) -> None:
    two = f"{{component_type: Agent, name: two, system_prompt: x, llm_config: {ref('m')}, tools: {ref('tools')}}}"
    table = TABLE + entry("m", MODEL) + entry("tools", f"[{tool()}]") + entry("two", two)
    one = loader.configuration(agent(llm_config=ref("m"), tools=ref("tools")) + table)
    assert one.root.tools[0] is one.named("two").tools[0]


# ------------------------------------------------------------------ how large values are, references written out


def bomb(levels: Any, leaf: Any = "x", each: Any = "[%s]") -> Any:
    """Values of ten references each to the next: `b0` has ten to the power of `levels` leaves."""
    tens = [each % ", ".join([ref(f"b{at + 1}")] * 10) for at in range(levels)]
    return "".join(entry(f"b{at}", value) for at, value in enumerate([*tens, leaf]))


def remote(data: Any) -> Any:
    return f"[{{component_type: RemoteTool, name: t, http_method: GET, url: u, data: {data}}}]"


def test_a_value_that_is_too_large_once_references_are_written_out(loader: Any) -> None:
    problem = loader.problem(agent(tools=remote("{a: {$component_ref: b0}}")) + TABLE + bomb(9))
    assert (problem.code, problem.message) == (
        "too-many-nodes",
        "'b4' has more than 100,000 values, references written out",
    )
    loader.configuration(agent(tools=remote("{a: {$component_ref: b0}}")) + TABLE + bomb(4))


def test_a_component_that_is_too_large_once_references_are_written_out(loader: Any) -> None:
    data = "{" + ", ".join(f"k{at}: {ref('b0')}" for at in range(10)) + "}"
    problem = loader.problem(agent(tools=remote(data)) + TABLE + bomb(4))
    assert (problem.code, loader.place(problem)) == ("too-many-nodes", "data")
    assert problem.message == "'t': more than 100,000 values in a component, references written out"


def test_a_property_that_is_too_large_once_references_are_written_out(loader: Any) -> None:
    outputs, each = "[{title: x, anyOf: [{$component_ref: b0}]}]", "{anyOf: [%s]}"
    problem = loader.problem(agent(outputs=outputs) + TABLE + bomb(4, "{type: string}", each))
    assert (problem.code, loader.place(problem)) == ("too-many-nodes", outputs[1:-1])
    assert problem.message.endswith(
        "more than 10,000 values in a property, references and aliases written out"
    )
    loader.configuration(agent(outputs=outputs) + TABLE + bomb(2, "{type: string}", each))


def test_a_property_that_is_too_large_once_aliases_are_written_out(loader: Any) -> None:
    levels = "".join(f"l{at}: &l{at} [{', '.join([f'*l{at - 1}'] * 10)}]\n    " for at in range(1, 5))
    metadata = "\n    l0: &l0 {type: string}\n    " + levels
    problem = loader.problem(agent(metadata=metadata, outputs="[{title: x, anyOf: *l4}]"))
    assert problem.code == "too-many-nodes"


def test_lists_of_components_in_each_other_are_read_once(loader: Any) -> None:
    """Each level has ten flows, which all refer to the list of nodes of the next."""
    node = (
        "{component_type: FlowNode, name: n, subflow: {component_type: Flow, name: f,"
        " start_node: {component_type: StartNode, name: s}, nodes: {$component_ref: b%d},"
        " control_flow_connections: []}}"
    )
    lists = [entry(f"b{at}", "[" + ", ".join([node % (at + 1)] * 10) + "]") for at in range(9)]
    text = VERSION + "component_type: Flow\nname: f\nstart_node: {component_type: StartNode, name: s}\n"
    text += "nodes: {$component_ref: b0}\ncontrol_flow_connections: []\n" + TABLE + "".join(lists)
    loader.problems(text + entry("b9", "[{component_type: EndNode, name: e}]"))


@pytest.mark.parametrize("where", ["inline", "in a table", "unused"])
def test_an_id_belongs_to_one_component(loader: Any, where: Any) -> None:
    other = tool(id_="small")
    text = agent(tools="[]" if where == "unused" else f"[{other if where == 'inline' else ref('key')}]")
    text += "" if where == "inline" else TABLE + entry("key", other)
    problem = loader.problem(text)
    assert (problem.code, loader.place(problem)) == ("duplicate-id", "small")
    assert problem.message.startswith("a second component with the id 'small'; the first is at ")


def test_components_without_an_id_are_different_components(loader: Any) -> None:
    root = loader.configuration(agent(tools=f"[{tool()}, {tool()}]")).root
    assert root.tools[0] is not root.tools[1]


def test_metadata_means_nothing(loader: Any) -> None:
    metadata = f"{{$referenced_components: {{tool: 1}}, a: [{ref('nowhere')}], component_type: X}}"
    text = agent(metadata=metadata, tools=f"[{ref('tool')}]") + TABLE + entry("tool", tool())
    root = loader.configuration(text).root
    assert root.metadata["a"] == [{"$component_ref": "nowhere"}]
    assert loader.graph(text).warnings == ()


# ------------------------------------------------------------------ written again


def test_keys_of_components_without_an_id_are_free(loader: Any) -> None:
    tools = f"[{', '.join(map(ref, 'aabcc'))}]"
    table = TABLE + entry("a", tool()) + entry("b", tool(id_="tool-1")) + entry("c", tool())
    text = agent(tools=tools) + table
    written = serialize(loader.configuration(text).root, Plugins(()))
    keys = ["tool-2", "tool-2", None, "tool-3", "tool-3"]
    assert [item.get("$component_ref") for item in written["tools"]] == keys
    assert serialize(loader.configuration(json.dumps(written), json=True).root, Plugins(())) == written


# ------------------------------------------------------------------ what nothing refers to


def test_faults_of_what_nothing_refers_to_are_warnings(loader: Any) -> None:
    text = agent() + TABLE + entry("old", "{component_type: ServerTool}") + entry("plain", "[1, {a: 2}]")
    [warning] = loader.graph(text).warnings
    assert (warning.code, warning.severity) == ("missing-key", "warning")
    assert warning.message == "missing key 'name' in a ServerTool (in 'old', which nothing uses)"
    assert loader.place(warning) == "{component_type: ServerTool}"


def test_rules_do_not_bind_what_nothing_refers_to(loader: Any) -> None:
    bad = "{component_type: OutputMessageNode, name: n, message: x, inputs: [{title: a}]}"
    assert loader.graph(agent() + TABLE + entry("bad", bad)).warnings == ()


# ------------------------------------------------------------------ documents of parts


MAIN = agent(system_prompt=ref("prompt"), tools=f"[{ref('tool')}]")
PARTS = TABLE + entry("prompt", "Help.") + entry("tool", tool())


def test_parts_come_from_documents_behind_the_main_one(loader: Any) -> None:
    root = loader.configuration(MAIN, PARTS).root
    assert (root.system_prompt, root.tools[0].name) == ("Help.", "tool")
    two = loader.configuration(
        MAIN, TABLE + entry("prompt", "Go."), TABLE + entry("tool", tool("other"))
    ).root
    assert (two.system_prompt, two.tools[0].name) == ("Go.", "other")


def test_parts_may_refer_to_each_other_and_to_the_main_document(loader: Any) -> None:
    main = agent(tools=f"[{ref('tool')}]") + TABLE + entry("url", "http://x")
    remote = "{component_type: RemoteTool, name: t, http_method: GET, url: {$component_ref: url}}"
    parts = VERSION + TABLE + entry("tool", ref("remote")) + entry("remote", remote)
    assert loader.configuration(main, parts).root.tools[0].url == "http://x"


def test_a_part_that_is_in_no_document(loader: Any) -> None:
    problem = loader.problem(MAIN, TABLE + entry("prompt", "Help."))
    assert (problem.code, loader.place(problem)) == ("unknown-reference", "tool")
    assert codes(loader.problems(MAIN)) == ["unknown-reference", "unknown-reference"]


def test_a_part_of_another_kind(loader: Any) -> None:
    problem = loader.problem(
        MAIN, TABLE + entry("prompt", "Help.") + entry("tool", MODEL.replace("small", "s"))
    )
    assert problem.message == "'guide': expected a tool, found the OpenAiConfig 'model'"
    assert loader.place(problem) == ref("tool")


def test_a_part_that_is_there_twice(loader: Any) -> None:
    problem = loader.problem(MAIN, PARTS, TABLE + entry("tool", tool()))
    assert problem.code == "duplicate-reference"
    assert problem.span.file.endswith("document_2.yaml")


def test_parts_that_are_not_used_are_not_looked_at(loader: Any) -> None:
    assert loader.graph(MAIN, PARTS + entry("other", "{component_type: Nonsense}")).warnings == ()


@pytest.mark.parametrize(
    ("parts", "code", "message"),
    [
        ("[1]", "wrong-type", "a configuration is a mapping, found a list"),
        (
            "$referenced_components: [1]",
            "wrong-type",
            "$referenced_components: expected a mapping, found a list",
        ),
        (
            VERSION,
            "missing-key",
            "missing key '$referenced_components' in a document of disaggregated components",
        ),
        (
            PARTS + "name: parts\n",
            "unknown-key",
            "unknown key 'name' in a document of disaggregated components",
        ),
        (
            VERSION + AGENT + PARTS,
            "wrong-component",
            "this is an Agent of its own; behind the first document come only $referenced_components",
        ),
        (
            "$component_ref: tool\n" + PARTS,
            "wrong-component",
            "this is a configuration of its own; behind the first document come only $referenced_components",
        ),
        (
            PARTS + "agentspec_version: 1.2.3\n",
            "unknown-version",
            "agentspec_version 1.2.3 is not known; known are 25.4.1, 25.4.2",
        ),
    ],
)
def test_what_a_document_of_parts_is(loader: Any, parts: Any, code: Any, message: Any) -> None:
    problem = loader.problem(MAIN, parts)
    assert (problem.code, problem.message) == (code, message)
    assert problem.span.file.endswith("document_1.yaml")


def test_a_document_of_parts_is_none_to_run(loader: Any) -> None:
    problem = loader.problem(VERSION + PARTS)
    assert (problem.code, problem.message) == (
        "no-component",
        "there is no component at the top that could be run",
    )
    assert problem.hint == "a document of disaggregated components goes behind the one that refers to them"


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        (VERSION + "name: x\n", "missing-key", "missing key 'component_type'", "such as Agent or Flow"),
        (VERSION, "missing-key", "missing key 'component_type'", "such as Agent or Flow"),
        (
            VERSION + "component_typ: Flow\n",
            "missing-key",
            "missing key 'component_type'",
            "it is written 'component_typ' here",
        ),
        (
            "name: x\n" + PARTS,
            "missing-key",
            "missing key 'component_type'",
            "such as Agent or Flow",
        ),
        (
            "manifest_version: 1\nagents: {}\n",
            "no-component",
            "this is no Agent Spec configuration: no component_type at the top",
            "",
        ),
    ],
)
def test_what_has_no_component_at_the_top(loader: Any, text: Any, code: Any, message: Any, hint: Any) -> None:
    problem = loader.problem(text)
    assert (problem.code, problem.message, problem.hint) == (code, message, hint)


@pytest.mark.parametrize("key", ["agent_spec_version", "agentSpecVersion", "agentspec-version"])
def test_a_version_that_is_misspelt(loader: Any, key: Any) -> None:
    problem = loader.problem(f"{key}: 25.4.1\n{AGENT}")
    assert (problem.code, problem.message) == ("unknown-key", f"unknown key '{key}' at the top")
    assert (loader.place(problem), problem.hint) == (key, "did you mean 'agentspec_version'?")


# ------------------------------------------------------------------ what is run


INNER = f"{{component_type: Agent, id: inner_id, name: inner, system_prompt: Inside., llm_config: {ref('model')}}}"
OUTER = (
    VERSION
    + """\
component_type: Flow
id: outer_id
name: outer
start_node: {$component_ref: begin}
nodes: [{$component_ref: begin}, {$component_ref: ask}, {$component_ref: end}]
control_flow_connections:
- {component_type: ControlFlowEdge, name: a, from_node: {$component_ref: begin}, to_node: {$component_ref: ask}}
- {component_type: ControlFlowEdge, name: b, from_node: {$component_ref: ask}, to_node: {$component_ref: end}}
"""
    + TABLE
    + entry("begin", "{component_type: StartNode, name: begin}")
    + entry("end", "{component_type: EndNode, name: end}")
    + entry("ask", "{component_type: AgentNode, name: ask, agent: {$component_ref: key}}")
    + entry("key", INNER)
    + entry("model", MODEL)
)


@pytest.mark.parametrize(("wanted", "name"), [(None, "outer"), ("outer", "outer"), ("outer_id", "outer")])
def test_the_component_at_the_top_is_run(loader: Any, wanted: Any, name: Any) -> None:
    assert loader.graph(OUTER, agent=wanted).name == name


@pytest.mark.parametrize("wanted", ["inner", "inner_id", "key"])
def test_another_is_run_by_its_name_id_or_key(loader: Any, wanted: Any) -> None:
    assert loader.graph(OUTER, agent=wanted).name == "inner"


def test_what_nothing_refers_to_can_be_run(loader: Any) -> None:
    spare = INNER.replace("inner", "spare")
    assert loader.graph(OUTER + entry("spare_key", spare), agent="spare").name == "spare"


def test_an_agent_that_is_not_there(loader: Any) -> None:
    problem = loader.problem(OUTER, agent="iner")
    assert (problem.code, problem.hint) == ("unknown-agent", "did you mean 'inner'?")
    assert problem.message == "no agent or flow 'iner' in the configuration"


@pytest.mark.parametrize("wanted", ["inner", "inner_id", "key"])
def test_an_agent_that_cannot_be_read(loader: Any, wanted: Any) -> None:
    problem = loader.problem(OUTER.replace("system_prompt: Inside.", "system_prompt: 5"), agent=wanted)
    assert problem.message == "'inner': system_prompt: expected text, found the number 5"


def test_an_unused_agent_that_cannot_be_read(loader: Any) -> None:
    problem = loader.problem(
        OUTER + entry("spare", "{component_type: Agent, name: spare, system_prompt: x}"), agent="spare"
    )
    assert (problem.code, problem.message) == ("missing-key", "'spare': missing key 'llm_config' in an Agent")
    assert problem.severity == "error"


def test_a_reference_at_the_top(loader: Any) -> None:
    text = "$component_ref: key\n" + VERSION + TABLE + entry("key", INNER) + entry("model", MODEL)
    assert loader.graph(text).name == "inner"
    assert loader.problem(text.replace("ref: key", "ref: kei")).code == "unknown-reference"


def test_a_tool_at_the_top_cannot_be_run(loader: Any) -> None:
    problem = loader.problem(VERSION + "component_type: ServerTool\nname: hammer\n")
    assert problem.code == "not-runnable"
    assert (
        problem.message == "the ServerTool 'hammer' is neither an agent nor a flow, so that it cannot be run"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (VERSION + AGENT, True),
        (AGENT, True),
        ("$component_ref: x\n", True),
        (VERSION + PARTS, False),
        (PARTS, False),
        ("[1]", False),
        ("component_type: [1]", False),
        ("manifest_version: 1\nagents: {}", False),
    ],
)
def test_which_documents_are_configurations(text: Any, expected: Any) -> None:
    assert detect(parse(text, file="x.yaml")) is expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (AGENT, ["guide"]),
        ("$component_ref: key\n" + TABLE + entry("key", INNER), ["inner"]),
        ("$component_ref: [1]\n", []),
        (PARTS, []),
        ("[1]", []),
    ],
)
def test_the_agents_of_a_document(text: Any, names: Any) -> None:
    assert agents(parse(text, file="x.yaml")) == names


# ------------------------------------------------------------------ plugins


PLUGIN = """
from harness.dialects.agentspec.flows import Node
from harness.dialects.agentspec.plugins import ComponentPlugin
from harness.dialects.agentspec.visit import NodeResult


class RepeatNode(Node):
    times: int


class Repeats(ComponentPlugin):
    name = "repeats"
    version = "1.0"
    components = {"RepeatNode": RepeatNode}

    async def run(self, node, inputs, ctx):
        return NodeResult({"text": inputs["text"] * node.times})
"""
REPEATING = (
    VERSION
    + """\
component_type: Flow
name: echo
start_node: {$component_ref: begin}
nodes: [{$component_ref: begin}, {$component_ref: repeat}, {$component_ref: end}]
control_flow_connections:
- {component_type: ControlFlowEdge, name: a, from_node: {$component_ref: begin}, to_node: {$component_ref: repeat}}
- {component_type: ControlFlowEdge, name: b, from_node: {$component_ref: repeat}, to_node: {$component_ref: end}}
$referenced_components:
  begin: {component_type: StartNode, name: begin, inputs: [{title: text, type: string}]}
  end: {component_type: EndNode, name: end, outputs: [{title: text, type: string}]}
  repeat:
    component_type: RepeatNode
    component_plugin_name: repeats
    component_plugin_version: "1.0"
    name: repeat
    times: 2
    inputs: [{title: text, type: string}]
    outputs: [{title: text, type: string}]
"""
)


class RepeatNode(Node):
    times: int


class Repeats(ComponentPlugin):
    name = "repeats"
    version = "1.0"
    components: ClassVar = {"RepeatNode": RepeatNode}

    async def run(self, node: Any, inputs: Any, ctx: Any) -> Any:
        return NodeResult({"text": inputs["text"] * node.times})


def test_a_component_of_a_plugin_that_is_not_here(loader: Any) -> None:
    problem = loader.problem(REPEATING)
    assert (problem.code, loader.place(problem)) == ("unknown-plugin", "RepeatNode")
    assert problem.message == "RepeatNode is a component of the plugin 'repeats', which is not here"


@pytest.mark.parametrize("hook", [Repeats, Repeats()], ids=["class", "object"])
def test_a_plugin_brings_a_type_of_node(loader: Any, hook: Any) -> None:
    assert "repeat" in {node.name for node in loader.graph(REPEATING, hooks=(hook,)).nodes}


def test_the_fields_of_a_plugin_are_checked(loader: Any) -> None:
    problem = loader.problem(REPEATING.replace("times: 2", "times: two"), hooks=(Repeats,))
    assert problem.message == "'repeat': times: expected a whole number, found text 'two'"
    problem = loader.problem(REPEATING.replace("times: 2", "times: 2\n    more: 1"), hooks=(Repeats,))
    assert problem.message.startswith("'repeat': unknown key 'more'")


def test_the_fields_of_a_plugin_may_be_referred_to(loader: Any) -> None:
    text = REPEATING.replace("times: 2", "times: {$component_ref: two}") + entry("two", "2")
    loader.graph(text, hooks=(Repeats,))


def test_two_plugins_for_one_type(loader: Any) -> None:
    problem = loader.problem(REPEATING, hooks=(Repeats(), Repeats()))
    assert (problem.code, problem.message) == (
        "plugin",
        "the plugins 'repeats' and 'repeats' both read RepeatNode",
    )


def test_a_component_of_a_plugin_is_of_the_type_the_plugin_gives_it(loader: Any) -> None:
    class Renamed(Repeats):
        components: ClassVar = {"acme.Repeat": RepeatNode}

    text = REPEATING.replace("component_type: RepeatNode", "component_type: acme.Repeat")
    configuration = loader.configuration(text, hooks=(Renamed,))
    repeat = configuration.root.nodes[1]
    assert (repeat.component_type, str(repeat)) == ("acme.Repeat", "acme.Repeat 'repeat'")
    assert configuration.plugins.reads(repeat).name == "repeats"
    assert configuration.plugins.reads(configuration.root) is None
    written = serialize(configuration.root, configuration.plugins)
    assert {"component_type": "acme.Repeat", "component_plugin_name": "repeats"}.items() <= (
        written["$referenced_components"]["repeat-1"].items()
    )
    assert loader.configuration(json.dumps(written), json=True, hooks=(Renamed,)).root.name == "echo"


@dataclass(frozen=True)
class Faulty:
    """A plugin that gives, or raises, something else where it is to make a component."""

    result: object

    def __call__(self, component_type: Any, document: Any) -> Any:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (ValueError("no"), "the plugin 'repeats', for RepeatNode: ValueError: no"),
        (KeyError(), "the plugin 'repeats', for RepeatNode: KeyError"),
        (None, "the plugin 'repeats', for RepeatNode: expected a component, found nothing (null)"),
        ({}, "the plugin 'repeats', for RepeatNode: expected a component, found an empty mapping"),
    ],
)
def test_a_plugin_that_makes_no_component(loader: Any, result: Any, message: Any) -> None:
    class Broken(Repeats):
        deserialize = staticmethod(Faulty(result))

    problem = loader.problem(REPEATING, hooks=(Broken,))
    assert (problem.code, loader.place(problem)) == ("plugin", "RepeatNode")
    assert problem.message == f"'repeat': {message}"


def test_a_plugin_that_refuses_a_component_need_not_say_where(loader: Any) -> None:
    class Refusing(Repeats):
        deserialize = staticmethod(Faulty(ManifestError(Problem("bad-value", "too few"))))

    problem = loader.problem(REPEATING, hooks=(Refusing,))
    assert (problem.code, problem.message) == ("bad-value", "'repeat': too few")
    assert loader.place(problem) == "RepeatNode"


def test_an_agent_of_a_plugin_is_one_that_can_be_run(loader: Any) -> None:
    class Oracle(AgenticComponent):
        pass

    class Oracles(Repeats):
        components: ClassVar = {"Oracle": Oracle}

    text = VERSION + "component_type: Oracle\nname: delphi\n"
    problem = loader.problem(text, hooks=(Oracles,))
    assert (problem.code, loader.place(problem)) == ("plugin", "Oracle")
    assert problem.message == "'delphi': the plugin 'repeats', for Oracle: it cannot be run"
    assert problem.hint == "derive it from Agent, RemoteAgent or Flow"


NO_PLUGINS = """
from harness.dialects.agentspec.flows import Node
from harness.dialects.agentspec.plugins import ComponentPlugin

class Unfinished(ComponentPlugin):
    name, version, components = "x", "1", {}

class Complete(Unfinished):
    async def run(self, node, inputs, ctx): ...

class Raising(Complete):
    def __init__(self):
        raise ValueError("no")

class Nameless(ComponentPlugin):
    version, components = "1", {}
    async def run(self, node, inputs, ctx): ...

class Versionless(Complete):
    version = 1.5

class Empty(ComponentPlugin):
    name, version = "x", "1"
    async def run(self, node, inputs, ctx): ...

class Modelless(Complete):
    components = {"ANode": dict}

def plain(): ...
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("plain", "'faulty.plain' is no ComponentPlugin"),
        ("Node", "'faulty.Node' is no ComponentPlugin"),
        ("Unfinished", "'faulty.Unfinished' cannot be made: TypeError: Can't instantiate abstract class"),
        ("Raising", "'faulty.Raising' cannot be made: ValueError: no"),
        ("Nameless", "'faulty.Nameless' needs a 'name': expected text, found nothing (null)"),
        ("Versionless", "'faulty.Versionless' needs a 'version': expected text, found the number 1.5"),
        ("Empty", "'faulty.Empty' needs 'components': expected a mapping from types to Component classes"),
        ("Modelless", "'faulty.Modelless' needs 'components': expected a mapping"),
    ],
)
def test_what_is_no_plugin(loader: Any, name: Any, message: Any) -> None:
    (loader.folder / "faulty.py").write_text(NO_PLUGINS)
    named_at = Span("a.scenario.yaml", 3, 1)
    problem = loader.problem(
        REPEATING, hooks=(f"faulty.{name}",), folders=(loader.folder,), named_at=named_at
    )
    assert (problem.code, problem.span) == ("plugin", named_at)
    assert problem.message.startswith(f"`hooks`: {message}")


def test_a_plugin_that_is_not_there(loader: Any) -> None:
    named_at = Span("a.scenario.yaml", 3, 1)
    problem = loader.problem(
        REPEATING, hooks=("repeats.Repeats",), folders=(loader.folder,), named_at=named_at
    )
    assert (problem.code, problem.span) == ("import", named_at)


# ------------------------------------------------------------------ installed plugins


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a package with an entry point for a plugin where Python looks for packages."""

    def install_(package: Any, text: Any, entry_point: Any) -> None:
        site = tmp_path / "site"
        info = site / f"{package}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[harness.agentspec_plugins]\n{package} = {entry_point}\n")
        (site / f"{package}.py").write_text(text)
        monkeypatch.syspath_prepend(site)
        installed.cache_clear()

    yield install_
    installed.cache_clear()


def test_an_installed_plugin(loader: Any, install: Any) -> None:
    install("installed_repeats", PLUGIN, "installed_repeats:Repeats")
    assert "repeat" in {node.name for node in loader.graph(REPEATING).nodes}


@pytest.mark.parametrize(
    ("text", "attribute", "why"),
    [
        ("import nowhere_to_be_found", "X", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("raise SystemExit(3)", "X", "SystemExit: 3"),
        ("X = 5", "X", "'broken_plugin:X' is no ComponentPlugin"),
        ("", "X", "AttributeError: module 'broken_plugin' has no attribute 'X'"),
    ],
)
def test_an_installed_plugin_that_cannot_be_used(
    loader: Any, install: Any, monkeypatch: pytest.MonkeyPatch, text: Any, attribute: Any, why: Any
) -> None:
    monkeypatch.delitem(sys.modules, "broken_plugin", raising=False)
    install("broken_plugin", text, f"broken_plugin:{attribute}")
    message = f"the installed plugin 'broken_plugin' (broken_plugin:{attribute}) cannot be used: {why}"
    [warning] = loader.graph(VERSION + AGENT).warnings
    assert (warning.code, warning.severity, warning.message) == ("plugin", "warning", message)
    problem = loader.problem(REPEATING)
    assert (problem.code, problem.hint) == ("unknown-plugin", message)


def test_a_scenario_names_a_plugin_that_runs_its_nodes(loader: Any, tmp_path: Path) -> None:
    (tmp_path / "repeating.py").write_text(PLUGIN)
    (tmp_path / "echo.yaml").write_text(REPEATING)
    (tmp_path / "echo.scenario.yaml").write_text(
        "harness: 1\nmanifest: echo.yaml\ndialect: agentspec\nscenarios:\n"
        "- {name: twice, hooks: [repeating.Repeats], input: {text: ha},"
        " expect: {path: [begin, repeat, end], output: {$exact: {text: haha}}}}\n"
    )
    [scenario] = load_file(tmp_path / "echo.scenario.yaml").scenarios
    [outcome] = run_scenario(scenario)
    assert outcome.verdict == "passed", outcome.observed.error
