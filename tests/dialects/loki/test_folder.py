"""A folder as a manifest: one with a `graph.yaml` is a graph agent, whatever the content of the file.

spec: "The presence of `graph.yaml` is what marks an agent as a graph agent".
"""

from __future__ import annotations

import pytest

from harness.dialects.load import load_graph
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem
from tests.dialects.loki.loader import Loader


def refusal(loader: Loader, files: dict[str, str], dialect: str | None = None) -> Problem:
    """Return the first problem of the folder `agents/desk` with these files in it."""
    loader.write({f"agents/desk/{name}": text for name, text in files.items()})
    with pytest.raises(ManifestError) as refused:
        load_graph(LoadRequest((loader.folder / "agents/desk",)), dialect)
    return refused.value.problems[0]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("", "the file is empty", (1, 1)),
        ('start: a\nnodes:\n  a: {type: end, output: "x\n', 'this " is never closed', (3, 26)),
        ("a\0b", "not a text file", (1, 2)),
        ("start: a\nnodes:\n  a: {output: x}\n", "missing key 'type'", (3, 6)),
        ("start: a\n", "missing key 'nodes'", (1, 1)),
        ("start: a\nnodes:\n", "nodes: expected a mapping", (2, 7)),
    ],
)
def test_errors_of_a_graph_yaml_are_reported_for_its_folder(
    text: str, message: str, place: tuple[int, int], loader: Loader
) -> None:
    problem = refusal(loader, {"graph.yaml": text})
    assert message in problem.message
    assert problem.span is not None
    assert (problem.span.line, problem.span.column) == place


@pytest.mark.parametrize(
    ("files", "hint"),
    [
        ({"README.md": ""}, ""),
        ({"graph.yml": ""}, "rename graph.yml"),
        ({"Graph.yaml": ""}, "rename Graph.yaml"),
        ({"config.yaml": "instructions: Carry.\n"}, "it is an ordinary agent, which an agent node can spawn"),
    ],
)
def test_a_folder_without_graph_yaml_is_no_graph_agent(
    files: dict[str, str], hint: str, loader: Loader
) -> None:
    problem = refusal(loader, files, "loki")
    assert problem.message.endswith("agents/desk is not a graph agent: it has no graph.yaml")
    assert problem.hint.endswith(hint)


def test_the_file_of_an_ordinary_agent_is_no_graph_agent(loader: Loader) -> None:
    loader.write({"agents/desk/config.yaml": "instructions: Carry.\n"})
    with pytest.raises(ManifestError) as refused:
        load_graph(LoadRequest((loader.folder / "agents/desk/config.yaml",)), "loki")
    (problem,) = refused.value.problems
    assert problem.message == (
        "a config.yaml is of an ordinary agent, which an agent node can spawn: a graph agent has a graph.yaml"
    )
