"""Rules for the Python files of a mesh, checked on their source code. spec: "Decorators", "Auto-discovery"."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from harness.dialects.leafmesh.agency_files import PACKAGE, AgencyFiles, PythonFile
from harness.dialects.leafmesh.document import AnyAgent, HumanAgent
from harness.dialects.leafmesh.stand_in import NAMES, has_name
from harness.dialects.leafmesh.static_decorators import TOOL_DECORATORS, decorators_of, registered_for
from harness.errors import Problem
from harness.source.static_lookup import Function
from harness.source.suggest import did_you_mean, nearest

_NEAR: Final = 0.8
_PIPELINES: Final = ("pre_compose", "chain", "chain_with_results", "conditional_chain", "compose")


def agency_problems(files: AgencyFiles, agents: Mapping[str, AnyAgent]) -> Iterator[Problem]:
    """Yield errors and warnings: bad imports and decorators, unused functions, wrong parameters."""
    for file in files:
        yield from _check_imports(file)
        yield from _check_decorators(file, agents)
    owners = [
        (file, name, registered_for(file, name) or [name]) for file in files.found for name in file.bindings
    ]
    bound = {agent for _, _, names in owners for agent in names}
    without = [
        name for name, agent in agents.items() if name not in bound and not isinstance(agent, HumanAgent)
    ]
    for file, name, names in owners:
        statement = file.bindings[name]
        if not isinstance(statement, Function):
            continue
        for agent in names:
            if isinstance(agents.get(agent), HumanAgent):
                text = f"agent '{agent}' is human, so this function is never called"
                yield Problem("unused-function", text, file.span(statement), "", "warning")
            elif agent in agents:
                yield from _check_arguments(file, statement, agent)
            elif agent == name and _takes_three_arguments(statement):
                yield from _check_name(file, statement, without)


def _check_imports(file: PythonFile) -> Iterator[Problem]:
    """Yield names that cannot be imported from `leafmesh`.

    Only top-level statements count: an import in a `try` may fail.
    """
    for statement in file.tree.body:
        modules: list[str | None] = []
        if isinstance(statement, ast.Import):
            modules = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            modules = [statement.module]
            for alias in statement.names if statement.module == PACKAGE else ():
                if alias.name != "*" and not has_name(alias.name):
                    text = f"cannot import '{alias.name}' from '{PACKAGE}': it has no such name here"
                    yield Problem("import", text, file.span(alias), did_you_mean(alias.name, NAMES))
        for module in modules:
            if module is not None and module.startswith(f"{PACKAGE}."):
                text = f"cannot import '{module}': '{PACKAGE}' is one module here"
                yield Problem("import", text, file.span(statement), f"import from '{PACKAGE}' itself")


def _check_decorators(file: PythonFile, agents: Collection[str]) -> Iterator[Problem]:
    for function in file.bindings.values():
        for decorator, call, place in decorators_of(file, function):
            if decorator in _PIPELINES and call is None:
                text = f"@{decorator} takes functions, in parentheses"
                yield Problem("bad-decorator", text, file.span(place))
            for name, at in _named_agents(decorator, call):
                if name not in agents and (near := nearest(name, agents, cutoff=_NEAR)) is not None:
                    text = f"@{decorator} names '{name}', which is not an agent"
                    yield Problem("unknown-agent", text, file.span(at), f"did you mean '{near}'?", "warning")


def _named_agents(decorator: str, call: ast.Call | None) -> Iterator[tuple[str, ast.expr]]:
    """Yield the agents that `@compose` or `allowed_agents` names, as far as they are literals."""
    for keyword in call.keywords if call else ():
        if decorator == "compose" and keyword.arg is not None:
            yield keyword.arg, keyword.value
        elif decorator in TOOL_DECORATORS and keyword.arg == "allowed_agents":
            for item in ast.walk(keyword.value):
                if isinstance(item, ast.Constant) and isinstance(item.value, str):
                    yield item.value, item


def _check_arguments(file: PythonFile, function: Function, agent: str) -> Iterator[Problem]:
    """Warn if an agent's function does not take three arguments.

    Functions with decorators of others are skipped, since these may change the parameters.
    """
    has_only_own_decorators = len(list(decorators_of(file, function))) == len(function.decorator_list)
    if has_only_own_decorators and not _takes_three_arguments(function):
        text = f"agent '{agent}' calls its function with three arguments, but it does not accept them"
        hint = f"async def {function.name}(llm_response, input_data, context):"
        yield Problem("agent-arguments", text, file.span(function), hint, "warning")


def _takes_three_arguments(function: Function) -> bool:
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    required = len(positional) - len(given.defaults)
    enough = len(positional) >= 3 or given.vararg is not None
    return enough and required <= 3 and all(given.kw_defaults)


def _check_name(file: PythonFile, function: Function, agents: Collection[str]) -> Iterator[Problem]:
    """Warn about a function whose name resembles that of an agent without a function."""
    near = nearest(function.name, agents, cutoff=_NEAR)
    if near is not None:
        text = f"there is no agent '{function.name}', so this function is never called"
        yield Problem("unknown-agent", text, file.span(function), f"did you mean '{near}'?", "warning")
