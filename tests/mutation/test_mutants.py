"""The mutants that each operator makes of a document, by dialect, and the changes in compiled graphs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.cli.mutate import OPERATORS
from harness.graph.faults import Fault, with_faults
from harness.graph.model import Channel, Graph, Node, Update
from harness.mutation.dialects import changes_of
from harness.mutation.operators import Change
from harness.mutation.places import Place, lines_of, places
from harness.source.document import Document, parse
from harness.source.edited_files import EditedDocuments
from harness.source.yaml import Version

SHERMA = """\
llms: [{id: fast, model_name: gpt-4o}]
agents:
  a:
    state: {fields: [{name: n, default: 1}]}
    langgraph_config: {recursion_limit: 5}
    graph:
      nodes:
        - name: ask
          type: call_llm
          args: {tools: [{id: find}], response_format: {name: x}, state_updates: {n: "1"}}
          on_error: {retry: {max_attempts: 2}, fallback: stop}
        - {name: stop, type: interrupt, args: {value: "1"}}
      edges:
        - source: ask
          branches: [{condition: n == 1, target: one}, {condition: n == 2, target: two}]
          default: stop
"""
AGENTSPEC = """\
component_type: Flow
name: f
nodes:
  - {component_type: BranchingNode, name: choose, mapping: {a: left, b: right}}
  - {component_type: EndNode, name: end, outputs: [{title: kind, type: string}]}
control_flow_connections:
  - {component_type: ControlFlowEdge, name: c1, from_node: {$component_ref: x}, to_node: {$component_ref: y}}
data_flow_connections: []
$referenced_components:
  x: {component_type: StartNode, name: begin}
  y:
    component_type: Agent
    name: agent
    tools: [{component_type: ServerTool, name: find}]
    llm_config: {model_id: m}
"""
YAGRA = """\
nodes:
  - id: ask
    handler: llm
    params: {model: {name: m, kwargs: {temperature: 0}}, output_key: reply}
    retry: {max_attempts: 2}
    timeout_seconds: 5
    fallback: other
edges: [{source: ask, target: one, condition: a}, {source: ask, target: two, condition: b}]
interrupt_before: [ask]
"""
LOKI = """\
initial_state: {n: one}
settings: {max_loop_iterations: 3}
temperature: 0.2
nodes:
  ask: {type: llm, tools: [find], max_attempts: 2, fallback: end, next: sign, state_updates: {n: "{{output}}"}}
  sign: {type: approval, routes: {yes: end, no: ask}, on_other: ask}
  end: {type: end, output: "{{n}}"}
"""
LOKI_SIDE_BY_SIDE = """\
settings: {max_concurrency: 2}
reducers: {n: append}
nodes:
  ask: {type: llm, enabled_skills: [charts], next: [one, two]}
"""
AGENTSPEC_TEAM = """\
component_type: Swarm
name: desk
handoff: always
first_agent: {$component_ref: clerk}
relationships: [[{$component_ref: clerk}, {$component_ref: group}]]
$referenced_components:
  clerk:
    component_type: Agent
    name: clerk
    llm_config: {component_type: LlmConfig, name: m, model_id: m, retry_policy: {max_attempts: 2}}
    tools: [{component_type: RemoteTool, name: t, requires_confirmation: true, url_allow_list: [u]}]
    toolboxes: [{component_type: MCPToolBox, name: box}]
    transforms: [{component_type: MessageSummarizationTransform, name: short}]
  group: {component_type: ManagerWorkers, name: group, workers: [{component_type: Agent, name: mason}]}
"""
LEAFMESH = """\
agents:
  ask:
    model: m
    temperature: 0.1
    wait_for_timeout: 5
    yields: {kind: string}
    can_call: [{agent: one, condition: kind == 'a'}, {agent: two}]
