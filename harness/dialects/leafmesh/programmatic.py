"""Plain programmatic agents: a Python function, or a stub for it. spec: "Agent Types"; NOTES 8.8."""

from __future__ import annotations

from typing import Any

from harness.dialects.leafmesh.agent_function import RawOutput
from harness.dialects.leafmesh.parts import MeshParts
from harness.dialects.leafmesh.session import Start
from harness.engine.context import NodeContext
from harness.graph.effects import ScriptCall


async def run_function(parts: MeshParts, start: Start, ctx: NodeContext) -> RawOutput:
    """Return the result of the agent's function, or of a stub under `scripts:`.

    Raises:
        UnscriptedCall: the agent has neither.
        Exception: any exception of the function.
    """
    function = parts.agency.functions.get(ctx.name)
    shaped: dict[str, Any] = {}

    async def real() -> Any:
        assert function is not None
        returned = await function.run(None, start.input, start.context)
        shaped.update(returned.shaped)
        return returned.value

    effect = ScriptCall(
        name=ctx.name,
        args=start.input,
        real=real if function is not None else None,
        hint=f"or write a function `{ctx.name}` in a file that auto_discover finds",
    )
    return RawOutput(await ctx.perform(effect), shaped)
