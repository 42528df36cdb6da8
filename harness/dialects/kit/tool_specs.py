"""Descriptions of Python tools for models: name, description and JSON Schema of the parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from harness.graph.effects import ToolSpec


def spec_of_tool(tool: BaseTool) -> ToolSpec:
    """Describe a tool as LangChain does: without pydantic's titles, references resolved."""
    function = convert_to_openai_tool(tool)["function"]
    return ToolSpec(
        tool.name, function.get("description", ""), function.get("parameters", {"type": "object"})
    )


def spec_of_function(function: Callable[..., Any], name: str, description: str | None = None) -> ToolSpec:
    """Describe a function by its signature, and by its docstring unless a description is given.

    The parameters have no types if a JSON Schema cannot express the annotations.
    """
    text = description or inspect.getdoc(function) or ""
    try:
        spec = spec_of_tool(StructuredTool.from_function(func=function, name=name, description=text))
        return ToolSpec(name, text, spec.schema)
    except Exception:  # annotations can be anything, and so can the errors of pydantic about them
        return ToolSpec(name, text, _untyped(function))


def _untyped(function: Callable[..., Any]) -> dict[str, Any]:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    try:
        signature = inspect.signature(function)
    except ValueError:  # some C functions have no signature
        return {"type": "object"}
    parameters = [parameter for parameter in signature.parameters.values() if parameter.kind not in variadic]
    return {
        "type": "object",
        "properties": {parameter.name: {} for parameter in parameters},
        "required": [
            parameter.name for parameter in parameters if parameter.default is inspect.Parameter.empty
        ],
    }
