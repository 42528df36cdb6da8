"""The user message of a run: sent to the model, kept in memory, and used as the knowledge query."""

from __future__ import annotations

from harness.dialects.leafmesh.session import CALLER_OUTPUT, Start
from harness.graph.to_json import as_text, compact_json


def user_message(start: Start) -> str:
    """Return the result of the `input_processor`, else the input. NOTES 7.2."""
    prepared = start.context["prepared_data"]
    if "clean_user_input" in prepared:
        return as_text(prepared["clean_user_input"])
    shown = {key: value for key, value in start.plain_input.items() if key != CALLER_OUTPUT}
    if list(shown) == ["message"] and isinstance(shown["message"], str):
        return shown["message"]
    return compact_json(shown)
