"""Exploration finds planted defects in small agents of several dialects, and nothing in sound ones."""

# ruff: noqa: E501
import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from harness.dialects.load import load_graph
from harness.explore.attempt import Attempts, Plan
from harness.explore.coverage import suite
from harness.explore.draw import Draw
from harness.explore.drawn import KINDS_OF_FAULTS, Drawn
from harness.explore.exploration import NO_HANDLING, Explored, explore
from harness.explore.mining import Mined
from harness.explore.search import Cover
from harness.explore.subject import of_manifest
from harness.explore.written import Material, keys_of
from harness.graph.effects import HumanCall, LLMCall, MCPEndpoint, ToolSpec
from harness.graph.model import Declared
from harness.scenario.load import load_file
from harness.scenario.model import load_request
from harness.scenario.outcome import Outcome
from harness.scenario.run import run_scenario
from harness.settings import Projects, Settings

SHERMA = """
manifest_version: 1
llms: [{id: m, version: "1.0.0", provider: openai, model_name: gpt-4o-mini}]
default_llm: {id: m}
agents:
  desk:
    state: {fields: [{name: messages, type: list, default: []}, %s]}
    graph: {entry_point: read, nodes: [%s], edges: [%s]}
"""
READ = (
    "{name: read, type: call_llm, args: {prompt: [{role: messages, content: state.messages}], "
    "response_format: {name: r, schema: {type: object, properties: {%s}, required: [%s]}}, "
    "state_updates: {found: json(llm_response.content)}}, on_error: {fallback: sorry}}, "
    "{name: sorry, type: set_state, args: {values: {said: '\"sorry\"'}}}, "
    "{name: act, type: set_state, args: {values: {said: '%s'}}}"
)
TO_ACT = "{source: read, branches: [{condition: '%s', target: act}], default: sorry}"
FIELDS = "{name: found, type: dict, default: {}}, {name: said, type: str, default: ''}"
COUNTS = "total: {type: integer, minimum: 0}, people: {type: integer, minimum: 0}"
COUNTER = "{name: n, type: int%s}"


def sherma(properties: str, required: str, act: str, when: str, fields: str = "") -> str:
    """Return an agent that reads a reply with a schema, and acts on some replies."""
    return SHERMA % (FIELDS + fields, READ % (properties, required, act), TO_ACT % when)


def writer(bound: str, fallback: str = "") -> str:
    """Return an agent that writes until a reply is `good`."""
    call = "args: {prompt: [{role: messages, content: state.messages}], state_updates: {text: llm_response.content, n: state.n + 1}}"
    nodes = f"{{name: read, type: call_llm, {call}{fallback}}}, {{name: end, type: set_state, args: {{values: {{n: '0'}}}}}}"
    edge = f"{{source: read, branches: [{{condition: 'state.text != \"good\"{bound}', target: read}}], default: end}}"
    return SHERMA % ("{name: text, type: str, default: ''}, {name: n, type: int, default: 0}", nodes, edge)