"""
EXPECTED: Mapping[str, tuple[str, Version, str]] = {
    "sherma": (
        SHERMA,
        "scalar-keys",
        """
        route agents/a/graph/edges/ask/branches/one/condition negated ask
        route agents/a/graph/edges/ask/branches/two/condition negated ask
        route agents/a/graph/edges/ask/branches/one/target swapped ask
        route agents/a/graph/edges/ask/branches/two/target swapped ask
        route agents/a/graph/edges/ask/branches/one dropped ask
        route agents/a/graph/edges/ask/branches/two dropped ask
        route agents/a/graph/edges/ask/default dropped ask
        route agents/a/graph/edges/ask dropped ask
        route agents/a/graph/edges/ask/branches order-1 ask
        state agents/a/graph/nodes/ask/args/state_updates/n dropped ask
        state agents/a/state/fields/n/default changed -
        call agents/a/graph/nodes/ask/args/tools/find dropped ask
        call agents/a/graph/nodes/ask/args/response_format dropped ask
        call llms/fast/model_name other -
        guard agents/a/graph/nodes/ask/on_error dropped ask
        guard agents/a/graph/nodes/ask/on_error/retry dropped ask
        guard agents/a/graph/nodes/ask/on_error/fallback dropped ask
        guard agents/a/graph/nodes/ask/on_error/retry/max_attempts raised ask
        guard agents/a/langgraph_config/recursion_limit raised -
        guard agents/a/graph/nodes/stop dropped stop
        """,
    ),
    "agentspec": (
        AGENTSPEC,
        "1.1",
        """
        route nodes/choose/mapping/a swapped choose
        route nodes/choose/mapping/a dropped choose
        route nodes/choose/mapping/b dropped choose
        route control_flow_connections/c1 dropped begin
        call $referenced_components/y/tools/find dropped -
        call $referenced_components/y/tools/find/name renamed -
        call $referenced_components/y/llm_config/model_id other -
        output nodes/end/outputs/kind dropped end
        output nodes/end/outputs/kind/title renamed end
        """,
    ),
    "yagra": (
        YAGRA,
        "scalar-keys",
        """
        route edges/ask/target swapped ask
        route edges/ask dropped ask
        route edges/ask dropped ask
        route edges/ask/condition dropped ask
        route edges/ask/condition dropped ask
        call nodes/ask/params/model/name other ask
        call nodes/ask/params/model/kwargs/temperature dropped ask
        guard nodes/ask/retry dropped ask
        guard nodes/ask/timeout_seconds dropped ask
        guard nodes/ask/fallback dropped ask
        guard nodes/ask/retry/max_attempts raised ask
        guard nodes/ask/timeout_seconds raised ask
        guard interrupt_before/ask dropped ask
        output nodes/ask/params/output_key renamed ask
        output nodes/ask/params/output_key dropped ask
        """,
    ),
    "loki": (
        LOKI,
        "1.2",
        """
        route nodes/sign/routes/yes swapped sign
        route nodes/sign/routes/yes dropped sign
        route nodes/sign/routes/no dropped sign
        route nodes/ask/next dropped ask
        state nodes/ask/state_updates/n dropped ask
        state initial_state/n changed -
        call nodes/ask/tools/find dropped ask
        call temperature dropped -
        guard nodes/ask/fallback dropped ask
        guard nodes/ask/max_attempts raised ask
        guard settings/max_loop_iterations raised -
        output nodes/end/output dropped end
        """,
    ),
    "loki side by side": (
        LOKI_SIDE_BY_SIDE,
        "1.2",
        """
        route nodes/ask/next dropped ask
        route nodes/ask/next/one dropped ask
        route nodes/ask/next/two dropped ask
        state reducers/n dropped -
        call nodes/ask/enabled_skills/charts dropped ask
        guard settings/max_concurrency raised -
        """,
    ),
    "agentspec team": (
        AGENTSPEC_TEAM,
        "1.1",
        """
        call $referenced_components/clerk/tools/t dropped -
        call $referenced_components/clerk/tools/t/name renamed -
        call $referenced_components/clerk/llm_config/model_id other -
        route relationships/0 dropped -
        route $referenced_components/group/workers/mason dropped -
        route handoff dropped -
        call $referenced_components/clerk/toolboxes/box dropped -
        call $referenced_components/clerk/transforms/short dropped -
        guard $referenced_components/clerk/llm_config/retry_policy dropped -
        guard $referenced_components/clerk/tools/t/requires_confirmation dropped -
        guard $referenced_components/clerk/tools/t/url_allow_list dropped -
        guard $referenced_components/clerk/llm_config/retry_policy/max_attempts raised -
        """,
    ),
    "leafmesh": (
        LEAFMESH,
        "templated",
        """
        route agents/ask/can_call/one/condition negated ask
        route agents/ask/can_call/one/agent swapped ask
        route agents/ask/can_call/one dropped ask
        route agents/ask/can_call/two dropped ask
        route agents/ask/can_call/one/condition dropped ask
        route agents/ask/can_call order-1 ask
        call agents/ask/temperature dropped ask
        call agents/ask/model other ask
        guard agents/ask/wait_for_timeout dropped ask
        output agents/ask/yields/kind dropped ask
        output agents/ask/yields/kind renamed ask
        """,
    ),
}


def changes(document: Document, dialect: str) -> list[tuple[str, Place, Change]]:
    return [*changes_of(document, dialect.partition(" ")[0])]


@pytest.mark.parametrize("dialect", EXPECTED)
def test_the_mutants_of_a_document(dialect: str) -> None:
    text, yaml, expected = EXPECTED[dialect]
    found = [
        f"{operator} {'/'.join(place.names())} {change.name} {place.owner or '-'}"
        for operator, place, change in changes(parse(text, file="m.yaml", yaml=yaml), dialect)
    ]
    assert sorted(found) == sorted(line.strip() for line in expected.strip().splitlines())
    assert {each.partition(" ")[0] for each in found} <= {*OPERATORS}


@pytest.mark.parametrize("dialect", EXPECTED)
def test_each_diff_is_of_the_change_that_is_made(dialect: str, tmp_path: Path) -> None:
    from jsonpatch import apply_patch

    text, yaml, _ = EXPECTED[dialect]
    file, document = tmp_path / "m.yaml", parse(text, file="m.yaml", yaml=yaml)
    file.write_text(text)
    for _, place, change in changes(document, dialect):
        files = EditedDocuments(yaml)
        assert all(edit.apply(files, file) for edit in change.edits), (place.names(), change.name)
        diff = files.files.patch(tmp_path)
        assert diff.startswith("--- a/m.yaml\n+++ b/m.yaml\n"), (place.names(), change.name)
        assert parse(patched(text, diff), file="m.yaml", yaml=yaml).value == apply_patch(
            document.value, [dict(edit.as_patch()) for edit in change.edits]
        )


def patched(text: str, diff: str) -> str:
    """Apply a unified diff."""
    old, new = text.splitlines(keepends=True), list[str]()
    at = 0
    for line in diff.splitlines(keepends=True)[2:]:
        if line.startswith("@@"):
            start = int(line.split()[1].lstrip("-").partition(",")[0]) - 1
            new, at = [*new, *old[at:start]], start
        elif line.startswith("+"):
            new.append(line[1:])
        elif line[0] in " -":
            new += [old[at]] if line[0] == " " else []
            at += 1
    return "".join([*new, *old[at:]])


def test_the_part_of_a_place_is_what_its_owner_is_written_in() -> None:
    document = parse(SHERMA, file="m.yaml", yaml="scalar-keys")
    (place,) = places(document, "agents/*/graph/nodes/*@name/args/tools/*")
    assert lines_of(document, place) == (8, 11)


async def two(_state: Mapping[str, Any], _ctx: Any) -> Update:
    return Update({"items": ["b"], "n": 2})


GRAPH = Graph(
    name="g",
    dialect="sherma",
    nodes=(Node("two", "set_state", two),),
    edges=(),
    channels=(Channel("items", lambda old, new: [*old, *new], list), Channel("n")),
)


@pytest.mark.parametrize(
    ("fault", "values"),
    [
        (Fault("skip", "two"), {}),
        (Fault("twice", "two"), {"items": ["b", "b"], "n": 2}),
        (Fault("drop", "two", "n"), {"items": ["b"]}),
        (Fault("skip", "other"), {"items": ["b"], "n": 2}),
    ],
)
def test_faults_of_nodes(fault: Fault, values: dict[str, Any]) -> None:
    (node,) = with_faults(GRAPH, [fault]).nodes

    async def update() -> Update:
        return await node.run({"items": ["a"], "n": 1}, None)

    assert asyncio.run(update()).values == values


def test_faults_of_fields() -> None:
    merged, plain = with_faults(GRAPH, [Fault("overwrite", "items"), Fault("append", "n")]).channels
    assert merged.reducer is not None
    assert merged.reducer(["a"], ["b"]) == ["b"]
    assert plain.reducer is not None
    assert plain.reducer(["a"], ["b"]) == ["a", "b"]
    assert plain.reducer(1, 2) == 2
