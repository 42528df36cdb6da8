"""Compilation of a workflow to a Graph: prompts, document, rules, subgraphs, warnings, then nodes, edges and routers.

The steps are in the order of `_load`. spec: "Edge Specification", "Start and End Points", "Resilience" (fallback).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Final

from harness.dialects.kit.manifest import Problems, only_document, refuse_deep_nesting
from harness.dialects.kit.rules import sexagesimals, unreachable_nodes
from harness.dialects.request import LoadRequest
from harness.dialects.yagra.declared import declared_data
from harness.dialects.yagra.document import NEXT, SUBGRAPH, TEXT_INPUT, FanOut, NodeSpec, Workflow
from harness.dialects.yagra.nodes import BUILT_IN, StateKeys, handler_node, lifecycle, subgraph_node
from harness.dialects.yagra.prompts import Params, PromptReferences
from harness.dialects.yagra.rules import WorkflowRules
from harness.dialects.yagra.warnings import (
    CARRIED_KEY_HINT,
    OPEN_STATE_HINT,
    model_warnings,
    placeholder_warnings,
    state_warnings,
    version_warnings,
)
from harness.engine.context import RunContext
from harness.errors import HarnessError, ManifestError, Problem, Span
from harness.graph.messages import MessageLog
from harness.graph.model import (
    END,
    START,
    Dispatch,
    Edge,
    Graph,
    NestedGraph,
    Node,
    Outside,
    Router,
    State,
    Vocabulary,
)
from harness.source.display import did_you_mean, nearest
from harness.source.document import Document, real_path, shown_path
from harness.source.models import describe, validate


@dataclass(frozen=True)
class Subgraphs:
    """A compiler of the subgraphs of a workflow, at any depth. Each file is compiled once.

    within    the files that are being compiled, the outermost first
    compiled  the graphs compiled so far
    """

    within: tuple[Path, ...]
    compiled: dict[Path, Graph] = field(default_factory=dict)

    def compile(
        self, node: NodeSpec, params: Params, index: int, document: Document, request: LoadRequest
    ) -> Graph:
        """Compile the workflow that the subgraph node at `index` refers to.

        Raises:
            ManifestError: it does not exist, or has problems; each problem names the node.
        """
        path: tuple[str | int, ...] = ("nodes", index, "params", "workflow_ref")
        where = document.span(path)
        reference = params.values.get("workflow_ref")
        if not reference or not isinstance(reference, str):
            found = "" if not reference else f": expected text, found {describe(reference)}"
            text = f"the subgraph node '{node.id}' needs 'workflow_ref' in its params{found}"
            near = nearest("workflow_ref", set(params.values) - {"workflow_ref"}, cutoff=0.5)
            hint = f"'{near}' is not known: did you mean 'workflow_ref'?" if near else ""
            raise ManifestError(Problem("no-workflow-ref", text, where, hint))
        try:
            return self._compile_file(request.resolve(reference, where), request, where)
        except ManifestError as error:
            raise ManifestError(_with_subgraph(node, error.problems)) from None

    def _compile_file(self, path: Path, request: LoadRequest, where: Span) -> Graph:
        if path in self.within:
            circle = [*self.within[self.within.index(path) :], path]
            text = f"subgraphs contain each other: {' → '.join(map(shown_path, circle))}"
            raise ManifestError(Problem("circular-reference", text, where))
        if path not in self.compiled:
            inner = Subgraphs((*self.within, path), self.compiled)
            self.compiled[path] = _load(replace(request.for_manifest(path, None), named_at=where), inner)
        return self.compiled[path]


def _with_subgraph(node: NodeSpec, problems: Iterable[Problem]) -> list[Problem]:
    """Prefix the message of each problem with the subgraph node."""
    return [replace(problem, message=f"subgraph '{node.id}': {problem.message}") for problem in problems]


def vocabulary(workflow: Workflow, params: Sequence[Params], inner: Mapping[str, Graph]) -> Vocabulary:
    """Return the vocabulary of a workflow. `inner` are the graphs of its subgraph nodes by node id."""
    pausing = [id_ for id_, graph in inner.items() if graph.may_pause]
    return Vocabulary(
        names={
            "handler": [node.handler for node in workflow.nodes if node.handler != SUBGRAPH],
            "llm": list(_models(workflow, params)),
        },
        inside={
            id_: [NestedGraph(id(graph), partial(inner.__getitem__, id_), warned=True)]
            for id_, graph in inner.items()
        },
        inputs=workflow.state_schema or None,
        text_input=TEXT_INPUT,
        pauses=[*workflow.interrupt_before, *workflow.interrupt_after, *pausing],
        outside=[
            Outside("handler", node.handler, nodes=(node.id,))
            for node in workflow.nodes
            if node.handler not in (SUBGRAPH, *BUILT_IN)
        ],
    )


def _models(workflow: Workflow, params: Sequence[Params]) -> Iterator[str]:
    """Yield the names of the models of built-in handlers. Malformed params are skipped: they fail their node."""
    for node, resolved in zip(workflow.nodes, params, strict=True):
        model = resolved.values.get("model") if node.handler in BUILT_IN else None
        if isinstance(model, Mapping) and isinstance(model.get("name"), str):
            yield model["name"]


RECURSION_LIMIT: Final = 10007
"""The maximum number of supersteps in a run: LangGraph's default, which a workflow cannot change."""


