"""The data of an Agent Spec flow or agent, as it declares it. spec: "Input and output properties", "Tools", "Flow".

Values are cast to the declared types where they enter and leave nodes. Failures are handled from version 26.1.2 on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.dialects.agentspec.agents import Agent, AgenticComponent, RemoteAgent, SpecializedAgent, Team
from harness.dialects.agentspec.component import Component, inner_first
from harness.dialects.agentspec.connections import ClientTransport
from harness.dialects.agentspec.data_flow import schema_of
from harness.dialects.agentspec.flows import AgentNode, ApiNode, CatchExceptionNode, Flow, ToolNode
from harness.dialects.agentspec.properties import PLACEHOLDER, Property
from harness.dialects.agentspec.tool_calls import endpoint_of, spec_of
from harness.dialects.agentspec.tools import MCPTool, MCPToolBox, RemoteCall, RemoteTool, Tool
from harness.graph.effects import ToolSpec
from harness.graph.model import Declared, Schema

_MESSAGE: Final = "message"
"""The key of an input that holds the user's message."""


def declared_data(component: AgenticComponent) -> Declared:
    """Return what a flow or an agent declares, with the tools of those in it."""
    parts = inner_first(component)
    is_flow = isinstance(component, Flow)
    # A default that only the flow has does not count.
    types = component.start_node.inputs if isinstance(component, Flow) else component.inputs
    schema = schema_of({title: types.get(title, item) for title, item in component.inputs.items()})
    converses = any(isinstance(part, Agent | RemoteAgent) for part in parts)
    if converses and _MESSAGE not in schema["properties"]:
        schema["properties"][_MESSAGE] = {"type": "string"}
    return Declared(
        input=schema,
        takes_text=converses and not schema.get("required"),
        output=_outputs(component) if component.outputs or is_flow else {"type": "string"},
        results=dict(_results(parts)),
        handles_faults=any(
            isinstance(part, CatchExceptionNode) or getattr(part, "retry_policy", None) is not None
            for part in parts
        ),
        servers=_servers(parts),
    )


def _outputs(component: AgenticComponent) -> Schema:
    """Return the schema of the outputs. A flow's have the types that the EndNode gives them."""
    ends = component.end_nodes if isinstance(component, Flow) else ()
    schema = _nullable(schema_of(component.outputs))
    for end in ends:
        other = _nullable(schema_of(end.outputs))
        for title, own in schema["properties"].items():
            if other["properties"].get(title, own) != own:
                schema["properties"][title] = {"anyOf": [own, other["properties"][title]]}
        if definitions := {**other.get("$defs", {}), **schema.get("$defs", {})}:
            schema["$defs"] = definitions
    return {**schema, "required": list(component.outputs)}


def _nullable(schema: Any) -> Any:
    """Return a schema in which each union allows null, to which its values may be cast."""
    if isinstance(schema, list):
        return [_nullable(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {key: _nullable(value) for key, value in schema.items()}
    if isinstance(found.get("anyOf"), list):
        found["anyOf"].append({"type": "null"})
    if isinstance(found.get("type"), list) and "null" not in found["type"]:
        found["type"].append("null")
    return found


def _results(parts: Sequence[Component]) -> Iterator[tuple[tuple[str, str], Schema]]:
    for part in parts:
        agent = part.agent if isinstance(part, AgentNode) else part
        if (
            isinstance(agent, Agent | SpecializedAgent | Team) and agent.outputs
        ):  # its model answers with them
            for name in _speakers(agent) if agent is part else [part.name]:
                yield ("llm", name), schema_of(agent.outputs)
        if isinstance(part, RemoteAgent):
            yield ("agent", part.name), schema_of(part.outputs) if part.outputs else {"type": "string"}
        elif isinstance(part, ApiNode) and not part.outputs_whole_response:
            yield ("http", part.name), schema_of(part.outputs)
        elif isinstance(part, ToolNode) and isinstance(part.tool, RemoteTool) and part.tool.outputs:
            yield ("http", part.name), _returned(part.tool.outputs)
        elif isinstance(part, Tool) and part.outputs:
            call = "mcp" if isinstance(part, MCPTool) else "http" if isinstance(part, RemoteCall) else "tool"
            yield (
                (call, _pattern(part) if isinstance(part, RemoteCall) else part.name),
                _returned(part.outputs),
            )


def _speakers(agent: AgenticComponent) -> list[str]:
    """Return the agents that answer with the outputs of an agent or a team."""
    if not isinstance(agent, Team):
        return [agent.name]
    return [each.name for each in agent.contacts()] if agent.hands_off else [agent.lead.name]


def _pattern(call: RemoteCall) -> str:
    return PLACEHOLDER.sub("*", call.url)


def _returned(outputs: Mapping[str, Property]) -> Schema:
    """Return the schema of what a tool returns: the value of its only output, or a mapping of all.

    Of one that may be a mapping, too: a mapping with its title alone would count as one of all outputs.
    """
    only = next(iter(outputs.values()))
    is_plain = len(outputs) == 1 and only.schema.get("type") not in (None, "object")
    return only.schema if is_plain else schema_of(outputs)


def _servers(parts: Sequence[Component]) -> Mapping[str, Sequence[ToolSpec]]:
    found: dict[str, list[ToolSpec]] = {
        endpoint_of(part).id: [] for part in parts if isinstance(part, ClientTransport)
    }
    for part in parts:
        if isinstance(part, MCPTool):
            found[endpoint_of(part.client_transport).id].append(spec_of(part))
        elif isinstance(part, MCPToolBox):
            found[endpoint_of(part.client_transport).id] += [
                ToolSpec(
                    name, (wanted and wanted.description) or "", schema_of(wanted.inputs if wanted else {})
                )
                for name, wanted in part.filtered.items()
            ]
    return found
