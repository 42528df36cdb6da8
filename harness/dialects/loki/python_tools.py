"""Reading tools from Python files: the public functions.

Parameter types come from annotations, parameter descriptions from the "Args:" section of the docstring.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, Final

from harness.dialects.loki.parameters import Parameter, enum_schema, object_schema
from harness.graph.effects import ToolSpec

Function = ast.FunctionDef | ast.AsyncFunctionDef

_TYPES: Final = {
    **{"str": "string", "int": "integer", "float": "number", "bool": "boolean"},
    **{"list": "array", "List": "array", "dict": "object", "Dict": "object"},
}
_ARGUMENT: Final = re.compile(r"^\s*(\w+)\s*(?:\([^)]*\))?:\s*(.+)$", re.MULTILINE)


def tools_in_python(text: str) -> Iterator[ToolSpec]:
    """Yield the public functions of a module, in order.

    Raises:
        SyntaxError: the text is not valid Python.
    """
    for function in ast.parse(text).body:
        if isinstance(function, Function) and not function.name.startswith("_"):
            summary, _, arguments = (ast.get_docstring(function) or "").partition("Args:")
            descriptions = dict(_ARGUMENT.findall(arguments))
            yield ToolSpec(function.name, summary.strip(), object_schema(_parameters(function, descriptions)))


def _parameters(function: Function, descriptions: dict[str, str]) -> Iterator[Parameter]:
    written = function.args
    names = [*written.posonlyargs, *written.args]
    defaults = [None] * (len(names) - len(written.defaults)) + list(written.defaults)
    pairs = [*zip(names, defaults, strict=True), *zip(written.kwonlyargs, written.kw_defaults, strict=True)]
    for parameter, default in pairs:
        type_, optional = _type(parameter.annotation)
        required = default is None and not optional
        yield Parameter(parameter.arg, type_, descriptions.get(parameter.arg, "").strip(), required)


def _type(annotation: ast.expr | None) -> tuple[dict[str, Any], bool]:
    """Return the JSON Schema of an annotation, and True if it may be None. Unknown types are strings."""
    match annotation:
        case ast.Constant(value=str() as quoted):  # a forward reference
            try:
                return _type(ast.parse(quoted, mode="eval").body)
            except SyntaxError:
                return {"type": "string"}, False
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return {"type": _TYPES.get(name, "string")}, False
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _union([left, right])
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner):
            return _generic(name, inner.elts if isinstance(inner, ast.Tuple) else [inner])
    return {"type": "string"}, False


def _generic(name: str, inner: list[ast.expr]) -> tuple[dict[str, Any], bool]:
    if not inner:  # `list[()]`
        return {"type": _TYPES.get(name, "string")}, False
    if name == "Optional":
        return _type(inner[0])[0], True
    if name == "Union":
        return _union(inner)
    if name == "Literal":
        values = (literal.value for literal in inner if isinstance(literal, ast.Constant))
        return enum_schema(value for value in values if isinstance(value, str | int | float | None)), False
    if _TYPES.get(name) == "array":
        return {"type": "array", "items": _type(inner[0])[0]}, False
    return {"type": _TYPES.get(name, "string")}, False


def _union(members: list[ast.expr]) -> tuple[dict[str, Any], bool]:
    """Return the schema of a union: that of its first member other than None."""
    given = [member for member in members if not (isinstance(member, ast.Constant) and member.value is None)]
    type_, optional = _type(given[0] if given else None)
    return type_, optional or len(given) < len(members)
