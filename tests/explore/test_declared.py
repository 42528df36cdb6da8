"""Declarations in manifests of the data of an agent: a table of manifests for each dialect."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from harness.dialects.load import load_graph
from harness.dialects.request import LoadRequest
from harness.graph.model import Declared

TEXT = {"type": "string"}


def declared(folder: Path, files: Mapping[str, str], agent: str | None = None) -> Declared:
    """Return what the first of the files declares."""
    for name, text in files.items():
        (folder / name).write_text(dedent(text), encoding="utf-8")
    first = folder / next(iter(files))
    return load_graph(LoadRequest((first,), agent, folders=(folder,))).declared()


def properties(schema: Any) -> dict[str, Any]:
    return dict(schema["properties"])


# ---------------------------------------------------------------- sherma


def sherma(
    *nodes: str, fields: str, more: str = "", agent: str = "", edges: str = "[]", entry: str = "a"
) -> str:
    lines = "\n".join(f"        - {node}" for node in nodes)
    return (
        f"manifest_version: 1\nllms: [{{id: m, model_name: m}}]\n{more}\nagents:\n  one:\n    {agent}\n"
        f"    state: {{fields: [{fields}]}}\n    graph:\n      entry_point: {entry}\n      edges: {edges}\n"
        f"      nodes:\n{lines}\n"
    )


def puts(name: str, **values: str) -> str:
    written = ", ".join(f"{key}: '{value}'" for key, value in values.items())
    return f"{{name: {name}, type: set_state, args: {{values: {{{written}}}}}}}"


ASKS = (
    "{name: a, type: call_llm, args: {llm: {id: m}, prompt: [{role: messages, content: state.messages}],"
    " state_updates: {messages: '[llm_response]'}}%s}"
)
MESSAGES = "{name: messages, type: list, default: []}"
NEXT = "[{source: a, target: b}]"
LOOP = "[{source: a, target: b}, {source: b, target: a}]"


@pytest.mark.parametrize(
    ("fields", "nodes", "edges", "inputs", "required"),
    [
        ("{name: x}", [puts("a", y="state.x")], "[]", {"x": TEXT}, ["x"]),
        ("{name: x}", [puts("a", y="default(state.x, 1)")], "[]", {"x": TEXT}, []),
        ("{name: x, type: int}", [puts("a", y="default(state.x, 1)")], "[]", {}, []),  # a limit
        ("{name: x, default: null}", [puts("a", y="state.x")], "[]", {"x": {"anyOf": [TEXT, {"type": "null"}]}}, []),
        ("{name: x, type: int}", [puts("a", x="state.x + 1")], "[]", {}, []),  # a counter
        ("{name: x, type: list, default: [{k: 1}]}", [puts("a", y="state.x")], "[]",
         {"x": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "integer"}},
                                           "required": ["k"]}}}, []),  # the default shows the items
        ("{name: x, default: q}", [puts("a", x="state.x")], "[]", {}, []),
        ("{name: x}", [puts("a", x="1"), puts("b", y="state.x")], NEXT, {}, []),
        ("{name: x}", [puts("a", y="state.x"), puts("b", x="state.y")], LOOP, {"x": TEXT}, ["x"]),  # rewritten later
        ("{name: z}", [puts("a", y="state.x")], "[]", {}, []),  # not a field: it would be dropped
    ],
)  # fmt: skip
def test_a_caller_of_a_sherma_agent_gives_what_is_read_before_it_can_be_written(
    fields: str, nodes: list[str], edges: str, inputs: Any, required: list[str], tmp_path: Path
) -> None:
    found = declared(tmp_path, {"m.yaml": sherma(*nodes, fields=f"{fields}, {{name: y}}", edges=edges)})
    assert (found.input, found.takes_text) == (
        {"type": "object", "properties": inputs, "required": required},
        False,
    )


def test_a_caller_of_a_sherma_agent_with_messages_gives_messages_or_a_text(tmp_path: Path) -> None:
    text = sherma(ASKS % "", fields=f"{MESSAGES}, {{name: limit, type: int, default: 3}}")
    found = declared(tmp_path, {"m.yaml": text})
    assert found.takes_text
    item = properties(found.input)["messages"]["items"]
    assert item["properties"] == {"role": {"enum": ["user"]}, "content": TEXT}
    assert properties(found.input).keys() == {"messages"}


def test_the_input_schema_of_a_sherma_agent_describes_the_data_of_its_message(tmp_path: Path) -> None:
    schema = "{type: object, required: [bed], properties: {bed: {$ref: '#/$defs/bed'}}, $defs: {bed: {type: string}}}"
    found = declared(
        tmp_path, {"m.yaml": sherma(ASKS % "", fields=MESSAGES, agent=f"input_schema: {schema}")}
    )
    assert not found.takes_text
    assert found.input is not None
    assert found.input["$defs"] == {"bed": TEXT}
    block = properties(found.input)["messages"]["items"]["properties"]["content"]["items"]["properties"]
    assert block["data"]["required"] == ["bed"]
    assert block["metadata"]["properties"] == {"agent_input": {"const": True}}


def test_a_sherma_agent_declares_the_types_of_its_state_and_of_its_tools(tmp_path: Path) -> None:
    tool = """\
        from typing import TypedDict
        from langchain_core.tools import tool
        class Charge(TypedDict):
            amount: int
        @tool
        def charges(customer: str) -> list[Charge]:
            "List them."
        @tool
        def untyped(customer: str):
            "List them."
    """
    imported = (
        "{id: t, version: '1', import_path: own.charges}",
        "{id: u, version: '1', import_path: own.untyped}",
    )
    fields = f"{MESSAGES}, {{name: total, type: float, default: 1}}, {{name: note, default: null}}"
    fields += ", {name: n, type: int, default: '3'}"  # a text stays one
    text = sherma(ASKS % "", fields=fields, more=f"tools: [{', '.join(imported)}]")
    found = declared(tmp_path, {"m.yaml": text, "own.py": tool})
    assert properties(found.state) == {
        "messages": {"type": "array"},
        "total": {"type": "number"},
        "note": {"anyOf": [TEXT, {"type": "null"}]},
        "n": {},
    }
    assert list(found.results) == [("tool", "t")]
    assert found.results["tool", "t"]["$defs"]["Charge"]["properties"]["amount"]["type"] == "integer"


@pytest.mark.parametrize(
    ("node", "handles"),
    [
        (ASKS % "", False),
        (ASKS % ", on_error: {}", False),
        (ASKS % ", on_error: {retry: {max_attempts: 2}}", True),
        (ASKS % ", on_error: {fallback: b}", True),
    ],
)
def test_a_sherma_agent_handles_faults_by_on_error(node: str, handles: bool, tmp_path: Path) -> None:
    text = sherma(node, puts("b", y='"done"'), fields=f"{MESSAGES}, {{name: y}}")
    assert declared(tmp_path, {"m.yaml": text}).handles_faults is handles


# ---------------------------------------------------------------- yagra


def yagra(*nodes: str, edges: str = "[]", schema: str = "{}") -> str:
    lines = "\n".join(f"  - {{id: {node}}}" for node in nodes)
    return (
        f'version: "1.0"\nstart_at: a\nend_at: [z]\nstate_schema: {schema}\nedges: {edges}\n'
        f"nodes:\n{lines}\n  - {{id: z, handler: last}}\n"
    )


def model(name: str, prompt: str, more: str = "") -> str:
    return f"{name}, handler: llm{more}, params: {{prompt_ref: 'p.yaml#{prompt}', output_key: {name}_out}}"


PROMPTS = (
    "ask: {system: s, user: '{topic} {tone}'}\nwrite: {user: '{a_out} of {topic}'}\nend: {user: '{done}'}\n"
)


@pytest.mark.parametrize(
    ("nodes", "edges", "inputs", "required"),
    [
        ([model("a", "ask")], "[{source: a, target: z}]", ["topic", "tone"], ["topic", "tone"]),
        ([model("a", "ask"), model("b", "write")], "[{source: a, target: b}, {source: b, target: z}]",
         ["topic", "tone"], ["topic", "tone"]),  # a_out is written before
        (["a, handler: own", model("b", "ask")], "[{source: a, target: b}]", ["topic", "tone"], []),  # or by `own`
        (["a, handler: own"], "[{source: a, target: z, fan_out: {items_key: rows, item_key: row}}]", ["rows"], []),
    ],
)  # fmt: skip
def test_a_caller_of_a_workflow_gives_what_prompts_read_and_no_model_node_has_written(
    nodes: list[str], edges: str, inputs: list[str], required: list[str], tmp_path: Path
) -> None:
    found = declared(tmp_path, {"w.yaml": yagra(*nodes, edges=edges), "p.yaml": PROMPTS})
    assert list(properties(found.input)) == inputs
    assert found.input is not None
    assert found.input["required"] == required


def test_a_handler_of_a_workflow_returns_a_label_of_its_edges_and_what_is_read_after_it(
    tmp_path: Path,
) -> None:
    edges = "[{source: a, target: b, condition: go}, {source: a, target: z, condition: stop}]"
    text = yagra("a, handler: own", model("b", "ask"), edges=edges)
    found = declared(tmp_path, {"w.yaml": text, "p.yaml": PROMPTS})
    assert found.results["handler", "own"] == {
        "type": "object",
        "properties": {"topic": TEXT, "tone": TEXT, "__next__": {"enum": ["go", "stop"]}},
        "required": ["topic", "tone", "__next__"],
    }


def test_a_state_schema_types_the_state_and_the_output_of_a_workflow(tmp_path: Path) -> None:
    schema = "{topic: {type: str}, a_out: {type: str}, log: {type: messages}, n: {type: float}}"
    found = declared(tmp_path, {"w.yaml": yagra(model("a", "ask"), schema=schema), "p.yaml": PROMPTS})
    assert found.output is found.state
    assert properties(found.state) == {
        "topic": TEXT,
        "a_out": TEXT,
        "log": {"type": "array"},
        "n": {"type": "number"},
    }
    assert list(properties(found.input)) == [
        "topic",
        "log",
        "n",
    ]  # `last` may read the others; `tone` is dropped


@pytest.mark.parametrize(
    ("more", "handles"),
    [("", False), (", timeout_seconds: 2", False), (", retry: {}", True), (", fallback: z", True)],
)
def test_a_workflow_handles_faults_by_retries_and_fallbacks(more: str, handles: bool, tmp_path: Path) -> None:
    found = declared(tmp_path, {"w.yaml": yagra(model("a", "ask", more)), "p.yaml": PROMPTS})
    assert found.handles_faults is handles


def test_a_model_of_a_workflow_that_gives_a_structure_declares_it(tmp_path: Path) -> None:
    node = "a, handler: structured_llm, params: {prompt_ref: 'p.yaml#end', schema_yaml: 'mood: str'}"
    found = declared(tmp_path, {"w.yaml": yagra(node), "p.yaml": PROMPTS})
    assert found.results["llm", "a"]["properties"] == {"mood": {"title": "Mood", **TEXT}}


# ---------------------------------------------------------------- agentspec

LLM = "{component_type: VllmConfig, name: m, url: 'http://m', model_id: m}"
TOOL = "{component_type: %s, name: t, %s}"


def flow(tool: str, *, inputs: str, outputs: str, more: str = "") -> str:
    start = f"{{component_type: StartNode, id: s, name: s, inputs: [{inputs}]}}"
    end = f"{{component_type: EndNode, id: e, name: e, outputs: [{outputs}]}}"
    node = f"{{component_type: ToolNode, id: n, name: n, tool: {tool}}}"
    edges = ", ".join(
        f"{{component_type: ControlFlowEdge, name: {a}{b}, from_node: {{$component_ref: {a}}},"
        f" to_node: {{$component_ref: {b}}}}}"
        for a, b in ("sn", "ne")
    )
    return (
        "component_type: Flow\nname: f\nagentspec_version: 25.4.2\nstart_node: {$component_ref: s}\n"
        f"nodes: [{{$component_ref: s}}, {{$component_ref: n}}, {{$component_ref: e}}]\n{more}\n"
        f"control_flow_connections: [{edges}]\n$referenced_components: {{s: {start}, n: {node}, e: {end}}}\n"
    )


def test_a_flow_declares_its_inputs_and_its_outputs(tmp_path: Path) -> None:
    tool = TOOL % ("ServerTool", "outputs: [{title: x, type: integer}]")
    text = flow(tool, inputs="{title: q, type: string}, {title: n, type: integer, default: 1}",
                outputs="{title: x, anyOf: [{type: integer, minimum: 1}, {type: string}], default: 1}")  # fmt: skip
    found = declared(tmp_path, {"f.yaml": text})
    assert found.input is not None
    assert (list(properties(found.input)), found.input["required"], found.takes_text) == (
        ["q", "n"], ["q"], False)  # fmt: skip
    assert found.output is not None
    assert found.output["required"] == ["x"]
    assert properties(found.output)["x"]["anyOf"] == [
        {"type": "integer", "minimum": 1}, TEXT, {"type": "null"}]  # fmt: skip
    assert not found.handles_faults


@pytest.mark.parametrize(
    ("tool", "call", "schema"),
    [
        (TOOL % ("ServerTool", "outputs: [{title: x, type: string}]"), ("tool", "t"), {"title": "x", **TEXT}),
        (  # {x: 1} would be taken for the mapping of all outputs
            TOOL % ("ServerTool", "outputs: [{title: x, type: object}]"),
            ("tool", "t"),
            {"type": "object", "properties": {"x": {"title": "x", "type": "object"}}, "required": ["x"]},
        ),
        (
            TOOL % ("ClientTool", "outputs: [{title: x, type: string}, {title: y, type: string, default: z}]"),
            ("tool", "t"),
            {"type": "object", "required": ["x"],
             "properties": {"x": {"title": "x", **TEXT}, "y": {"title": "y", **TEXT, "default": "z"}}},
        ),
        (
            TOOL % ("RemoteTool", "url: 'http://a/{{q}}', http_method: GET, outputs: [{title: x, type: string}]"),
            ("http", "http://a/*"),
            {"title": "x", **TEXT},
        ),
        (
            TOOL % ("MCPTool", "outputs: [{title: x, type: string}], client_transport: "
                    "{component_type: StdioTransport, id: srv, name: server, command: serve}"),
            ("mcp", "t"),
            {"title": "x", **TEXT},
        ),
    ],
)  # fmt: skip
def test_tools_of_agentspec_declare_what_they_return(
    tool: str, call: tuple[str, str], schema: Any, tmp_path: Path
) -> None:
    found = declared(tmp_path, {"f.yaml": flow(tool, inputs="{title: q, type: string}", outputs="")})
    by_node = {("http", "n"): schema} if call[0] == "http" else {}
    assert found.results == {call: schema, **by_node}
    servers = {id_: [tool.name for tool in tools] for id_, tools in found.servers.items()}
    assert servers == ({"srv": ["t"]} if call[0] == "mcp" else {})


@pytest.mark.parametrize(
    ("prompt", "outputs", "takes_text", "output"),
    [
        ("Help.", "[]", True, TEXT),
        (
            "Help {{who}}.",
            "[{title: x, type: string}]",
            False,
            {"type": "object", "properties": {"x": {"title": "x", **TEXT}}, "required": ["x"]},
        ),
    ],
)
def test_a_caller_of_an_agentspec_agent_gives_a_message_and_its_inputs(
    prompt: str, outputs: str, takes_text: bool, output: Any, tmp_path: Path
) -> None:
    text = (
        f"{{component_type: Agent, name: a, agentspec_version: 25.4.2, llm_config: {LLM}, outputs: {outputs},"
    )
    found = declared(tmp_path, {"a.yaml": f"{text} system_prompt: '{prompt}'}}"})
    assert (found.takes_text, found.output) == (takes_text, output)
    assert list(properties(found.input)) == (["message"] if takes_text else ["who", "message"])
    assert found.results == ({} if takes_text else {("llm", "a"): output})


def team(more: str) -> str:
    agents = [
        f"{{component_type: Agent, id: {a}, name: {a}, llm_config: {LLM}, system_prompt: x}}" for a in "ab"
    ]
    return (
        f"agentspec_version: 25.4.2\nname: t\noutputs: [{{title: x, type: string}}]\n{more}\n"
        f"$referenced_components: {{a: {agents[0]}, b: {agents[1]}}}\n"
    )


PAIR = "[{$component_ref: a}, {$component_ref: b}]"
SWARM = f"component_type: Swarm\nfirst_agent: {{$component_ref: a}}\nrelationships: [{PAIR}]"
GROUP = "component_type: ManagerWorkers\ngroup_manager: {$component_ref: a}\nworkers: [{$component_ref: b}]"


@pytest.mark.parametrize(
    ("more", "speakers"), [(SWARM, ["a", "b"]), (f"{SWARM}\nhandoff: never", ["a"]), (GROUP, ["a"])]
)
def test_the_agents_of_a_team_that_talk_to_the_user_give_its_outputs(
    more: str, speakers: list[str], tmp_path: Path
) -> None:
    found = declared(tmp_path, {"t.yaml": team(more)})
    assert found.takes_text
    assert list(found.results) == [("llm", name) for name in speakers]


@pytest.mark.parametrize(("more", "handles"), [("", False), (", retry_policy: {max_attempts: 2}", True)])
def test_a_retry_policy_handles_faults(more: str, handles: bool, tmp_path: Path) -> None:
    model = LLM.replace("}", f"{more}}}")
    text = f"{{component_type: Agent, name: a, agentspec_version: 26.1.2, llm_config: {model}, system_prompt: x}}"
    assert declared(tmp_path, {"a.yaml": text}).handles_faults == handles


# ---------------------------------------------------------------- loki


def loki(nodes: str, more: str = "") -> str:
    return f"name: l\nstart: a\n{more}\nnodes:\n{nodes}\n  z: {{type: end, output: '{{{{done}}}}'}}\n"


SCRIPT = "  a: {type: script, script: s.sh, next: b}\n"


def test_a_caller_of_a_loki_agent_gives_its_prompt_and_gets_a_text(tmp_path: Path) -> None:
    found = declared(tmp_path, {"graph.yaml": loki("  a: {type: llm, prompt: '{{x}}', next: z}")})
    assert (list(properties(found.input)), found.takes_text, found.output) == (["initial_prompt"], True, TEXT)


@pytest.mark.parametrize(
    ("nodes", "keys"),
    [
        (SCRIPT + "  b: {type: llm, prompt: '{{x}} {{initial_prompt}}', state_updates: {done: '{{output}}'}}",
         {"x": TEXT}),  # `done` is set by b, `output` is the result of the node
        (SCRIPT + "  b: {type: llm, prompt: '{{x.items[1].price}}', next: z}", {
            "x": {"type": "object", "required": ["items"], "properties": {"items": {
                "type": "array", "minItems": 2, "items": {
                    "type": "object", "required": ["price"], "properties": {"price": TEXT}}}}},
            "done": TEXT}),
    ],
)  # fmt: skip
def test_a_script_of_a_loki_agent_sets_what_templates_need_and_nothing_else_sets(
    nodes: str, keys: Any, tmp_path: Path
) -> None:
    found = declared(tmp_path, {"graph.yaml": loki(nodes), "s.sh": "echo {}"})
    assert properties(found.results["script", "a"]) == keys


def test_a_script_of_a_loki_agent_goes_to_nodes_that_its_file_names(tmp_path: Path) -> None:
    nodes = f"{SCRIPT}  b: {{type: end}}\n  c: {{type: end}}"
    text = """echo '{"_next": "c"}'"""
    found = declared(tmp_path, {"graph.yaml": loki(nodes), "s.sh": text}).results["script", "a"]
    assert properties(found) == {"_next": {"enum": ["c"]}}
    assert found["required"] == []


def test_nodes_of_a_loki_agent_declare_schemas_and_valid_answers(tmp_path: Path) -> None:
    schema = "{type: object, properties: {grade: {type: integer}}}"
    nodes = (
        f"  a: {{type: llm, prompt: hi, output_schema: {schema}, next: b}}\n"
        "  b: {type: input, question: how, validation: 'len(input) > 2', next: z}"
    )
    assert declared(tmp_path, {"graph.yaml": loki(nodes)}).results == {
        ("llm", "a"): {"type": "object", "properties": {"grade": {"type": "integer"}}},
        ("human", "b"): {**TEXT, "minLength": 3},
    }


@pytest.mark.parametrize(
    ("more", "handles"), [("", False), (", max_attempts: 2", True), (", fallback: z", True)]
)
def test_a_loki_agent_handles_faults_by_fallbacks_and_attempts(
    more: str, handles: bool, tmp_path: Path
) -> None:
    text = loki(f"  a: {{type: llm, prompt: hi, next: z{more}}}")
    assert declared(tmp_path, {"graph.yaml": text}).handles_faults is handles


# ---------------------------------------------------------------- leafmesh


def mesh(agents: str, *, entry: str = "{name: e, target: a}", more: str = "", manager: str = "{}") -> str:
    return f"name: m\nentry_points: [{entry}]\nmanager: {manager}\n{more}\nagents:\n{agents}\n"


@pytest.mark.parametrize(
    ("agent", "entry", "inputs", "required", "takes_text"),
    [
        ("prompt: hi", "", {"message": TEXT}, ["message"], True),
        ("inputs: {order: {type: object, fields: {id: number}}}", "",
         {"order": {"type": "object", "properties": {"id": {"type": "number"}}, "required": ["id"]}},
         ["order"], False),
        ("prompt: hi, inputs: {kind: string}", ", condition: kind == 'big' and urgent",
         {"kind": {**TEXT, "examples": ["big"]}, "urgent": {"type": "boolean"}}, ["kind"], False),
    ],
)  # fmt: skip
def test_a_caller_of_a_mesh_gives_the_inputs_of_the_entry_agent_or_a_text(
    agent: str, entry: str, inputs: Any, required: list[str], takes_text: bool, tmp_path: Path
) -> None:
    text = mesh(f"  a: {{{agent}}}", entry=f"{{name: e, target: a{entry}}}")
    found = declared(tmp_path, {"config.yaml": text})
    assert found.input == {"type": "object", "properties": inputs, "required": required}
    assert found.takes_text is takes_text


def test_a_caller_of_a_mesh_gives_what_the_function_of_the_entry_agent_reads(tmp_path: Path) -> None:
    (tmp_path / "agency").mkdir()
    function = (
        "def a(_, input_data, context):\n    return {'x': input_data['order'], 'y': input_data.get('note')}\n"
    )
    (tmp_path / "agency" / "a.py").write_text(function, encoding="utf-8")
    text = mesh("  a: {agent_type: programmatic}", more="auto_discover: {directory: agency}")
    found = declared(tmp_path, {"config.yaml": text})
    assert found.input == {"type": "object", "properties": {"order": {}, "note": {}}, "required": ["order"]}
    assert not found.takes_text


@pytest.mark.parametrize(
    ("agent", "output"),
    [
        ("yields: {n: number}", {"n": {}}),  # a wrong type is kept
        ("yields: {n: number}, enforce_yields: true", {"n": {"type": "number"}}),
        ("yields: {n: number}, communication_type: chain", None),  # a callee may replace it
        ("communication_type: dual", None),
    ],
)
def test_a_mesh_promises_the_yields_of_its_agents(agent: str, output: Any, tmp_path: Path) -> None:
    found = declared(tmp_path, {"config.yaml": mesh(f"  a: {{prompt: hi, {agent}}}")})
    assert (None if found.output is None else properties(found.output)) == output
    assert (found.state is None) is ("yields" not in agent)


def test_agents_of_a_mesh_answer_with_their_yields_and_what_conditions_read(tmp_path: Path) -> None:
    text = mesh(
        "  a: {prompt: hi, yields: {kind: string}, can_call: [{agent: b, condition: kind == 'x'},"
        " {agent: c, condition: calling_agent_response.order.total > 3}]}\n"
        "  b: {agent_type: human, yields: {decision: string}}\n"
        "  c: {agent_type: programmatic, yields: {done: boolean}, narration: tell}"
    )
    found = declared(tmp_path, {"config.yaml": text}).results
    total = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
    assert properties(found["llm", "a"]) == {"kind": {**TEXT, "examples": ["x"]}, "order": total}
    assert found["llm", "a"]["required"] == ["kind"]
    assert properties(found["human", "b"]) == {"decision": TEXT}
    assert properties(found["script", "c"]) == {"done": {"type": "boolean"}}
    assert properties(found["llm", "summarizer"])["next_agents"]["items"] == {"enum": ["a", "b", "c"]}


@pytest.mark.parametrize(
    ("agents", "manager", "handles"),
    [
        ("  a: {prompt: hi}", "{}", False),
        ("  a: {prompt: hi}", "{escalation: {targets: []}}", True),
        ("  a: {prompt: hi}", "{escalation: {targets: []}, enabled: false}", False),
        ("  a: {agent_type: human, fallback_response: {decision: no}}", "{}", False),
        ("  a: {prompt: hi, can_call: [{agent: c}]}\n  b: {prompt: hi}\n  c: {prompt: hi, wait_for: a AND b?}",
         "{}", False),
    ],
)  # fmt: skip
def test_a_mesh_handles_faults_of_models_by_escalation_alone(
    agents: str, manager: str, handles: bool, tmp_path: Path
) -> None:
    assert declared(tmp_path, {"config.yaml": mesh(agents, manager=manager)}).handles_faults is handles
