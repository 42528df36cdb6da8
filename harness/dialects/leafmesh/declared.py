"""The data of a mesh that is entered at one entry point, as its file declares it.

Yields of other types than declared are kept, with a warning, so only their keys are promised, unless they are
enforced. spec: "`yields` and `inputs` Type Strings", "Condition Syntax", "EscalationConfig"; NOTES 4.3, 6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.dialects.kit.accesses import access_of
from harness.dialects.kit.declared import array_schema, object_schema, return_schemas
from harness.dialects.leafmesh import conditions
from harness.dialects.leafmesh.agency import MeshParts
from harness.dialects.leafmesh.connector_exchange import mcp_tool
from harness.dialects.leafmesh.document import Agent, EntryPoint, Fields, HumanAgent, LLMAgent, Mesh, Nested
from harness.dialects.leafmesh.fields import MCP, Zapier
from harness.dialects.leafmesh.routing import SUMMARIZER, narrating
from harness.graph.effects import ToolSpec
from harness.graph.model import Declared, Schema
from harness.units import is_number

_TYPES: Final[Mapping[str, Schema]] = {
    "string": {"type": "string"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "list": {"type": "array"},
    "object": {"type": "object"},
}
_ADDED: Final = ("upstream_yields", "calling_agent_response", "_rerun_context")
"""Keys of an input that a caller does not give."""
_MESSAGE: Final = "message"
"""The key of an input that holds a text."""


def declared_data(parts: MeshParts, entry: EntryPoint) -> Declared:
    """Return what a mesh declares for those that enter it at `entry`."""
    mesh = parts.mesh
    agent = mesh.agents[entry.target]
    condition = conditions.parse(entry.condition, of_input=True)
    inputs = _typed(agent.inputs)
    if isinstance(agent, LLMAgent | HumanAgent) and not inputs:
        inputs[_MESSAGE] = _TYPES["string"]
    needed = [*inputs]
    _add_reads(inputs, condition)
    if not needed and entry.target in parts.agency.functions:
        access = access_of(parts.agency.functions[entry.target].function, 1)
        inputs |= {
            key: inputs.get(key, {}) for key in (*access.needs, *access.asks) if key and key not in _ADDED
        }
        needed = [key for key in access.needs if key in inputs]
    connectors = {name: each for name, each in parts.connectors.items() if isinstance(each, MCP | Zapier)}
    outputs = {name: _settled(each) for name, each in mesh.agents.items() if each.yields}
    return Declared(
        input=object_schema(inputs, needed) if inputs else None,
        takes_text=set(needed) <= {_MESSAGE},
        output=None if condition.text is not None else _response(mesh, agent),
        state=object_schema(outputs, ()) if outputs else None,
        results=dict(_results(parts)),
        servers={
            name: [ToolSpec(mcp_tool(each), "", object_schema(_typed(mesh.agents[name].inputs)))]
            for name, each in connectors.items()
        },
        handles_faults=_escalates(mesh),
    )


def _typed(fields: Fields) -> dict[str, Schema]:
    return {name: _type(written) for name, written in fields.items()}


def _type(written: str | Nested) -> Schema:
    if isinstance(written, Nested):
        return object_schema(_typed(written.fields)) if written.fields else _TYPES.get(written.type, {})
    return _TYPES.get(written, {})


def _add_reads(properties: dict[str, Schema], condition: conditions.Condition) -> None:
    """Add what a condition reads, by what it is compared with."""
    for path in condition.paths:
        first, *below = path
        read = _compared([test.value for test in condition.tests if test.path == path])
        for key in reversed(below):
            read = object_schema({key: read})
        known = properties.get(first, read)
        if known is not read and known.get("type") == "string" and "examples" in read:
            known = {
                **known,
                "examples": list(dict.fromkeys([*known.get("examples", ()), *read["examples"]])),
            }
        properties[first] = known


def _compared(values: Sequence[Any]) -> Schema:
    texts = [value for value in values if isinstance(value, str)]
    if texts:
        return {"type": "string", "examples": texts}
    if any(map(is_number, values)):
        return {"type": "number"}
    return {} if None in values else {"type": "boolean"}


def _settled(agent: Agent) -> Schema:
    """Return the schema of an output that is stored: missing yields are filled in."""
    return object_schema(_typed(agent.yields) if agent.enforce_yields else {key: {} for key in agent.yields})


def _response(mesh: Mesh, agent: Agent) -> Schema | None:
    """Return the schema of the response of the entry agent; null if it failed and that was handled."""
    if not agent.yields or agent.communication_type == "chain":
        return None
    schema = _settled(agent)
    return {"anyOf": [schema, {"type": "null"}]} if _escalates(mesh) else schema


def _escalates(mesh: Mesh) -> bool:
    return mesh.manager.enabled and mesh.manager.escalation is not None


def _results(parts: MeshParts) -> Iterator[tuple[tuple[str, str], Schema]]:
    mesh = parts.mesh
    yield from return_schemas(
        "tool", {name: tool.function for name, tool in parts.agency.tools.items()}
    ).items()
    for name, agent in mesh.agents.items():
        keys = _typed(agent.yields)
        for call in agent.can_call:
            _add_reads(keys, conditions.parse(call.condition))
        yields = object_schema(keys, agent.yields)
        connector = parts.connectors.get(name)
        if not keys:
            continue
        if isinstance(agent, HumanAgent):
            yield ("human", name), yields
        elif isinstance(agent, LLMAgent):
            if name not in parts.agency.functions:  # its function may make them of any reply
                yield ("llm", name), yields
        elif connector is None:
            yield ("script", name), yields
        elif name not in parts.agency.functions:
            yield ("agent", name), yields
            if isinstance(connector, MCP | Zapier):
                yield ("mcp", mcp_tool(connector)), yields
    if narrating(mesh):
        yield (
            ("llm", SUMMARIZER),
            object_schema({"next_agents": array_schema({"enum": [*mesh.agents]})}),
        )
