"""The vocabulary of a workflow's graph: its handlers, the models of its model nodes, and its subgraphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.dialects.yagra.document import SUBGRAPH, TEXT_INPUT, Workflow
from harness.dialects.yagra.handlers import BUILT_IN
from harness.dialects.yagra.prompts import Params
from harness.graph.model import Graph
from harness.graph.vocabulary import NestedGraph, Vocabulary


def vocabulary(workflow: Workflow, params: Sequence[Params], inner: Mapping[str, Graph]) -> Vocabulary:
    """Return the vocabulary of a workflow. `inner` are the graphs of its subgraph nodes by node id."""
    pausing = [id_ for id_, graph in inner.items() if graph.may_pause]
    return Vocabulary(
        names={
            "handler": [node.handler for node in workflow.nodes if node.handler != SUBGRAPH],
            "llm": list(_models(workflow, params)),
        },
        inside={id_: [_inside(graph)] for id_, graph in inner.items()},
        inputs=workflow.state_schema or None,
        text_input=TEXT_INPUT,
        pauses=[*workflow.interrupt_before, *workflow.interrupt_after, *pausing],
    )


def _inside(graph: Graph) -> NestedGraph:
    return NestedGraph(id(graph), lambda: graph, warned=True)


def _models(workflow: Workflow, params: Sequence[Params]) -> Iterator[str]:
    """Yield the names of the models of built-in handlers. Malformed params are skipped: they fail their node."""
    for node, resolved in zip(workflow.nodes, params, strict=True):
        model = resolved.values.get("model") if node.handler in BUILT_IN else None
        if isinstance(model, Mapping) and isinstance(model.get("name"), str):
            yield model["name"]
