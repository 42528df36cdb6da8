"""The tools of toolboxes, which the MCP servers list when an agent first needs them (25.4.2)."""

from __future__ import annotations

from collections.abc import Mapping

from harness.dialects.agentspec.tool_calls import endpoint_of
from harness.dialects.agentspec.tools import ListedTool, MCPToolBox, MCPToolSpec
from harness.dialects.agentspec.types import same_type, type_of
from harness.engine.context import RunContext
from harness.errors import HarnessError
from harness.graph.effects import ToolSpec


class ToolboxMismatch(HarnessError):
    """A tool in the filter of a toolbox that its server does not list, or lists with other inputs."""

    code = "toolbox-mismatch"


async def tools_of(box: MCPToolBox, run: RunContext) -> list[ListedTool]:
    """Return the tools of a toolbox: those in its filter, in that order, else all that the server lists.

    Raises:
        ToolboxMismatch: the filter does not fit what the server lists.
        Exception: the server cannot be reached.
    """
    listed = {spec.name: spec for spec in await run.world.mcp_tools(endpoint_of(box.client_transport))}
    if not box.filtered:  # an empty filter is none
        return [ListedTool.of(box, spec, None) for spec in listed.values()]
    missing = sorted(box.filtered.keys() - listed.keys())
    if missing:
        raise ToolboxMismatch(f"{box}: its server does not list {', '.join(missing)}")
    for name, wanted in box.filtered.items():
        if wanted is not None:
            _check_inputs(box, wanted, listed[name])
    return [ListedTool.of(box, listed[name], wanted) for name, wanted in box.filtered.items()]


def _check_inputs(box: MCPToolBox, wanted: MCPToolSpec, listed: ToolSpec) -> None:
    """Raise an error if the inputs of a tool, with their types, are not those that its server lists."""
    properties = listed.schema.get("properties")
    found = properties if isinstance(properties, Mapping) else {}
    if wanted.inputs.keys() != found.keys() or not all(
        same_type(item.type, type_of(found[title])) for title, item in wanted.inputs.items()
    ):
        own = ", ".join(f"{title}: {item.type}" for title, item in wanted.inputs.items())
        others = ", ".join(f"{title}: {type_of(schema)}" for title, schema in found.items())
        text = f"{box}: '{wanted.name}' has the inputs ({own}), and its server lists ({others})"
        raise ToolboxMismatch(text)
