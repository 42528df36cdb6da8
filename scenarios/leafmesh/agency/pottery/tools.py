"""Tools of the pottery studio."""

from leafmesh import global_tool, tool


@global_tool(name="clay_needed", description="Kilograms of clay for some pots", category="studio")
def clay_needed(pots: int) -> dict:
    return {"kg": pots * 2}


@global_tool(
    name="kiln_key", description="Opens the kiln", category="studio", allowed_agents=["receptionist"]
)
def kiln_key(code: str) -> dict:
    return {"open": True}


@tool(name="shelf_label", description="Writes a label")
def shelf_label(text: str) -> str:
    return "[" + text + "]"
