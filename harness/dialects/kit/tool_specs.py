"""Tools of Python as models see them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from harness.graph.effects import ToolSpec


def spec_of_tool(tool: BaseTool) -> ToolSpec:
    """A tool's description for models, as LangChain makes it: without pydantic's titles, references resolved."""
    function = convert_to_openai_tool(tool)["function"]
    return ToolSpec(
        tool.name, function.get("description", ""), function.get("parameters", {"type": "object"})
    )


def spec_of_function(function: Callable[..., Any], name: str, description: str | None = None) -> ToolSpec:
    """A function's description for models: by its signature, and its docstring unless a description is given.

    Annotations that no JSON Schema can express leave the parameters without types.
    """
    text = description or inspect.getdoc(function) or ""
    try:
        spec = spec_of_tool(StructuredTool.from_function(func=function, name=name, description=text))
        return ToolSpec(name, text, spec.schema)
    except Exception:  # annotations may be anything, and so may what pydantic makes of them
        return ToolSpec(name, text, _untyped(function))


def _untyped(function: Callable[..., Any]) -> dict[str, Any]:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    try:
        signature = inspect.signature(function)
    except ValueError:  # some functions of C have none
        return {"type": "object"}
    parameters = [each for each in signature.parameters.values() if each.kind not in variadic]
    return {
        "type": "object",
        "properties": {each.name: {} for each in parameters},
        "required": [each.name for each in parameters if each.default is inspect.Parameter.empty],
    }
