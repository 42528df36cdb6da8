"""Workflows as graphs: detection, drawings, subgraphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.dialects.load import load_graph
from harness.dialects.registry import dialect_of
from harness.dialects.request import LoadRequest
from harness.dialects.yagra.dialect import agents
from harness.errors import ManifestError
from harness.graph.model import END, START
from harness.source.document import parse
from tests.dialects.yagra.runs import answers, handlers, run_workflow, write

FORK = """\
version: "1"
start_at: sort
end_at: [keep, bin]
nodes:
  - {id: sort, handler: sort, fallback: bin}
  - {id: split, handler: split}
  - {id: keep, handler: keep}
  - {id: bin, handler: llm}
edges:
  - {source: sort, target: split, condition: good}
  - {source: sort, target: bin, condition: bad}
  - {source: split, target: keep, fan_out: {items_key: parts, item_key: part}}
"""


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        (FORK, "yagra"),
        ("start_at: a\nnodes: []", "yagra"),
        ("end_at: [a]\nnodes: []", "yagra"),
        ("manifest_version: 1\nagents: {a: {graph: {nodes: [], edges: []}}}", "sherma"),
        ("component_type: Flow\nnodes: []\nstart_node: {}", "agentspec"),
    ],
)
def test_a_workflow_is_detected_by_its_keys(tmp_path: Path, text: str, dialect: str) -> None:
    assert dialect_of(write(tmp_path / "manifest.yaml", text)).name == dialect


@pytest.mark.parametrize("text", ["nodes: []", "start_at: a", "[start_at, nodes]", "text"])
def test_other_documents_are_no_workflows(tmp_path: Path, text: str) -> None:
    with pytest.raises(ManifestError, match="not a manifest of a known dialect"):
        dialect_of(write(tmp_path / "manifest.yaml", text))


def test_a_drawing_shows_every_edge_with_its_condition(tmp_path: Path) -> None:
    graph = load_graph(LoadRequest((write(tmp_path / "fork.yaml", FORK),)))
    assert [(node.name, node.kind) for node in graph.nodes] == [
        ("sort", "sort"),
        ("split", "split"),
        ("keep", "keep"),
        ("bin", "llm"),
    ]
    assert {(edge.source, edge.target, edge.label) for edge in graph.edges} == {
        (START, "sort", None),
        ("sort", "split", "good"),
        ("sort", "bin", "bad"),
        ("sort", "bin", "on error"),
        ("split", "keep", "each of parts"),
        ("keep", END, None),
        ("bin", END, None),
    }
    assert graph.name == "fork"


def test_every_node_and_edge_has_a_location(tmp_path: Path) -> None:
    graph = load_graph(LoadRequest((write(tmp_path / "fork.yaml", FORK),)))
    lines = {node.name: node.span.line for node in graph.nodes if node.span}
    assert lines == {"sort": 5, "split": 6, "keep": 7, "bin": 8}
    assert all(edge.span is not None for edge in graph.edges)


def test_a_workflow_may_be_given_as_text(tmp_path: Path) -> None:
    write(tmp_path / "prompts.yaml", "a: {user: Hi}")
    text = FORK.replace("handler: llm", "handler: llm, params: {prompt_ref: prompts.yaml#a}")
    request = LoadRequest((Path("given"),), text=text, base=tmp_path, allowed=(tmp_path,))
    assert load_graph(request, "yagra").name == "given"


def test_a_workflow_is_a_single_document(tmp_path: Path) -> None:
    path = write(tmp_path / "fork.yaml", FORK)
    with pytest.raises(ManifestError, match="a Yagra workflow is a single file"):
        load_graph(LoadRequest((path, path)))


def test_a_workflow_defines_one_agent_without_a_name() -> None:
    assert agents(parse(FORK, file="fork.yaml")) == []


def test_subgraphs_nest_as_deep_as_they_are_written(tmp_path: Path) -> None:
    node = "{id: n, handler: subgraph, params: {workflow_ref: REF}}"
    inner = f'version: "1"\nstart_at: n\nend_at: [n]\nedges: []\nnodes: [{node}]'
    depth = 40
    for level in range(depth):
        write(tmp_path / f"level{level}.yaml", inner.replace("REF", f"level{level + 1}.yaml"))
    last = inner.replace("handler: subgraph, params: {workflow_ref: REF}", "handler: count")
    write(tmp_path / f"level{depth}.yaml", last)
    outer = {"id": "outer", "handler": "subgraph", "params": {"workflow_ref": "level0.yaml"}}
    result = run_workflow(tmp_path, outer, world=handlers(count=[answers(count=1)]), given={"word": "kept"})
    assert result.state == {"word": "kept", "count": 1}
    assert [call["node"] for call in result.calls("handler")] == ["outer/" + "n/" * depth + "n"]


def test_a_handler_changes_its_params_for_its_run_only(tmp_path: Path) -> None:
    python = (
        "def grow(state, params):\n    params['seen'].append(1)\n    return {'seen': list(params['seen'])}"
    )
    node = {"id": "grow", "handler": "grow", "params": {"seen": []}}
    runs = [run_workflow(tmp_path, node, world=handlers(grow="grow"), python=python).state for _ in range(2)]
    assert runs == [{"seen": [1]}, {"seen": [1]}]
