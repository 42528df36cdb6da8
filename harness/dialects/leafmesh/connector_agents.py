"""Agents that an external system answers, through a connector. spec: "External Agent Fields"; NOTES 9."""

from __future__ import annotations

from typing import Any

from harness.dialects.leafmesh import document as doc
from harness.dialects.leafmesh.agent_function import RawOutput, post_process
from harness.dialects.leafmesh.connector_exchange import exchange
from harness.dialects.leafmesh.parts import MeshParts
from harness.dialects.leafmesh.session import FROM_CALLER, Start
from harness.dialects.leafmesh.yields import RERUN
from harness.engine.context import NodeContext
from harness.graph.to_json import to_json


async def call_connector(agent: doc.Agent, parts: MeshParts, start: Start, ctx: NodeContext) -> RawOutput:
    """Call the external system, and pass its response through the agent's function if there is one.

    Raises:
        ConnectorError, ConnectorTimeout, CallbackTimeout: see `exchange`.
        Exception: any exception of the function.
    """
    response = await exchange(
        parts.connectors[ctx.name],
        ctx,
        data=_request_data(agent, start),
        arguments=_request_data(agent, start, rerun=False),
        session_id=start.context["session_id"],
    )
    return await post_process(parts.agency.functions.get(ctx.name), response, start, response)


def _request_data(agent: doc.Agent, start: Start, *, rerun: bool = True) -> dict[str, Any]:
    """Return the data to send, as JSON: the input, reduced to the declared `inputs`. NOTES 9.2."""
    data = {
        key: value
        for key, value in start.plain_input.items()
        if key not in FROM_CALLER and (not agent.inputs or key in agent.inputs)
    }
    if rerun and start.rerun is not None:
        data[RERUN] = start.rerun
    return {key: to_json(value) for key, value in data.items()}
