"""A name in a scenario that nothing can have is an error with its place; one that only a run knows is a warning."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.dialects.load import load_graph
from harness.scenario.load import load_file
from harness.scenario.model import load_request
from harness.scenario.names import unknown_names
from harness.scenario.run import run_scenario
from harness.settings import Settings

SHERMA = """\
manifest_version: 1
llms: [{id: m, version: "1", provider: openai, model_name: quill-2}]
tools: [{id: find, version: "1", import_path: tools_of_names.search}]
mcp_servers: [{id: shop, version: "1", transport: sse, url: "http://shop"}]
sub_agents: [{id: helper, version: "1", yaml_path: helper.yaml}]
agents:
  desk:
    state: {fields: [{name: messages, type: list, default: []}]}
    graph:
      entry_point: ask
      nodes:
        - name: ask
          type: call_llm
          args:
            llm: {id: m}
            prompt: [{role: messages, content: state.messages}]
            use_tools_from_registry: true
            state_updates: {messages: '[llm_response]'}
      edges: []
"""
HELPER = """\
manifest_version: 1
llms: [{id: m, version: "1", provider: openai, model_name: quill-mini}]
sub_agents: [{id: desk, version: "1", yaml_path: manifest.yaml}]
agents:
  helper:
    state: {fields: [{name: messages, type: list, default: []}]}
    graph:
      entry_point: think
      nodes:
        - name: think
          type: call_llm
          args:
            llm: {id: m}
            prompt: [{role: messages, content: state.messages}]
            state_updates: {messages: '[llm_response]'}
        - {name: back, type: call_agent, args: {agent: {id: desk}, input: '"again"'}}
      edges: [{source: think, target: back}]
"""
AGENTSPEC = """\
agentspec_version: 25.4.1
component_type: Flow
id: flow
name: flow
start_node: {$component_ref: start}
nodes: [{$component_ref: start}, {$component_ref: consult}, {$component_ref: end}]
control_flow_connections:
  - {$component_ref: first}
  - {$component_ref: second}
$referenced_components:
  first:
    component_type: ControlFlowEdge
    id: first
    name: first
    from_node: {$component_ref: start}
    to_node: {$component_ref: consult}
  second:
    component_type: ControlFlowEdge
    id: second
    name: second
    from_node: {$component_ref: consult}
    to_node: {$component_ref: end}
  start: {component_type: StartNode, id: start, name: start}
  end: {component_type: EndNode, id: end, name: end}
  consult: {component_type: AgentNode, id: consult, name: consult, agent: {$component_ref: expert}}
  expert:
    component_type: Agent
    id: expert
    name: expert
    system_prompt: hi
    llm_config: {component_type: OpenAiConfig, id: m, name: m, model_id: quill-2}
    tools: [{component_type: ServerTool, id: find-1, name: find, description: d}]
"""
YAGRA = """\
version: "1.0"
start_at: ask
end_at: [inside]
interrupt_before: [ask]
nodes:
  - {id: ask, handler: asking}
  - {id: inside, handler: subgraph, params: {workflow_ref: inner.yaml}}
edges: [{source: ask, target: inside}]
"""
INNER = """\
version: "1.0"
start_at: pack
end_at: [pack]
nodes: [{id: pack, handler: packing}]
edges: []
"""
MESH = """\
name: desk
entry_points: [{name: in, target: ask}]
agents: {ask: {prompt: Answer., tools: [find]}}
"""
LOKI = """\
start: ask
model: quill-2
nodes: {ask: {type: llm, prompt: p, next: done}, done: {type: end, output: "{{output}}"}}
"""
FILES = {"sherma": SHERMA, "agentspec": AGENTSPEC, "yagra": YAGRA, "mesh": MESH, "loki": LOKI}

Told = Callable[..., list[str]]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    """Return the problems of the names in the keys of a scenario, which begin at line 5, column 1."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools_of_names.py").write_text(
        'def search(q: str) -> str:\n    """Search."""\n    return q\n'
    )
    (tmp_path / "helper.yaml").write_text(HELPER)
    (tmp_path / "inner.yaml").write_text(INNER)

    def of(dialect: str, keys: str, more: str = "") -> list[str]:
        (tmp_path / "manifest.yaml").write_text(FILES[dialect])
        file = tmp_path / "a.scenario.yaml"
        file.write_text(f"harness: 1\nmanifest: manifest.yaml\nscenarios: [{{name: x,\n\n{keys}}}{more}]\n")
        return [
            f"{problem.severity} {problem.span.line}:{problem.span.column} {problem.message}|{problem.hint}"
            for scenario in load_file(file).scenarios[:1]
            for problem in unknown_names(
                scenario, load_graph(load_request(scenario, Settings()), scenario.dialect), Settings()
            )
            if problem.span
        ]

    return of