def load(request: LoadRequest) -> Graph:
    """Compile a workflow.

    Raises:
        ManifestError: with the first prompt reference that cannot be resolved; else all problems of the document;
            else all broken rules; else the problems of its subgraphs.
    """
    with refuse_deep_nesting(request.path, "its subgraphs are nested too deep"):
        return _load(request, Subgraphs((real_path(request.path),)))


def _load(request: LoadRequest, subgraphs: Subgraphs) -> Graph:
    document = only_document(request, what="a Yagra workflow", yaml="scalar-keys")
    params = PromptReferences(document, request).params()
    workflow = validate(Workflow, document)
    problems = Problems()
    problems.add(WorkflowRules(workflow, document).problems())
    problems.raise_errors()
    inner: dict[str, Graph] = {}
    for index, node in enumerate(workflow.nodes):
        if node.handler == SUBGRAPH:
            with problems.collecting():
                inner[node.id] = subgraphs.compile(node, params[index], index, document, request)
    problems.raise_errors()
    warnings = [
        *state_warnings(workflow, document, params),
        *placeholder_warnings(workflow, params, inner),
        *version_warnings(params),
        *model_warnings(workflow, document, params),
        *sexagesimals(document),
    ]
    for node in workflow.nodes:
        if node.id in inner:
            # Those of keys are left out, since the outer state may have them.
            of_subgraph = (w for w in inner[node.id].warnings if w.unless is None or w.unless.kind != "key")
            warnings += _with_subgraph(node, of_subgraph)
    edges, routers = edges_and_routers(workflow, document)
    places = ((node.id, document.span(("nodes", index, "id"))) for index, node in enumerate(workflow.nodes))
    warnings += unreachable_nodes(((edge.source, edge.target) for edge in edges), places)
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
        declared=cache(partial(declared_data, workflow, params, inner, edges)),
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
            labels = workflow.has_conditional_edges(node.id)
            run = handler_node(node, params[index].values, keys, has_conditional_edges=labels)
        nodes.append(Node(node.id, node.handler, run, document.span(("nodes", index))))
    return tuple(nodes)


class NoRoute(HarnessError):
    """A node whose state selects no edge."""

    code = "no-route"


def edges_and_routers(workflow: Workflow, document: Document) -> tuple[list[Edge], Mapping[str, Router]]:
    """Return the edges of a workflow, and a router for each node whose edges depend on the state."""
    edges = [Edge(START, workflow.start_at, span=document.span(("start_at",)))]
    by_source: dict[str, list[Edge]] = {}
    seen: set[tuple[str, str, str | None]] = set()
    fan_outs: dict[str, FanOut] = {}
    for index, written in enumerate(workflow.edges):
        condition = written.condition
        if written.fan_out is not None:
            fan_outs[written.source] = written.fan_out
            condition = f"each of {written.fan_out.items_key}"
        edge = Edge(written.source, written.target, condition, span=document.span(("edges", index)))
        if (edge.source, edge.target, condition) not in seen:
            seen.add((edge.source, edge.target, condition))
            by_source.setdefault(edge.source, []).append(edge)
    for index, id_ in enumerate(workflow.end_at):
        by_source.setdefault(id_, [Edge(id_, END, span=document.span(("end_at", index)))])
    routers: dict[str, Router] = {}
    for source, leaving in by_source.items():
        if source in fan_outs:
            routers[source] = _fan_out_router(leaving[0], fan_outs[source])
        elif workflow.has_conditional_edges(source):
            routers[source] = _conditional_router(source, {str(edge.condition): edge for edge in leaving})
        edges += leaving
    for index, node in enumerate(workflow.nodes):
        if node.fallback is not None:
            span = document.span(("nodes", index, "fallback"))
            edges.append(Edge(node.id, node.fallback, on_error=True, span=span))
    return edges, routers


def _conditional_router(source: str, by_label: Mapping[str, Edge]) -> Router:
    """Return the router of a node with conditional edges. spec: "Conditional Edge"."""
    allowed = ", ".join(sorted(by_label))

    async def follow(state: State, _run: RunContext) -> Sequence[Edge | Dispatch]:
        label = state.get(NEXT)
        if not isinstance(label, str):
            found = describe(label) if NEXT in state else "nothing"
            text = f"'{source}' needs a label in {NEXT} (one of {allowed}): expected text, found {found}"
            raise NoRoute(text)
        if label not in by_label:
            hint = did_you_mean(label, by_label, listing=False)
            text = f"no edge from '{source}' has the label '{label}' (allowed: {allowed})"
            raise NoRoute(f"{text}; {hint}" if hint else text)
        return [by_label[label]]

    return follow


def _fan_out_router(edge: Edge, fan_out: FanOut) -> Router:
    """Return the router of a fan-out edge. spec: "Fan-Out Edge". The target gets its item and no other state."""

    async def follow(state: State, _run: RunContext) -> Sequence[Edge | Dispatch]:
        items = state.get(fan_out.items_key)
        if not isinstance(items, (list, MessageLog)):
            found = describe(items) if fan_out.items_key in state else "nothing"
            where = f"fan_out after '{edge.source}' needs a list in '{fan_out.items_key}'"
            raise NoRoute(f"{where}: found {found}")
        return [Dispatch(edge, {fan_out.item_key: item}) for item in items]

    return follow
