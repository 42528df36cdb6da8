"""Warnings of writes that are dropped, have the wrong type or collide.

spec: validation rule 9, "Fan-Out Edge", "State Schema".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from harness.dialects.yagra.document import SUBGRAPH, NodeSpec, Workflow
from harness.dialects.yagra.handlers import BUILT_IN, unless_replaced
from harness.dialects.yagra.model_nodes import OUTPUT_KEY
from harness.dialects.yagra.prompts import Params
from harness.errors import Problem, Unless
from harness.source.document import Document, DocumentPath
from harness.source.suggest import did_you_mean

OPEN_STATE_HINT: Final = (
    "declare what they write in state_schema, with reducer: add where several write the same"
)

CARRIED_KEY_HINT: Final = (
    "a node writes back every key that it was given: declare it with `type: list` and `reducer: add`; the item of a "
    "fan_out needs no declaration"
)


def state_warnings(workflow: Workflow, document: Document, params: Sequence[Params]) -> Iterator[Problem]:
    """Yield the warnings of output keys, and of nodes that write the same key in one superstep."""
    yield from _output_keys(workflow, document, params)
    if workflow.state_schema:
        yield from _kept_item_keys(workflow, document)
        yield from _mapped_outputs(workflow, document, params)
    else:
        yield from _parallel_nodes(workflow, document)


def _output_keys(workflow: Workflow, document: Document, params: Sequence[Params]) -> Iterator[Problem]:
    fields = workflow.state_schema
    for index, (node, resolved) in enumerate(zip(workflow.nodes, params, strict=True)):
        has_prompt = resolved.prompt is not None and isinstance(resolved.prompt.value, dict)
        if not (fields and has_prompt and _writes_output_key(workflow, node, resolved)):
            continue
        key, where = resolved.output_key, ("nodes", index, "params", OUTPUT_KEY)
        if key not in fields:
            text = f"node '{node.id}': its output_key '{key}' is not in state_schema, so its output is lost"
            unless = None if OUTPUT_KEY in resolved.values else unless_replaced(node)
            yield _warning("undeclared-output", text, document, where, did_you_mean(key, fields), unless)
        elif fields[key].is_reduced_list and node.handler in BUILT_IN:
            text = f"node '{node.id}': '{key}' appends lists (reducer: add), and {node.handler} writes none"
            hint = f"write another key, and have a handler of your own return {{{key}: [...]}}"
            yield _warning("not-a-list", text, document, where, hint, unless_replaced(node))


def _writes_output_key(workflow: Workflow, node: NodeSpec, params: Params) -> bool:
    """True if a node writes its output key: it is written in its params, or the default of a model node."""
    if OUTPUT_KEY in params.values:
        return True
    return node.handler in BUILT_IN and not workflow.has_conditional_edges(node.id)


def _kept_item_keys(workflow: Workflow, document: Document) -> Iterator[Problem]:
    """Yield a warning of each item key that the state keeps: every mapped call writes back its item."""
    subgraphs = {node.id for node in workflow.nodes if node.handler == SUBGRAPH}
    for index, edge in enumerate(workflow.edges):
        if edge.fan_out is None or edge.target in subgraphs:
            continue
        key = edge.fan_out.item_key
        field = workflow.state_schema.get(key)
        if field is not None and field.reducer is None and field.type != "messages":
            text = f"'{key}' is in state_schema, and each item of '{edge.target}' writes it: they collide"
            hint = "leave it out of state_schema: the node is given its item all the same"
            yield _warning("collision", text, document, ("edges", index, "fan_out", "item_key"), hint)


def _mapped_outputs(workflow: Workflow, document: Document, params: Sequence[Params]) -> Iterator[Problem]:
    """Yield a warning of each mapped model node whose output key has no reducer: every mapped call writes it."""
    mapped = {edge.target for edge in workflow.edges if edge.fan_out is not None}
    for index, (node, resolved) in enumerate(zip(workflow.nodes, params, strict=True)):
        field = workflow.state_schema.get(resolved.output_key)
        if node.id in mapped and node.handler in BUILT_IN and field is not None and field.reducer is None:
            if field.type == "messages" or not _writes_output_key(workflow, node, resolved):
                continue
            key = resolved.output_key
            text = f"'{key}' has no reducer, and each item of '{node.id}' writes it: they collide"
            hint = (
                f"map a handler of your own that returns {{{key}: [...]}}, and declare it with reducer: add"
            )
            where = ("nodes", index, "params", OUTPUT_KEY)
            yield _warning("collision", text, document, where, hint, unless_replaced(node))


def _parallel_nodes(workflow: Workflow, document: Document) -> Iterator[Problem]:
    """Yield a warning of each set of parallel nodes: without a schema, each of them writes the whole state."""
    targets: dict[str, set[str]] = {}
    for index, edge in enumerate(workflow.edges):
        if edge.fan_out is not None:
            text = f"'{edge.target}' runs for several items, which collide without a state_schema"
            yield _warning("collision", text, document, ("edges", index, "fan_out"), OPEN_STATE_HINT)
        elif edge.condition is None:
            known = targets.setdefault(edge.source, set())
            known.add(edge.target)
            if len(known) == 2:
                text = f"the nodes after '{edge.source}' run in parallel, and collide without a state_schema"
                yield _warning("collision", text, document, ("edges", index), OPEN_STATE_HINT)


def _warning(
    code: str, text: str, document: Document, path: DocumentPath, hint: str, unless: Unless | None = None
) -> Problem:
    return Problem(code, text, document.span(path), hint, "warning", unless)
