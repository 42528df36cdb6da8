from typing import Any


def witness(first: Any, input_data: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    given = {key: context[key] for key in context if key != "session_id"}
    return {
        "first": first,
        "context": given,
        "session": bool(context["session_id"]),
        "keys": sorted(input_data),
    }
