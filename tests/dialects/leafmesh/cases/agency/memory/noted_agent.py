from typing import Any


def noted(first: Any, input_data: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    return {"seen": context["memory_posts"], "session": context["session_id"]}
