"""The data of a sherma agent, as its manifest declares it.

spec: `state`, input_schema, output_schema, `on_error`. The runtime itself checks the output by `output_schema`.
"""

from __future__ import annotations

import re
from typing import Any, Final

from harness.dialects.kit.declared import (
    TYPES,
    array_schema,
    first_read,
    is_number,
    like,
    object_schema,
    return_schemas,
    user_messages,
)
from harness.dialects.sherma import document as doc
from harness.dialects.sherma.agent import Agent, cel_expressions
from harness.dialects.sherma.warnings import read_fields, transitions, written_fields
from harness.graph.model import Declared, Schema

_TOLERANT: Final = re.compile(r"\b(default|has)\s*\(")


def declared_data(agent: Agent) -> Declared:
    """Return what the manifest of an agent declares."""
    definition = agent.definition
    nodes = definition.graph.nodes
    inputs, required = _inputs(definition)
    text = definition.keeps_messages and definition.input_schema is None and required == ["messages"]
    handlers = ("on_node_error", "on_error")
    return Declared(
        input=object_schema(inputs, required),
        takes_text=text,
        state=object_schema({field.name: _type(field) for field in definition.state.fields_}, ()),
        results=return_schemas("tool", {tool.id: tool.function for tool in reversed(agent.tools.all())}),
        handles_faults=any(
            node.on_error and (node.on_error.retry or node.on_error.fallback) for node in nodes
        )
        or any(not hook.overridden.isdisjoint(handlers) for hook in agent.hooks),
    )


def _type(field: doc.StateField) -> Schema:
    name = "list" if field.name == "messages" else field.type
    schema = TYPES.get(name, {})
    if field.has_default and type(field.default) not in doc.FIELD_TYPES.get(name, ()):
        # A default of another type is kept; null is the value of a field that is not known yet.
        return {"anyOf": [schema, {"type": "null"}]} if field.default is None and schema else {}
    return schema


def _inputs(definition: doc.Agent) -> tuple[dict[str, Schema], list[str]]:
    """Return the schemas of what a caller may give by field, and the fields that it must give."""
    fields = {field.name: field for field in definition.state.fields_}
    reads: list[tuple[str, str]] = []
    needed: set[str] = set()
    for path, text in cel_expressions(definition):
        at = int(path[1])
        place = definition.graph.nodes[at].name if path[0] == "nodes" else definition.graph.edges[at].source
        read = read_fields(text)
        reads += [(place, name) for name in read]
        needed.update(() if _TOLERANT.search(text) else read)
    writes = {node.name: [name for name, _ in written_fields(node)] for node in definition.graph.nodes}
    found: dict[str, Schema] = {}
    if definition.keeps_messages:
        found["messages"] = user_messages(_content(definition.input_schema))
    written = {name for names in writes.values() for name in names}
    for name in first_read([*transitions(definition.graph)], reads, writes):
        # A default that nothing changes is a setting of an agent that is given messages, else an input.
        if name not in fields or name in found:
            continue
        schema = _type(fields[name])
        if fields[name].has_default and fields[name].default and schema.get("type") in ("array", "object"):
            schema = like(fields[name].default)  # it shows what the agent takes
        is_setting = fields[name].has_default and (definition.keeps_messages or name in written)
        is_limit = name not in needed and (name in written or is_number(schema))
        if not is_setting and not is_limit:
            found[name] = schema
    optional = {name for name in found if name not in needed or fields[name].has_default} - {"messages"}
    return found, [name for name in found if name not in optional]


def _content(schema: dict[str, Any] | None) -> Schema | None:
    """Return the schema of a message's content: one block of data that `input_schema` describes."""
    if schema is None:
        return None
    mark = object_schema({"agent_input": {"const": True}})
    block = object_schema({"type": {"const": "data"}, "data": schema, "metadata": mark})
    return array_schema(block, minItems=1, maxItems=1)