YAGRA = """
version: "1.0"
start_at: sort
end_at: [pay, ask]
state_schema: {mail: {type: str}, kind: {type: str}, text: {type: str}, __next__: {type: str}}
nodes:
  - {id: sort, handler: llm, params: {prompt_ref: "prompts.yaml#sort", model: {provider: openai, name: m}%s}
  - {id: pay, handler: pay}
  - {id: ask, handler: ask}
edges: [%s]
"""
PROMPTS = 'sort: {system: Sort., user: "{mail}"}\n'
LOKI = """
name: shop
version: "1.0"
model: anthropic:claude-sonnet-4-6
start: find
nodes:
  find:
    type: llm
    prompt: "{{initial_prompt}}"
    output_schema:
      type: object
      properties: {items: {type: array, items: {type: string}%s}}
      required: [items]
    fallback: lost
    next: sold
  sold: {type: end, output: "{{items[0]}}"}
  lost: {type: end, output: nothing}
"""
MESH = """
name: mesh
version: "1.0.0"
manager: {model: gpt-4o-mini}
entry_points: [{name: order, target: intake}]
agents:
  intake:
    agent_type: llm
    model: gpt-4o-mini
    prompt: Read.
    yields: {count: number}
    can_call:
      - agent: kiln
      - {agent: discount, condition: "calling_agent_response.count >= 20"}
  kiln: {agent_type: llm, model: gpt-4o-mini, prompt: Days.}
  discount: {agent_type: llm, model: gpt-4o-mini, prompt: Percent.}
  quote: {agent_type: llm, model: gpt-4o-mini, prompt: Offer., wait_for: "kiln AND discount%s", wait_for_timeout: 60}
"""
FLOW = """
agentspec_version: 25.4.1
component_type: Flow
name: flow
start_node: {$component_ref: start}
nodes: [{$component_ref: start}, {$component_ref: sort}, {$component_ref: choose}, {$component_ref: find}, {$component_ref: tell}, {$component_ref: end}]
control_flow_connections:
  - {component_type: ControlFlowEdge, name: a, from_node: {$component_ref: start}, to_node: {$component_ref: sort}}
  - {component_type: ControlFlowEdge, name: b, from_node: {$component_ref: sort}, to_node: {$component_ref: choose}}
  - {component_type: ControlFlowEdge, name: c, from_node: {$component_ref: choose}, from_branch: lost, to_node: {$component_ref: find}}
  - {component_type: ControlFlowEdge, name: d, from_node: {$component_ref: choose}, from_branch: default, to_node: {$component_ref: %s}}
  - {component_type: ControlFlowEdge, name: e, from_node: {$component_ref: find}, to_node: {$component_ref: tell}}
  - {component_type: ControlFlowEdge, name: f, from_node: {$component_ref: tell}, to_node: {$component_ref: end}}
data_flow_connections:
  - {component_type: DataFlowEdge, name: g, source_node: {$component_ref: sort}, source_output: generated_text, destination_node: {$component_ref: choose}, destination_input: kind}
  - {component_type: DataFlowEdge, name: h, source_node: {$component_ref: find}, source_output: place, destination_node: {$component_ref: tell}, destination_input: place}
$referenced_components:
  start: {component_type: StartNode, name: start}
  sort: {component_type: LlmNode, name: sort, llm_config: {component_type: OpenAiConfig, name: m, model_id: m}, prompt_template: Sort.}
  choose: {component_type: BranchingNode, name: choose, inputs: [{title: kind, type: string}], mapping: {lost: lost}}
  find: {component_type: ToolNode, name: find, tool: {component_type: ServerTool, name: find, outputs: [{title: place, type: string}]}}
  tell: {component_type: OutputMessageNode, name: tell, message: "In {{place}}."}
  end: {component_type: EndNode, name: end}
"""
LABELLED = "{source: sort, target: pay, condition: pay}, {source: sort, target: ask, condition: ask}"
RUNS = 96

PLANTED = {
    "missing default": ("w.yaml", sherma("kind: {type: string}", "kind", "\"late\"', n: 'state.n + 1", 'state.found.kind == "complaint"', ", " + COUNTER % ""), "crash", "act"),
    "optional key read": ("w.yaml", sherma("kind: {type: string}, why: {type: string}", "kind", "state.found.why", 'state.found.kind == "reject"'), "crash", "act"),
    "division": ("w.yaml", sherma(COUNTS, "total, people", "string(state.found.total / state.found.people)", "state.found.total > 0"), "crash", "act"),
    "empty list": ("w.yaml", sherma("sure: {type: boolean}, items: {type: array, items: {type: string}}", "sure, items", "state.found.items[0]", "state.found.sure"), "crash", "act"),
    "wrong type": ("w.yaml", sherma("kind: {type: string}, stars: {type: string}", "kind, stars", 'state.found.stars < 3 ? "bad" : "good"', 'state.found.kind == "food"'), "crash", "act"),
    "unbounded loop": ("w.yaml", writer(""), "endless", "read"),
    "type of the state": ("w.yaml", sherma("kind: {type: string}", "kind", "5", 'state.found.kind == "count"'), "schema", "said"),
    "no default": ("w.yaml", YAGRA % ("}", LABELLED), "crash", "sort"),
    "unhandled fault": (
        "w.yaml",
        sherma("kind: {type: string}", "kind", "", 'state.found.kind != "order"').replace(
            "type: set_state, args: {values: {said: ''}}",
            "type: call_llm, args: {prompt: [{role: messages, content: state.messages}], state_updates: {said: llm_response.content}}",
        ),
        "unhandled-fault",
        "act",
    ),
    "empty list in a template": ("graph.yaml", LOKI % "", "crash", "sold"),
    "join that never fires": ("config.yaml", MESH % "", "crash", "quote"),
    "value on one branch": ("w.yaml", FLOW % "tell", "crash", "tell"),
}  # fmt: skip