@pytest.mark.parametrize(
    ("dialect", "keys", "expected"),
    [
        ("sherma", "expect: {never: [aks]}", "5:18 never names 'aks', but 'desk' has no such node"),
        ("sherma", "expect: {path: [[ask, aks]]}", "5:23 path names 'aks', but 'desk' has no such node"),
        ("sherma", "expect: {max_visits: {aks: 1}}", "5:23 max_visits names 'aks'"),
        ("sherma", "expect: {routes: [{from: ask, to: __start__}]}", "5:35 routes names '__start__'"),
        ("sherma", "expect: {latency: {nodes: {aks: 1}}}", "5:28 latency.nodes names 'aks'"),
        ("sherma", "expect: {error: {node: aks}}", "5:24 error.node names 'aks'"),
        (
            "sherma",
            "expect: {never_calls: [{tool: fnid}]}",
            "5:31 never_calls names 'fnid', but 'desk' has no such tool",
        ),
        ("sherma", "expect: {never_calls: [{tool: search}]}", "5:31 never_calls names 'search'"),
        (
            "sherma",
            "expect: {never_calls: [{llm: 'quil-?'}]}",
            "5:30 never_calls names 'quil-?', but 'desk' has no such model",
        ),
        ("sherma", "expect: {never_calls: [{mcp: buy}]}", "5:30 never_calls names 'buy'"),
        ("sherma", "expect: {never_calls: [{tool: '*', node: aks}]}", "5:42 never_calls.node names 'aks'"),
        ("sherma", "expect: {call_counts: {'tool:fnid': 0}}", "5:24 call_counts names 'fnid'"),
        ("sherma", "llm: {aks: [hi]}", "5:7 llm names 'aks', but 'desk' has no such node|did you mean 'ask'?"),
        (
            "yagra",
            "http: [{node: insde/pack, json: 1}]",
            "5:15 http names 'insde/pack', but 'manifest' has no such node",
        ),
        ("sherma", "llm: [{model: quil, reply: hi}]", "5:15 llm names 'quil', but 'desk' has no such model"),
        ("sherma", "turns: [{llm: [{node: aks, reply: hi}]}]", "5:23 llm names 'aks'"),
        ("sherma", "tools: {fnid: {return: 1}}", "5:9 tools names 'fnid', but 'desk' has no such tool"),
        ("sherma", "tools: {find: {node: aks, return: 1}}", "5:22 tools names 'aks'"),
        ("sherma", "mcp: {shpo: {tools: []}}", "5:7 mcp names 'shpo', but 'desk' has no such MCP server"),
        ("sherma", "agents: {helpr: {return: hi}}", "5:10 agents names 'helpr', but 'desk' has no such agent"),
        ("sherma", "scripts: {ask: {return: hi}}", "5:11 scripts names 'ask', but 'desk' has no such script"),
        ("sherma", "human: {aks: ['yes']}", "5:9 human names 'aks'"),
        ("sherma", "faults: [{effect: tool, name: fnid, nth: 1, error: timeout}]", "5:31 faults names 'fnid'"),
        ("agentspec", "expect: {never: [expert]}", "5:18 never names 'expert', but 'flow' has no such node"),
        ("agentspec", "expect: {never_calls: [{tool: fnid}]}", "5:31 never_calls names 'fnid'"),
        ("agentspec", "tools: {fnid: {return: hi}}", "5:9 tools names 'fnid', but 'flow' has no such tool"),
        ("agentspec", "llm: {conslut: [hi]}", "5:7 llm names 'conslut', but 'flow' has no such node"),
        ("yagra", "handlers: {askng: {return: {}}}", "5:12 handlers names 'askng'"),
        ("yagra", "expect: {never_calls: [{tool: find}]}", "5:31 never_calls names 'find'"),
        ("yagra", "expect: {latency: {nodes: {pakc: 1}}}", "5:28 latency.nodes names 'pakc'"),
        ("yagra", "expect: {interrupt: [pack]}", "5:22 interrupt names 'pack', where 'manifest' never pauses"),
        ("sherma", "turns: [{input: a}, {rerun: {agent: ask}}]", "5:37 no node of 'desk' can be run again"),
        ("mesh", "turns: [{input: a}, {rerun: {agent: aks}}]", "5:37 rerun names 'aks', but 'desk' has no such node"),
        ("sherma", "turns: [{input: a}, {input: b, agent: ask}]", "5:39 all inputs enter 'desk' at the same place"),
        ("mesh", "turns: [{input: a}, {entry_point: aks}]", "5:35 there is no entry point or agent 'aks'"),
    ],
)  # fmt: skip
def test_a_name_that_nothing_can_have_is_an_error(told: Told, dialect: str, keys: str, expected: str) -> None:
    (found,) = told(dialect, keys)
    assert found.startswith(f"error {expected}")


