"""Rules for the Python files of a mesh, checked on their source code. spec: "Decorators", "Auto-discovery"."""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, NoReturn

from harness.dialects.kit.rules import warning
from harness.dialects.leafmesh import decorators
from harness.dialects.leafmesh.agency_files import PACKAGE, AgencyFiles, PythonFile
from harness.dialects.leafmesh.connector_exchange import HELPERS, integration_helper
from harness.dialects.leafmesh.decorators import Function as DecoratorsFunction
from harness.dialects.leafmesh.decorators import RegisteredTool, global_tool, register
from harness.dialects.leafmesh.document import AnyAgent, HumanAgent
from harness.errors import HarnessError, Problem
from harness.source.display import did_you_mean, nearest
from harness.source.modules import Function


class NotInStandIn(HarnessError):
    """A part of the LeafMesh SDK was used that the stand-in does not implement."""

    code = "not-in-stand-in"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} is a part of the LeafMesh SDK that does not run here: the harness runs the mesh"
        )


class LeafMeshError(Exception):
    """Base class of the SDK's errors."""


class YieldContractFailure(LeafMeshError):
    """An output does not match the `yields` of its agent."""


class LeafMeshLogger:
    """A logger of the standard library; keyword arguments are logged as fields."""

    def __init__(self, name: str = "leafmesh", *_given: Any, **_named: Any) -> None:
        self._logger = logging.getLogger(name)

    def __getattr__(self, name: str) -> Callable[..., None]:
        level = logging.getLevelNamesMapping().get(name.upper(), logging.INFO)
        if name.startswith("_"):
            raise AttributeError(name)

        def write(message: Any = "", *given: Any, **fields: Any) -> None:
            known = {key: fields.pop(key) for key in ("exc_info", "extra", "stack_info") if key in fields}
            shown = "".join(f" {key}={value!r}" for key, value in fields.items())
            self._logger.log(level, f"{message}{shown}" if shown else message, *given, **known)

        return write


class LeafMesh:
    """The SDK object in agency files: registrations are accepted, everything else refuses to run."""

    def __init__(self, *_given: Any, **_named: Any) -> None:
        self.human_handlers: dict[str, Any] = {}

    @classmethod
    def from_yaml(cls, *_given: Any, **_named: Any) -> LeafMesh:
        """Return an SDK object. The mesh file is not read."""
        return cls()

    def __call__(self, agent_name: str) -> DecoratorsFunction:
        """Register the function of an agent: `@sdk("greeter_agent")`."""
        return register(agent_name)

    def intelligence(self, agent: str | DecoratorsFunction | None = None) -> Any:
        """Register the function of an agent; without an argument, the function's name decides which."""
        if isinstance(agent, str):
            return register(agent)
        return agent if callable(agent) else lambda function: function

    def register_human_handler(self, agent: str, handler: Any) -> None:
        """Keep the handler. It is never called: the scenario answers for people."""
        self.human_handlers[agent] = handler

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _raise_on_call(f"LeafMesh.{name}")


def _raise_on_call(what: str) -> Callable[..., NoReturn]:
    def refuse(*_given: Any, **_named: Any) -> NoReturn:
        raise NotInStandIn(what)

    return refuse


class _Module(ModuleType):
    """The stand-in module. Undocumented classes of the SDK are created on first access."""

    def __getattr__(self, name: str) -> Any:
        if not has_name(name):
            raise AttributeError(f"module 'leafmesh' has no attribute '{name}'", name=name, obj=self)
        setattr(self, name, _placeholder(name))
        return self.__dict__[name]


def has_name(name: str) -> bool:
    """True if the stand-in has this name. Every class name exists, since annotations may use it."""
    return name in NAMES or _CLASS.fullmatch(name) is not None


def _placeholder(name: str) -> type:
    """Create a class of the SDK: an error that can be raised, or a class that cannot be instantiated."""
    if name.endswith(("Error", "Exception", "Failure")):
        return type(name, (LeafMeshError,), {"__module__": "leafmesh"})
    refuse = _raise_on_call(f"leafmesh.{name}")
    return type(name, (), {"__new__": lambda _class, *given, **named: refuse(), "__module__": "leafmesh"})


_CLASS: Final = re.compile(r"[A-Z]\w*[a-z]\w*")
_DEFINED: Final[tuple[Any, ...]] = (
    decorators.pre_compose,
    decorators.chain,
    decorators.chain_with_results,
    decorators.conditional_chain,
    decorators.compose,
    global_tool,
    LeafMesh,
    LeafMeshError,
    LeafMeshLogger,
    YieldContractFailure,
    *map(integration_helper, HELPERS),
)
_MEMBERS: Final = {**{each.__name__: each for each in _DEFINED}, "tool": global_tool}
NAMES: Final = tuple(_MEMBERS)
"""The names that the stand-in defines; undocumented classes come in addition."""


def _stand_in() -> ModuleType:
    module = _Module("leafmesh", __doc__)
    module.__spec__ = ModuleSpec("leafmesh", None, is_package=True)
    vars(module).update(_MEMBERS, __path__=[], __all__=[*NAMES])
    return module


STAND_IN: Final[Mapping[str, ModuleType]] = {"leafmesh": _stand_in()}


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
    without = [each for each in agents if each not in bound and not isinstance(agents[each], HumanAgent)]
    for file, name, names in owners:
        statement = file.bindings[name]
        if not isinstance(statement, Function):
            continue
        for agent in names:
            if isinstance(agents.get(agent), HumanAgent):
                text = f"agent '{agent}' is human, so this function is never called"
                yield warning("unused-function", text, file.span(statement))
            elif agent in agents:
                yield from _check_arguments(file, statement, agent)
            elif (
                agent == name
                and _takes_three_arguments(statement)
                and (near := nearest(name, without, cutoff=_NEAR))
            ):
                text = f"there is no agent '{name}', so this function is never called"
                yield warning("unknown-agent", text, file.span(statement), f"did you mean '{near}'?")


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
                    yield warning("unknown-agent", text, file.span(at), f"did you mean '{near}'?")


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
        yield warning("agent-arguments", text, file.span(function), hint)


def _takes_three_arguments(function: Function) -> bool:
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    required = len(positional) - len(given.defaults)
    enough = len(positional) >= 3 or given.vararg is not None
    return enough and required <= 3 and all(given.kw_defaults)
