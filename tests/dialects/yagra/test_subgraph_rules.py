"""The rules for subgraphs. spec: "Subgraph Node"."""

from __future__ import annotations

from tests.dialects.yagra.loader import Loader
from tests.dialects.yagra.valid import PROMPTS, WORKFLOW, changed, parent


def test_problems_of_a_subgraph_name_the_subgraph_nodes(loader: Loader) -> None:
    files = {
        "parts/a.yaml": parent("b.yaml"),
        "parts/b.yaml": changed(("start_at: sort", "start_at: srt")),
        **PROMPTS,
    }
    (problem,) = loader.problems(parent("../parts/a.yaml"), files)
    expected = (
        "subgraph 'grow': subgraph 'grow': start_at must be the id of a node, and there is no node 'srt'"
    )
    assert (problem.message, problem.hint) == (expected, "did you mean 'sort'?")
    assert problem.span is not None
    assert problem.span.file.endswith("parts/b.yaml")


def test_a_subgraph_is_not_searched_in_parent_folders(loader: Loader) -> None:
    (problem,) = loader.problems(parent("parts/a.yaml"), {"parts/a.yaml": WORKFLOW})
    assert problem.code == "missing-file"


def test_subgraphs_that_contain_each_other_are_refused_with_the_cycle(loader: Loader) -> None:
    (problem,) = loader.problems(
        parent("a.yaml"), {"flows/a.yaml": parent("b.yaml"), "flows/b.yaml": parent("a.yaml")}
    )
    assert problem.code == "circular-reference"
    circle = problem.message.split("contain each other: ")[1].split(" → ")
    assert [path.rsplit("/", 1)[1] for path in circle] == ["a.yaml", "b.yaml", "a.yaml"]
    assert loader.place(problem) == "a.yaml"


def test_a_workflow_that_contains_itself_is_refused(loader: Loader) -> None:
    (problem,) = loader.problems(parent("main.yaml"))
    assert problem.code == "circular-reference"


def test_a_subgraph_may_be_used_several_times(loader: Loader) -> None:
    inner = 'version: "1"\nstart_at: a\nend_at: [a]\nnodes: [{id: a, handler: h}]\nedges: []\n'
    twice = (
        parent("a.yaml")
        .replace("nodes: [", "nodes: [{id: two, handler: subgraph, params: {workflow_ref: a.yaml}}, ")
        .replace("start_at: grow", "start_at: two")
        .replace("edges: []", "edges: [{source: two, target: grow}]")
    )
    assert loader.graph(twice, {"flows/a.yaml": inner}).warnings == ()