@pytest.mark.parametrize(
    ("dialect", "keys", "hint"),
    [
        ("sherma", "expect: {never: [aks]}", "did you mean 'ask'?"),
        ("sherma", "expect: {never_calls: [{tool: search}]}", "did you mean 'find'?"),  # as models call it
        ("sherma", "mcp: {shpo: {tools: []}}", "did you mean 'shop'?"),
        ("sherma", "agents: {helpr: {return: hi}}", "did you mean 'helper'?"),
        ("sherma", "scripts: {ask: {return: hi}}", "'desk' has no script"),
        (
            "agentspec",
            "expect: {never: [expert]}",
            "it is a node inside 'consult'; the name is looked up in the outer graph only",
        ),
        ("yagra", "handlers: {askng: {return: {}}}", "did you mean 'asking'?"),
        ("mesh", "scripts: {find: {return: {}}}", "it has a tool of that name"),
        ("yagra", "expect: {never_calls: [{tool: find}]}", "'manifest' has no tool"),
        ("yagra", "expect: {interrupt: [pack]}", "known: ask"),
    ],
)
def test_it_is_told_what_may_be_meant(told: Told, dialect: str, keys: str, hint: str) -> None:
    (found,) = told(dialect, keys)
    assert found.endswith(f"|{hint}")


@pytest.mark.parametrize(
    ("dialect", "keys"),
    [
        ("sherma", "expect: {never: [ask_tools], routes: [{from: __start__, to: ask}, {from: ask, to: __end__}]}"),
        ("sherma", "expect: {never_calls: [{tool: '*'}, {tool: find}, {agent: h*}]}"),
        ("sherma", "expect: {never_calls: [{llm: 'quill-*', node: '*/think'}]}"),
        ("sherma", "llm: [{tool_calls: [{name: transfer}]}], expect: {never_calls: [{tool: transfer}]}"),
        ("sherma", "llm: {think: [hi], ask_tools/think: [hi], as*: [hi]}"),
        ("sherma", "llm: {ask_tools/back/ask: [hi], ask_tools/back/ask_tools/back/think: [hi]}"),
        ("sherma", "llm: [{model: quill-mini, reply: hi}, {model: quill-?, node: judge, reply: hi}]"),
        ("sherma", "expect: {judge: [{rubric: r, model: grader}]}, llm: [{model: grader, reply: hi}]"),
        ("sherma", "tools: {find: {return: 1}, search: {return: 2}}"),
        ("sherma", "agents: {helper: {return: hi}, desk: {return: hi}}"),
        ("sherma", "mcp: {shop: {tools: [{name: buy}]}}, expect: {never_calls: [{mcp: buy}]}"),
        ("sherma", "tools: {fnid: {return: 1}}, expect: {status: invalid}"),
        ("agentspec", "tools: {find: {return: 1}, find-1: {return: 1}}, llm: {consult: [hi]}"),
        ("yagra", "handlers: {asking: {return: {}}, packing: {return: {}}}, expect: {latency: {nodes: {pack: 1}}}"),
        ("yagra", "expect: {interrupt: [ask]}"),
    ],
)  # fmt: skip
def test_names_that_something_can_have(told: Told, dialect: str, keys: str) -> None:
    assert told(dialect, keys) == []


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (
            "mcp: {shop: real}, expect: {never_calls: [{mcp: buy}]}",
            "the tools of a real server are known when",
        ),
        (
            "cassette: c, expect: {never_calls: [{tool: fnid}]}",
            "its models and servers are recorded, or real",
        ),
        (
            "tools: {find: real}, expect: {never_calls: [{llm: other}]}",
            "real Python code may ask other models",
        ),
    ],
)
def test_a_name_that_only_a_run_knows_is_a_warning(told: Told, keys: str, reason: str) -> None:
    (found,) = told("sherma", keys)
    assert found.startswith("warning ")
    assert reason in found


