"""Tools of the bakery."""

import asyncio

from leafmesh import global_tool, tool


@global_tool(timeout_seconds=2)
async def rise(minutes: int) -> str:
    """Let the dough rise."""
    await asyncio.sleep(minutes * 60)
    return "risen"


@tool(name="oven_light", description="Switches the light of the oven.")
def light(on: bool = True) -> dict:
    if not on:
        raise ValueError("the switch is stuck")
    return {"on": on}
