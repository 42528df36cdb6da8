"""The LeafMesh decorators in source code, for functions that are not imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Final

from harness.dialects.leafmesh.agency_files import PACKAGE, PythonFile
from harness.dialects.leafmesh.integrations import HELPERS
from harness.dialects.leafmesh.registered_tool import RegisteredTool
from harness.source.static_lookup import Function

TOOL_DECORATORS: Final = ("tool", "global_tool")


def decorators_of(file: PythonFile, statement: ast.stmt) -> Iterator[tuple[str, ast.Call | None, ast.expr]]:
    """Yield the LeafMesh decorators of a function: the name, the call if it is one, and the whole expression."""
    for decorator in statement.decorator_list if isinstance(statement, Function) else ():
        call = decorator if isinstance(decorator, ast.Call) else None
        name = _member(file, call.func if call else decorator)
        if name is not None:
            yield name, call, decorator


def _member(file: PythonFile, expression: ast.expr) -> str | None:
    """Return the name of the member of `leafmesh` that an expression stands for; None if it is none."""
    match expression:
        case ast.Name(id=name) if file.leafmesh_names.get(name, PACKAGE) != PACKAGE:
            return file.leafmesh_names[name]
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if file.leafmesh_names.get(owner) == PACKAGE:
            return name
        case _:
            return None


def is_decorated(file: PythonFile, statement: ast.stmt, decorator: str) -> bool:
    """True if the statement is a function with this LeafMesh decorator."""
    return any(name == decorator for name, *_ in decorators_of(file, statement))


def registered_for(file: PythonFile, name: str) -> list[str]:
    """Return the agents that the decorators of a function register it for; see `_registered_agent`."""
    statement = file.bindings[name]
    decorators = statement.decorator_list if isinstance(statement, Function) else ()
    return [agent for each in decorators if (agent := _registered_agent(file, each)) is not None]


def _registered_agent(file: PythonFile, decorator: ast.expr) -> str | None:
    """Return the agent in `@sdk("agent")` or `@sdk.intelligence("agent")`, whatever the SDK object is called."""
    match decorator:
        case ast.Call(
            func=ast.Name(id=owner) | ast.Attribute(value=ast.Name(id=owner), attr="intelligence"),
            args=[ast.Constant(value=str(agent))],
        ) if owner not in file.leafmesh_names:
            return agent
        case _:
            return None


def called_integrations(file: PythonFile) -> Iterator[bool]:
    """Yield, for each call of an integration helper in a file, whether it is an argument of `@pre_compose`."""
    within: set[ast.expr] = set()
    for node in ast.walk(file.tree):  # an outer call comes before its arguments
        if not isinstance(node, ast.Call):
            continue
        name = _member(file, node.func)
        if name == "pre_compose":
            within |= {*node.args, *(keyword.value for keyword in node.keywords)}
        elif name in HELPERS:
            yield node in within


def tools_in(file: PythonFile) -> Iterator[tuple[RegisteredTool, ast.stmt]]:
    """Yield the tools that a file defines, as far as their arguments are literals."""
    for statement in file.bindings.values():
        if isinstance(statement, Function):
            for decorator, call, _ in decorators_of(file, statement):
                if decorator in TOOL_DECORATORS:
                    yield _registered_tool(statement, call), statement


def _registered_tool(function: Function, call: ast.Call | None) -> RegisteredTool:
    arguments = {keyword.arg: _literal(keyword.value) for keyword in call.keywords} if call else {}
    first = _literal(call.args[0]) if call and call.args else None
    allowed = arguments.get("allowed_agents")
    return RegisteredTool(
        function=not_imported,
        name=str(arguments.get("name") or first or function.name),
        given_description=str(arguments.get("description") or ast.get_docstring(function) or ""),
        category=arguments.get("category"),
        allowed_agents=tuple(allowed) if isinstance(allowed, list | tuple) else None,
    )


def _literal(expression: ast.expr) -> Any:
    try:
        return ast.literal_eval(expression)
    except (ValueError, TypeError, SyntaxError):
        return None


def not_imported() -> None:
    """Placeholder for a function that was found in source code and not imported."""
