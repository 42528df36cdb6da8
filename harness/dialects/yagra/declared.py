"""The data of a Yagra workflow, as it declares it.

Its handlers are no part of it: they may read and write any key. So keys that its prompts and fan-outs read, and that
no model node can have written, are given by the caller or by a handler before them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from harness.dialects.kit.declared import TYPES, first_read, object_schema, user_messages
from harness.dialects.kit.rules import reachable
from harness.dialects.yagra.document import NEXT, SUBGRAPH, TEXT_INPUT, NodeSpec, Workflow
from harness.dialects.yagra.model_nodes import SCHEMA, ModelParamsError, schema_of
from harness.dialects.yagra.nodes import BUILT_IN
from harness.dialects.yagra.prompts import Params
from harness.dialects.yagra.warnings import item_keys, writes_output_key
from harness.graph.model import Declared, Edge, Graph, Schema


def declared_data(
    workflow: Workflow, params: Sequence[Params], inner: Mapping[str, Graph], edges: Sequence[Edge]
) -> Declared:
    """Return what a workflow declares. `inner` are the graphs of its subgraph nodes by node id."""
    steps = [(edge.source, edge.target) for edge in edges]
    writes = {
        node.id: list(_written(workflow, node, resolved, inner.get(node.id)))
        for node, resolved in zip(workflow.nodes, params, strict=True)
    }
    reads = list(_reads(workflow, params, inner))
    handlers = [node for node in workflow.nodes if node.handler not in (SUBGRAPH, *BUILT_IN)]
    first = first_read(steps, reads, writes)
    later = {node.id: reachable(node.id, steps) for node in handlers}
    needed = {
        node.id: [key for at, key in reads if key in first and at in later[node.id]] for node in handlers
    }
    from_handlers = {key for keys in needed.values() for key in keys}
    fields = workflow.state_schema
    known = {key for keys in writes.values() for key in keys}
    maybe = [name for name in fields if handlers and name not in known]
    gathered = [name for name in maybe if fields[name].is_reduced_list]
    lists = {edge.fan_out.items_key for edge in workflow.edges if edge.fan_out is not None}
    mapped = {edge.target for edge in workflow.edges if edge.fan_out is not None}
    given = {key: _given(workflow, key, lists) for key in (*first, *maybe) if not fields or key in fields}
    types = {name: TYPES.get(field.type, {"type": "array"}) for name, field in fields.items()}
    state = object_schema(types, ()) if fields else None
    results = {key: each for graph in inner.values() for key, each in graph.declared().results.items()}
    for name in dict.fromkeys(node.handler for node in handlers):
        nodes = [node for node in handlers if node.handler == name]
        labels = _labels(workflow, nodes)
        required = {key: given[key] for node in nodes for key in needed[node.id] if key in given} | labels
        is_mapped = any(node.id in mapped for node in nodes)  # of its calls, only lists are put together
        optional = {key: given[key] for key in (gathered or maybe if is_mapped else maybe)}
        results["handler", name] = object_schema({**optional, **required}, required)
    for node, resolved in zip(workflow.nodes, params, strict=True):
        if node.handler == "structured_llm":
            with suppress(ModelParamsError):  # the node will fail
                results["llm", node.id] = schema_of(resolved.values.get(SCHEMA)).model_json_schema()
    return Declared(
        input=object_schema(
            {key: each for key, each in given.items() if key in first or key not in gathered},
            [key for key in given if key in first and key not in from_handlers],
        ),
        takes_text=TEXT_INPUT in given,
        output=state,
        state=state,
        results=results,
        handles_faults=any(node.retry or node.fallback for node in workflow.nodes),
        fallible=[node.id for node in handlers if node.retry or node.fallback],
    )


def _given(workflow: Workflow, key: str, lists: set[str]) -> Schema:
    """Return the schema of a key that a caller or a handler sets. Undeclared, it is a text or a list of texts."""
    if (field := workflow.state_schema.get(key)) is not None:
        return user_messages() if field.type == "messages" else TYPES[field.type]
    return {"type": "array", "items": {"type": "string"}} if key in lists else {"type": "string"}


def _labels(workflow: Workflow, nodes: Sequence[NodeSpec]) -> dict[str, Schema]:
    """Return the schema of the label that a handler returns: those which all its nodes have, if there are any."""
    lists = [[e.condition for e in workflow.edges_from(node.id) if e.condition is not None] for node in nodes]
    every = list(dict.fromkeys(label for labels in lists for label in labels))
    shared = [label for label in every if all(label in labels for labels in lists if labels)]
    return {NEXT: {"enum": shared or every}} if every else {}


def _written(workflow: Workflow, node: NodeSpec, params: Params, inner: Graph | None) -> Iterator[str]:
    """Yield the keys that a node is known to write. A subgraph writes back what it was given, too."""
    if inner is not None:
        of = inner.declared()
        yield from (key for key in _keys(of.state) if key not in _keys(of.input))
    elif node.handler in BUILT_IN and writes_output_key(workflow, node, params):
        yield params.output_key


def _reads(
    workflow: Workflow, params: Sequence[Params], inner: Mapping[str, Graph]
) -> Iterator[tuple[str, str]]:
    """Yield the keys that prompts, subgraphs and fan-outs read, with their nodes."""
    items, _ = item_keys(workflow)
    for node, resolved in zip(workflow.nodes, params, strict=True):
        names = [name for name, _ in resolved.prompt.placeholders()] if resolved.prompt else []
        if node.id in inner:
            names = list(_keys(inner[node.id].declared().input))
        yield from ((node.id, name) for name in names if name not in items.get(node.id, ()))
    for edge in workflow.edges:
        if edge.fan_out is not None:
            yield edge.source, edge.fan_out.items_key


def _keys(schema: Schema | None) -> Mapping[str, Any]:
    keys: Mapping[str, Any] = (schema or {}).get("properties", {})
    return keys