@pytest.mark.parametrize(
    ("dialect", "keys", "expected"),
    [
        ("sherma", "expect: {state: {msesages: {$missing: true}}}", "5:18 state: 'msesages' is always missing"),
        ("yagra", "expect: {output: {a: [{wrod: {$missing: true}}]}}", "5:24 output: 'wrod' is always missing"),
        ("sherma", "expect: {state: {$not: {msesages: x}}}", "5:25 state: 'msesages' is always missing"),
        ("sherma", "expect: {state_schema: {properties: {msesages: {}}}}", "5:38 state_schema: 'msesages' is"),
        ("sherma", "expect: {checks: [{that: '!has(state.msesages)'}]}", "5:26 checks: 'msesages' is always"),
        ("sherma", "turns: [{expect: {state: {zz: {$missing: true}}}}]", "5:27 state: 'zz' is always missing"),
        (
            "sherma",
            "expect: {checks: [{that: '!(\"aks\" in path)'}]}",
            "5:26 checks names 'aks', but 'desk' has no such node",
        ),
        ("sherma", "expect: {checks: [{that: 'path.all(p, p != \"aks\")'}]}", "5:26 checks names 'aks'"),
        ("sherma", "expect: {checks: [{that: '!(\"aks\" in visits)'}]}", "5:26 checks names 'aks'"),
        (
            "yagra",
            "expect: {checks: [{that: '!calls.exists(c, c.kind == \"tol\")'}]}",
            "5:26 checks names 'tol', which is not a kind of call|did you mean 'tool'?",
        ),
        (
            "yagra",
            "expect: {checks: [{that: 'calls.filter(c, c.name in [\"askng\"]).size() == 0'}]}",
            "5:26 checks names 'askng', but 'manifest' calls nothing of that name|did you mean 'asking'?",
        ),
        ("yagra", "env: {ASK_MODLE: x}", "5:7 nothing in 'manifest' uses the variable 'ASK_MODLE'"),
        ("loki", "expect: {state: {page: {$missing: true}}}", "5:18 state: 'page' is always missing"),
        ("mesh", "hooks: [my.Hook]", "5:9 'my.Hook' does nothing: leafmesh has no hooks"),
    ],
)  # fmt: skip
def test_a_name_that_stands_nowhere_is_a_warning(told: Told, dialect: str, keys: str, expected: str) -> None:
    (found,) = told(dialect, keys)
    assert found.startswith(f"warning {expected}")


@pytest.mark.parametrize(
    ("dialect", "keys"),
    [
        ("sherma", "expect: {state: {messages: [{tool_calls: {$missing: true}}], use_tools: {$any: true}}}"),
        ("sherma", "expect: {output: {q: {$missing: true}}}"),  # it stands in the code beside the manifest
        ("sherma", "input: {reply_to: x}, expect: {state: {reply_to: {$missing: true}}}"),
        ("mesh", "llm: [{json: {mood: good}}], expect: {checks: [{that: '!has(state.mood)'}]}"),
        ("sherma", "expect: {state_schema: {required: [msesages], properties: {msesages: {}}}}"),
        ("sherma", "expect: {checks: [{that: 'calls.all(c, c.kind != \"tool\" || c.name == \"find\")'}]}"),
        ("sherma", "expect: {checks: [{that: '!calls.exists(c, c.name == \"http://shop/x\")'}]}"),
        ("sherma", "env: {OPENAI_BASE_URL: 'http://m'}"),
    ],
)  # fmt: skip
def test_a_name_that_stands_somewhere(told: Told, dialect: str, keys: str) -> None:
    assert told(dialect, keys) == []


def test_an_expected_call_that_only_a_run_knows_is_told_by_the_run(told: Told) -> None:
    assert told("sherma", "mcp: {shop: real}, expect: {calls: [{mcp: buy}]}") == []