SOUND = {
    "default": ("w.yaml", sherma("kind: {type: string}", "kind", "\"late\"', n: 'state.n + 1", 'has(state.found.kind) && state.found.kind == "complaint"', ", " + COUNTER % ", default: 0")),
    "guarded": ("w.yaml", sherma(COUNTS, "total, people", "string(state.found.total / state.found.people)", "has(state.found.total) && has(state.found.people) && state.found.people > 0")),
    "bounded loop": ("w.yaml", writer(" && state.n < 8", ", on_error: {retry: {max_attempts: 2, strategy: fixed, delay: 1}, fallback: end}")),
    "default of a list": ("graph.yaml", LOKI.replace("start:", "initial_state: {items: [nothing]}\nstart:") % ", minItems: 1"),
    "no value needed": ("w.yaml", FLOW % "end"),
}  # fmt: skip


def run_file(file: Path) -> list[Outcome]:
    """Run the scenarios of a file."""
    return [made for each in load_file(file, Settings()).scenarios for made in run_scenario(each, Settings())]


def explored(folder: Path, name: str, text: str, runs: int, **plan: Any) -> Explored:
    """Explore a manifest with seed 0."""
    (folder / "prompts.yaml").write_text(PROMPTS, encoding="utf-8")
    (folder / name.partition(":")[0]).write_text(text, encoding="utf-8")
    projects = Projects()
    manifest = folder if name == "graph.yaml" else folder / name
    [subject] = of_manifest(manifest, None, projects)
    return explore(
        subject,
        Plan(runs=runs, seconds=None, seed=0, faults=KINDS_OF_FAULTS, **plan),
        projects,
        folder,
        out=folder / "found",
        cover=None,
        watch=lambda _subject, _merged: None,
    )


@pytest.mark.parametrize("defect", PLANTED)
def test_a_planted_defect_is_found_and_its_scenario_fails(defect: str, tmp_path: Path) -> None:
    name, text, kind, node = PLANTED[defect]
    done = explored(tmp_path, name, text, RUNS)
    found = {finding.file: finding.breach for finding in done.findings}
    assert (kind, True) in [(breach.type, node in breach.cause) for breach in found.values()], found
    assert all(breach.where for breach in found.values()), found
    for file in found:
        [outcome] = run_file(file)
        assert outcome.verdict == "failed"


@pytest.mark.parametrize("name", SOUND)
def test_nothing_is_found_in_a_sound_agent(name: str, tmp_path: Path) -> None:
    done = explored(tmp_path, *SOUND[name], RUNS)
    assert [finding.breach for finding in done.findings] == []


def test_a_drawn_text_that_the_manifest_has_does_not_split_a_finding(tmp_path: Path) -> None:
    done = explored(tmp_path, "w.yaml", YAGRA % ("}", LABELLED), 120)
    assert len(done.findings) == 1


CATCHES_ALL = """
import asyncio
from langchain.chat_models import init_chat_model
async def run(input: str) -> str:
    calls = [init_chat_model("openai:m").ainvoke(input)]
    return str(await asyncio.gather(*calls, return_exceptions=True))
"""


class Stop(BaseException):
    pass


