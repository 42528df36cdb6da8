from typing import Any

from leafmesh import pre_compose


def shorten(input_data: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    return {"short": input_data["message"][:4]}


def hours(input_data: dict[str, Any], context: dict[str, Any]) -> str:
    return "open until six"


@pre_compose(context_processor=hours, input_processor=shorten)
def prepared(llm_response: Any, input_data: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    return {"was": llm_response, "type": type(llm_response).__name__}