def test_a_stub_that_need_not_be_used_may_have_any_name(told: Told) -> None:
    (found,) = told("sherma", "tools: {fnid: {return: 1}}, allow_unused: true")
    assert found.startswith("warning ")


SHARED = """\
harness: 1
manifest: manifest.yaml
defaults: {tools: {find: {return: 1}, packing: {return: 1}}, allow_unused: false}
scenarios:
  - {name: x}
  - {name: y, manifest: other.yaml}
"""


def test_what_scenarios_share_need_only_fit_one_of_them(told: Told, tmp_path: Path) -> None:
    told("sherma", "seed: 1")
    (tmp_path / "other.yaml").write_text(SHERMA.replace("id: find", "id: packing"))
    file = tmp_path / "shared.scenario.yaml"

    def problems() -> list[str]:
        scenario = load_file(file).scenarios[0]
        graph = load_graph(load_request(scenario, Settings()), scenario.dialect)
        return [problem.message for problem in unknown_names(scenario, graph, Settings())]

    file.write_text(SHARED)
    assert problems() == []
    file.write_text(SHARED.replace("packing", "pakcing"))
    assert problems() == ["tools names 'pakcing', but 'desk' has no such tool"]


def test_rows_of_a_table_do_not_share_what_is_filled_from_them(told: Told, tmp_path: Path) -> None:
    told("sherma", "cases: [{n: ask}, {n: aks}], expect: {never: ['${case.n}']}")
    first, second = load_file(tmp_path / "a.scenario.yaml").scenarios
    graph = load_graph(load_request(first, Settings()), first.dialect)
    assert unknown_names(first.whole(), graph, Settings()) == []
    (problem,) = unknown_names(second.whole(), graph, Settings())
    assert problem.message == "never names 'aks', but 'desk' has no such node"


@pytest.mark.parametrize("other", ["absent.yaml", "other.yaml, expect: {status: invalid}"])
def test_a_stub_may_be_meant_for_a_scenario_whose_manifest_is_refused(
    told: Told, tmp_path: Path, other: str
) -> None:
    told("sherma", "seed: 1")
    (tmp_path / "other.yaml").write_text("agents: {}")
    file = tmp_path / "shared.scenario.yaml"
    shared = SHARED.replace("other.yaml", other).replace("defaults: {", "defaults: {expect: {never: [aks]}, ")
    file.write_text(shared)
    scenario = load_file(file).scenarios[0]
    graph = load_graph(load_request(scenario, Settings()), scenario.dialect)
    (problem,) = unknown_names(scenario, graph, Settings())
    assert problem.message == "never names 'aks', but 'desk' has no such node"


def test_a_row_that_does_not_fit_is_an_error_of_its_run(told: Told, tmp_path: Path) -> None:
    told("sherma", "cases: [{p: [ask]}, {p: 3}], pass_score: 0, expect: {path: '${case.p}'}")
    (outcome,) = run_scenario(load_file(tmp_path / "a.scenario.yaml").scenarios[1])
    error: Any = outcome.observed.error
    assert (outcome.verdict, outcome.score, error["code"]) == ("error", 0, "wrong-type")


def test_a_run_with_such_a_name_is_an_error_before_anything_runs(told: Told, tmp_path: Path) -> None:
    told("sherma", "mcp: {shop: {tools: []}}, llm: [hi], pass_score: 0, expect: {never: [aks]}")
    (outcome,) = run_scenario(load_file(tmp_path / "a.scenario.yaml").scenarios[0])
    error: Any = outcome.observed.error
    assert (outcome.verdict, outcome.observed.path, error["code"]) == ("error", [], "unknown-name")
    assert error["where"].endswith("a.scenario.yaml:5:70")


def test_a_warning_about_a_name_stands_in_the_results(told: Told, tmp_path: Path) -> None:
    told(
        "sherma",
        "llm: [hi], mcp: {shop: {tools: []}}, tools: {find: real}, expect: {never_calls: [{llm: o}]}",
    )
    (outcome,) = run_scenario(load_file(tmp_path / "a.scenario.yaml").scenarios[0])
    assert outcome.verdict == "passed"
    assert any("never_calls names 'o'" in text for text in outcome.observed.warnings)
