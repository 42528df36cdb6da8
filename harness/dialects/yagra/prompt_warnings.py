"""Warnings of prompts: unknown placeholders, and versions that differ from the pinned ones.

spec: validation rule 9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.dialects.yagra.document import ERROR, NEXT, Workflow
from harness.dialects.yagra.prompts import Params
from harness.errors import Problem, Unless
from harness.graph.model import Graph
from harness.source.suggest import did_you_mean


def prompt_warnings(
    workflow: Workflow, params: Sequence[Params], subgraphs: Mapping[str, Graph]
) -> Iterator[Problem]:
    """Yield the warnings of placeholders, then those of versions."""
    yield from _placeholders(workflow, params, subgraphs)
    yield from _version_mismatches(params)


def _placeholders(
    workflow: Workflow, params: Sequence[Params], subgraphs: Mapping[str, Graph]
) -> Iterator[Problem]:
    known = _state_keys(workflow, params, subgraphs)
    may_be_more = not workflow.state_schema and any(graph.open_state for graph in subgraphs.values())
    for node, resolved in zip(workflow.nodes, params, strict=True):
        items, alone = _item_keys(workflow, node.id)
        here = items if alone else known | items
        for name, where in resolved.prompt.placeholders() if resolved.prompt else ():
            if name in here or (may_be_more and not alone):
                continue
            why = "it is neither in state_schema nor the output_key of a node"
            if alone:
                why = f"the node runs for each item, and is given {', '.join(sorted(items))} alone"
            text = f"node '{node.id}': nothing is known to set '{{{name}}}' of its prompt: {why}"
            hint = did_you_mean(name, sorted(here), listing=False)
            # With a schema, keys that it lacks are dropped from inputs and answers.
            unless = None if workflow.state_schema or alone else Unless("key", name)
            yield Problem("unknown-placeholder", text, where, hint, "warning", unless)
        for name, where in resolved.prompt.doubled_placeholders() if resolved.prompt else ():
            if name in here:
                text = f"node '{node.id}': '{{{{{name}}}}}' of its prompt is not filled in: doubled braces are text"
                yield Problem("unknown-placeholder", text, where, f"write {{{name}}}", "warning")


def _state_keys(workflow: Workflow, params: Sequence[Params], subgraphs: Mapping[str, Graph]) -> set[str]:
    """Return the state keys that a workflow is known to set."""
    known = {*workflow.state_schema, *(resolved.output_key for resolved in params)}
    if any(node.fallback is not None for node in workflow.nodes):
        known.add(ERROR)
    if any(edge.condition is not None for edge in workflow.edges):
        known.add(NEXT)
    if not workflow.state_schema:
        known.update(channel.name for graph in subgraphs.values() for channel in graph.channels)
    return known


def _item_keys(workflow: Workflow, id_: str) -> tuple[set[str], bool]:
    """Return the item keys of the fan-outs to a node, and True if the node is run by fan-outs only."""
    leading = [edge.fan_out for edge in workflow.edges if edge.target == id_]
    items = {fan_out.item_key for fan_out in leading if fan_out is not None}
    otherwise = (
        None in leading or id_ == workflow.start_at or any(node.fallback == id_ for node in workflow.nodes)
    )
    return items, bool(items) and not otherwise


def _version_mismatches(params: Sequence[Params]) -> Iterator[Problem]:
    """Yield a warning of each prompt whose file has another version than the reference pins."""
    for resolved in params:
        prompt = resolved.prompt
        if prompt is None or prompt.reference.version in (None, prompt.version):
            continue
        found = f"is of version '{prompt.version}'" if prompt.version else "has no _meta.version"
        text = f"prompt version '{prompt.reference.version}' is asked for, and {prompt.document.file} {found}"
        yield Problem("prompt-version", text, prompt.span, severity="warning")
