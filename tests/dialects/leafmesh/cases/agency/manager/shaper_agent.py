from typing import Any

from leafmesh import compose


@compose(check=lambda result, context: {"only": result["a"]})
def shaper(first: Any, input_data: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    return {"a": 1, "b": 2}