def test_what_ends_the_drawing_reaches_the_search_through_code_that_catches_all(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(CATCHES_ALL, encoding="utf-8")
    [subject] = of_manifest(tmp_path / "app.py:run", None, Projects())
    graph = load_graph(load_request(subject.scenario, subject.settings), subject.scenario.dialect)
    attempts = Attempts(subject.scenario, subject.settings, graph, Plan(1, None, 0, ()))
    left = ["input", "word", "turns", "stubborn", "kind of the reply", "word"]

    def choose(_below: int) -> int:
        if left.pop(0) == "kind of the reply":
            raise Stop
        return 0

    with pytest.raises(Stop):
        attempts.make(choose)
    assert left == ["word"]


SCRIPTS = """
name: mesh
version: "1.0.0"
entry_points: [{name: order, target: intake}]
agents:
  intake: {agent_type: programmatic, yields: {count: number}, can_call: [{agent: pack, condition: "count > 3"}]}
  pack: {agent_type: programmatic}
"""


def test_agents_without_code_are_drawn_and_written(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(SCRIPTS, encoding="utf-8")
    [subject] = of_manifest(tmp_path / "m.yaml", None, Projects())
    cover = tmp_path / "m.scenario.yaml"
    plan = Plan(runs=32, seconds=None, seed=0, faults=())

    done = explore(*(subject, plan, Projects(), tmp_path), out=tmp_path, cover=cover, watch=lambda *_: None)

    assert done.coverage["nodes"] == [2, 2]
    assert [outcome.verdict for outcome in run_file(cover)] == ["passed"] * len(done.covered)
    text = cover.read_text(encoding="utf-8")
    assert "intake: {return: {count: " in text
    assert "turns" not in text


SHIPPING = """
name: mesh
version: "1.0.0"
entry_points: [{name: order, target: ship}]
agents:
  ship: {agent_type: programmatic, integration: n8n, connector_config: {webhook_url: "http://ships.example/ask", mode: callback}}
"""


def test_a_bad_status_is_no_finding_where_nothing_handles_any_fault(tmp_path: Path) -> None:
    quiet = explored(tmp_path, "m.yaml", SHIPPING, 32)
    asked = explored(tmp_path, "m.yaml", SHIPPING, 32, faults_given=True)

    assert (quiet.findings, quiet.notes) == ([], [NO_HANDLING])
    assert {finding.breach.type for finding in asked.findings} == {"unhandled-fault"}


NEVER = ', pattern: "^a$", minLength: 5'
"""The rest of a schema of texts that no text is valid under."""


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ((FLOW % "end").replace("{title: place, type: string}", f"{{title: place, type: string{NEVER}}}"), "tool 'find': "),
        ((FLOW % "end").replace("start: {component_type: StartNode, name: start}", f"start: {{component_type: StartNode, name: start, inputs: [{{title: code, type: string{NEVER}}}]}}"), "the input: "),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_named(tmp_path: Path, text: str, named: str) -> None:
    [problem] = explored(tmp_path, "w.yaml", text, 64).problems
    assert problem.startswith(f"an effect cannot be drawn: {named}no value can be drawn for the schema")


def test_answers_of_a_first_suite_are_short_words(tmp_path: Path) -> None:
    fields = "".join(f", {{title: {name}, type: string}}" for name in ("street", "city", "lender", "shelf"))
    text = (FLOW % "end").replace("{title: place, type: string}", f"{{title: place, type: string}}{fields}")
    (tmp_path / "w.yaml").write_text(text, encoding="utf-8")
    [subject] = of_manifest(tmp_path / "w.yaml", None, Projects())
    plan, cover = Plan(runs=160, seconds=None, seed=0, faults=()), tmp_path / "w.scenario.yaml"

    done = explore(*(subject, plan, Projects(), tmp_path), out=tmp_path, cover=cover, watch=lambda *_: None)

    [found] = [keys["tools"]["find"]["return"] for keys in done.covered if "tools" in keys]
    assert all(0 < len(word) < 10 for word in found.values()), found


def test_a_server_whose_tools_nobody_declares_cannot_be_drawn() -> None:
    drawn = Drawn(Draw(lambda _below: 0, Mined(), Declared()))
    drawn.session(MCPEndpoint(id="tides", transport="stdio"))
    assert drawn.problem == "the tools of the MCP server 'tides' are not declared"


def test_what_ran_for_real_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(SCRIPTS, encoding="utf-8")
    [subject] = of_manifest(tmp_path / "m.yaml", None, Projects())
    call = {
        "event": "call",
        "call": 1,
        "kind": "tool",
        "name": "find",
        "node": "act",
        "request": {"args": {}},
    }
    events = [call, {"event": "answer", "call": 1, "ok": True, "latency": 0.0, "value": "here"}]

    assert keys_of(Material(events, set()), subject.scenario, {}) == {}
    assert keys_of(Material(events, {("tool", "find")}), subject.scenario, {}) == {
        "tools": {"find": {"return": "here"}}
    }


ASKS_TWICE = """
name: mesh
version: "1.0.0"
manager: {model: m}
entry_points: [{name: order, target: intake}]
agents:
  intake: {agent_type: programmatic, can_call: [{agent: pack}, {agent: label}]}
  label: {agent_type: programmatic, can_call: [{agent: pack}]}
  pack: {agent_type: llm, model: m, prompt: Pack., yields: {weight: number, size: number, why: string}}
"""


def test_a_scenario_of_a_first_suite_ends_as_its_run_did(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(ASKS_TWICE, encoding="utf-8")
    [subject] = of_manifest(tmp_path / "m.yaml", None, Projects())
    attempts = Attempts(subject.scenario, subject.settings, subject.graph, Plan(1, None, 0, ()))
    run = attempts.make(Random(1).randrange)
    cover = Cover(0, run.features, run.material, run.size)

    [keys] = suite([cover], subject, tmp_path / "m.scenario.yaml")

    assert run.result.observed.path == ["intake", "pack", "label", "pack"]
    assert len(keys["llm"]["pack"]) == 2  # without the second reply, the same is taken, and the run fails
    assert keys["expect"].get("status") is None


READS = """
name: mesh
version: "1.0.0"
manager: {model: m}
auto_discover: {enabled: true, directory: agency}
entry_points: [{name: desk, target: clerk}]
agents:
  clerk: {agent_type: llm, model: m, prompt: Sort., can_call: [{agent: refund, condition: "kind == 'refund'"}]}
  refund: {agent_type: programmatic}
"""
CLERK = """
def clerk(llm_response, input_data, context):
    return {"kind": llm_response["kind"].lower()}
"""


def test_a_model_replies_with_what_the_function_of_its_agent_reads(tmp_path: Path) -> None:
    (tmp_path / "agency").mkdir()
    (tmp_path / "agency" / "clerk_agent.py").write_text(CLERK, encoding="utf-8")

    done = explored(tmp_path, "m.yaml", READS, 64)

    assert done.coverage["nodes"] == [2, 2]


TWO_ENTRIES = """
name: mesh
version: "1.0.0"
entry_points: [{name: order, target: intake}, {name: parcel, target: pack}]
agents:
  intake: {agent_type: programmatic, can_call: [{agent: label}]}
  label: {agent_type: programmatic}
  pack: {agent_type: programmatic}
"""


def test_what_another_entry_point_leads_to_counts_for_that(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(TWO_ENTRIES, encoding="utf-8")
    plan, out = Plan(runs=8, seconds=None, seed=0, faults=()), tmp_path / "found"

    done = [
        explore(*(subject, plan, Projects(), tmp_path), out=out, cover=None, watch=lambda *_: None)
        for subject in of_manifest(tmp_path / "m.yaml", None, Projects())
    ]

    assert [(each.coverage["nodes"], each.unreached) for each in done] == [([2, 2], []), ([1, 1], [])]


REVIEWED = """\
from typing import TypedDict
from langgraph.graph import StateGraph
from langgraph.types import interrupt

class State(TypedDict, total=False):
    done: str

def ask(state):
    action = {"name": "pay", "args": {"amount": 3}}
    config = {"action_name": "pay", "allowed_decisions": ["approve", "edit", "respond"]}
    [decision] = interrupt({"action_requests": [action], "review_configs": [config]})["decisions"]
    edited = decision.get("edited_action", action)
    assert edited == action and decision["type"] in ("approve", "respond"), decision["type"]
    return {"done": decision.get("message", "paid")}

graph = StateGraph(State).add_node(ask).set_entry_point("ask").compile()
"""


def test_people_approve_edit_and_respond_where_they_may(tmp_path: Path) -> None:
    done = explored(tmp_path, "app.py:graph", REVIEWED, 64)
    assert [finding.breach.cause.rpartition(": ")[2] for finding in done.findings] == ["edit"]


def test_a_question_that_only_looks_like_a_review_is_answered_like_any_other(tmp_path: Path) -> None:
    asking = 'def ask(state):\n    interrupt({"action_requests": ["pay"], "review_configs": ["pay"]})\n'
    app = REVIEWED[: REVIEWED.index("def ask")] + asking + REVIEWED[REVIEWED.index("\ngraph =") :]
    assert explored(tmp_path, "app.py:graph", app, 16).findings == []


def test_an_edit_has_arguments_that_are_valid_for_the_tool() -> None:
    schema = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
    config = {"action_name": "pay", "allowed_decisions": ["edit"]}
    action = {"name": "pay", "args": {"amount": 3}}
    question = {"action_requests": [action], "review_configs": [config]}
    random = Random(0)
    drawn = Drawn(Draw(random.randrange, Mined(), Declared()))

    async def edited() -> list[Any]:
        await drawn.answer(LLMCall(node="a", name="m", tools=[ToolSpec("pay", "Pays.", schema)]), {})
        for _ in range(5):
            await drawn.answer(HumanCall(node="a", name="a", args={"value": question}), {})
        answers = [answer["reply"] for answer in drawn.answers[1:] if "reply" in answer]
        return [each["edited_action"] for answer in answers for each in answer["decisions"]]

    found = asyncio.run(edited())
    assert {each["name"] for each in found} == {"pay"}
    assert len({each["args"]["amount"] for each in found}) > 1
    assert all(isinstance(each["args"]["amount"], int) for each in found)
