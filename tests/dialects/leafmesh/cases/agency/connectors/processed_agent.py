from typing import Any


async def processed(response: Any, input_data: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    return {"got": response, "given": input_data}
