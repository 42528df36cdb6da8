"""Compilation of a Yagra workflow to a Graph.

The steps are in the order of `_load`: prompt references are resolved, the document is validated, then the rules
between its sections; subgraphs are compiled, warnings are collected, and nodes and edges are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness.dialects.kit.manifest import Problems, only_document, refuse_deep_nesting
from harness.dialects.request import LoadRequest
from harness.dialects.yagra.document import SUBGRAPH, Workflow
from harness.dialects.yagra.lifecycle import lifecycle
from harness.dialects.yagra.model_warnings import model_warnings
from harness.dialects.yagra.nodes import handler_node, subgraph_node
from harness.dialects.yagra.prompt_warnings import prompt_warnings
from harness.dialects.yagra.prompts import Params, PromptReferences
from harness.dialects.yagra.routing import edges_and_routers
from harness.dialects.yagra.rules import Rules
from harness.dialects.yagra.state import StateKeys
from harness.dialects.yagra.state_warnings import CARRIED_KEY_HINT, OPEN_STATE_HINT, state_warnings
from harness.dialects.yagra.subgraph import Subgraphs, subgraph_warnings
from harness.dialects.yagra.vocabulary import vocabulary
from harness.errors import Problem
from harness.graph.model import Graph, Node
from harness.source.document import Document, real_path
from harness.source.models import validate
from harness.source.sexagesimal import sexagesimals

RECURSION_LIMIT: Final = 10007
"""The maximum number of supersteps in a run: LangGraph's default, which a workflow cannot change."""


def load(request: LoadRequest) -> Graph:
    """Compile a workflow.

    Raises:
        ManifestError: with the first prompt reference that cannot be resolved; else all problems of the document;
            else all broken rules; else the problems of its subgraphs.
    """
    with refuse_deep_nesting(request.path, "its subgraphs are nested too deep"):
        return _load(request, Subgraphs(_load, (real_path(request.path),)))


def _load(request: LoadRequest, subgraphs: Subgraphs) -> Graph:
    document = only_document(request, what="a Yagra workflow", yaml="scalar-keys")
    params = PromptReferences(document, request).params()
    workflow = validate(Workflow, document)
    problems = Problems()
    problems.add(Rules(workflow, document).problems())
    problems.raise_errors()
    inner: dict[str, Graph] = {}
    for index, node in enumerate(workflow.nodes):
        if node.handler == SUBGRAPH:
            with problems.collecting():
                inner[node.id] = subgraphs.compile(node, params[index], index, document, request)
    problems.raise_errors()
    warnings = [
        *state_warnings(workflow, document, params),
        *prompt_warnings(workflow, params, inner),
        *model_warnings(workflow, document, params),
        *sexagesimals(document),
    ]
    for node in workflow.nodes:
        if node.id in inner:
            warnings += subgraph_warnings(node, inner[node.id])
    edges, routers = edges_and_routers(workflow, document)
    keys = StateKeys(workflow)
    name = request.path.name.removesuffix(request.path.suffix)
    if request.agent is not None and request.agent != name:
        text = f"there is no agent '{request.agent}': a workflow is one agent, which has no name"
        warnings.append(Problem("other-agent", text, document.span(), severity="warning"))
    pause_before, pause_after = frozenset(workflow.interrupt_before), frozenset(workflow.interrupt_after)
    return Graph(
        name=name,
        dialect="yagra",
        nodes=_nodes(workflow, document, params, keys, inner),
        edges=tuple(edges),
        channels=keys.channels(),
        routers=routers,
        lifecycle=lifecycle(keys),
        recursion_limit=RECURSION_LIMIT,
        may_pause=bool(pause_before or pause_after) or any(graph.may_pause for graph in inner.values()),
        warnings=tuple(warnings),
        open_state=keys.is_open,
        pause_before=pause_before,
        pause_after=pause_after,
        includes_nested_latency=True,
        takes_hooks=False,
        collision_hint=OPEN_STATE_HINT if keys.is_open else CARRIED_KEY_HINT,
        vocabulary=lambda: vocabulary(workflow, params, inner),
    )


def _nodes(
    workflow: Workflow,
    document: Document,
    params: Sequence[Params],
    keys: StateKeys,
    subgraphs: dict[str, Graph],
) -> tuple[Node, ...]:
    nodes = []
    for index, node in enumerate(workflow.nodes):
        if node.id in subgraphs:
            run = subgraph_node(node, subgraphs[node.id], keys)
        else:
            run = handler_node(
                node,
                params[index].values,
                keys,
                has_conditional_edges=workflow.has_conditional_edges(node.id),
            )
        nodes.append(Node(node.id, node.handler, run, document.span(("nodes", index))))
    return tuple(nodes)
