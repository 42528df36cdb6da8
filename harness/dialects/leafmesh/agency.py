"""The agency of a mesh: the functions of its agents and its tools, from the files that `auto_discover` finds.

`Agency.of` finds the files, checks them, and imports them; with `harness validate` it does not import them,
but reads their source code. A function belongs to the agent of the same name. Modules are imported once per
process and keep their state between runs, as in all dialects. spec: "Auto-discovery", "Tools"; NOTES 1.9, 8.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from harness.dialects.kit.manifest import Problems
from harness.dialects.leafmesh import agency_rules, decorators
from harness.dialects.leafmesh.agency_files import DIRECTORY, AgencyFiles, PythonFile, agency_files
from harness.dialects.leafmesh.connector_exchange import Processor
from harness.dialects.leafmesh.document import Mesh
from harness.dialects.leafmesh.fields import Connector
from harness.dialects.leafmesh.session import Call, Output, Start
from harness.dialects.request import LoadRequest
from harness.engine.callables import call
from harness.errors import Problem, Span
from harness.graph.events import Arrival, Join
from harness.graph.model import Dispatch, Edge, State
from harness.source.display import did_you_mean
from harness.source.document import Document, shown_path
from harness.source.imports import ImportScope, recording_environment
from harness.source.modules import Function
from harness.time.frozen import preserve_clocks

_IMPORT: Final = (ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Agency:
    """The functions of a mesh's agents, by agent, and its tools, by name.

    `is_complete` is False if the files were only read, not imported: then they may define more than is
    listed. `asks_more` is True if functions may call integrations that are not in `processors`.
    `import_folders` holds the directory that the modules were imported from.
    """

    functions: Mapping[str, decorators.AgentFunction] = field(default_factory=dict)
    tools: Mapping[str, decorators.RegisteredTool] = field(default_factory=dict)
    warnings: Sequence[Problem] = ()
    is_complete: bool = True
    asks_more: bool = False
    import_folders: tuple[Path, ...] = ()

    def processors(self) -> Iterator[tuple[str, Processor]]:
        """Yield each integration that a `@pre_compose` of an agent's function calls, with the agent."""
        for agent, function in self.functions.items():
            for processors in decorators.processors_of(function.function):
                yield from ((agent, each) for each in processors if isinstance(each, Processor))

    @classmethod
    def of(cls, mesh: Mesh, document: Document, request: LoadRequest) -> Agency:
        """Return the agency of a mesh: empty without `auto_discover` and without the documented folder `agency`.

        Raises:
            ManifestError: a file cannot be found or imported, or two functions or tools have the same name.
        """
        files = agency_files(mesh, document, request)
        if files is None:
            return cls()
        found = _Collector(mesh.agents, files, document)
        found.problems.add(agency_rules.agency_problems(files, mesh.agents))
        found.problems.raise_errors()
        (found.import_files if request.imports else found.read_source)()
        found.problems.raise_errors()
        listed = [
            each and request.imports for file in files for each in agency_rules.called_integrations(file)
        ]
        warnings = found.problems.warnings
        return cls(
            found.functions, found.tools, warnings, request.imports, not all(listed), (files.directory,)
        )


class _Collector:
    """Collects the functions and tools of an agency with their locations, and the problems found on the way."""

    def __init__(self, agents: Iterable[str], files: AgencyFiles, document: Document) -> None:
        self.functions: dict[str, decorators.AgentFunction] = {}
        self.tools: dict[str, decorators.RegisteredTool] = {}
        self.problems = Problems(files.warnings)
        self._agents, self._files, self._document = frozenset(agents), files, document
        self._scope = ImportScope(files.folders, agency_rules.STAND_IN)
        self._call = self._call_in_scope if files.has_lazy_imports else call
        self._defined: dict[str, Span] = {}
        self._tool_places: dict[str, Span] = {}

    def import_files(self) -> None:
        """Import the files, and add the functions and tools that their modules define."""
        with recording_environment(self._files.directory), preserve_clocks():
            problems = self._scope.import_modules([file.module for file in self._files.found])
        for problem in problems:
            self.problems.refuse("import", problem.message, self._document.span(DIRECTORY), problem.hint)
        modules = self._scope.modules()
        for file in self._files:
            if file.module in modules:
                self._add_functions(file, modules)
        for file in self._files:
            members = vars(modules[file.module]).values() if file.module in modules else ()
            for tool in chain.from_iterable(map(decorators.registered_tools, list(members))):
                self._add_tool(tool, _location(tool.function, file))

    def read_source(self) -> None:
        """Add the functions and tools that the source code defines, without importing it."""
        functions = {
            name for file in self._files for name, each in file.bindings.items() if isinstance(each, Function)
        }
        for file in self._files:
            for name, statement in sorted(file.bindings.items()):
                for agent in self._owners(file, name, agency_rules.registered_for(file, name)):
                    if not isinstance(statement, _IMPORT) or agent in functions:
                        is_defined = isinstance(statement, Function)
                        self._add_function(agent, agency_rules.not_imported, file.span(statement), is_defined)
        for file in self._files:
            for tool, statement in agency_rules.tools_in(file):
                self._add_tool(tool, file.span(statement))

    async def _call_in_scope(self, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
        return await self._scope.run(call(function, *given, **named))

    def _add_functions(self, file: PythonFile, modules: Mapping[str, ModuleType]) -> None:
        members = vars(modules[file.module])
        for name, statement in sorted(file.bindings.items()):
            found, is_imported = members.get(name), isinstance(statement, _IMPORT)
            if not callable(found) or isinstance(found, type) or decorators.registered_tools(found):
                continue
            if is_imported and getattr(found, "__module__", None) not in modules:
                continue
            registered = decorators.registered_agents(found)
            for agent in self._owners(file, name, registered):
                self._add_function(agent, found, file.span(statement), not is_imported)
                if not decorators.processors_of(found) and agency_rules.is_decorated(
                    file, statement, "pre_compose"
                ):
                    text = f"@pre_compose of '{name}' is lost: a decorator above it does not keep it"
                    hint = "use functools.wraps in that decorator, or put @pre_compose above it"
                    self.problems.warn("lost-decorator", text, file.span(statement), hint)
            for agent in registered if not is_imported else ():
                if agent not in self._agents:
                    text = f"'{name}' is registered for '{agent}', which is not an agent"
                    hint = did_you_mean(agent, sorted(self._agents))
                    self.problems.warn("unknown-agent", text, file.span(statement), hint)

    def _owners(self, file: PythonFile, name: str, registered: Sequence[str]) -> Iterator[str]:
        """Yield the agents that a function belongs to: those it is registered for, else the one of its name."""
        named = (name,) if file in self._files.found else ()
        return (agent for agent in registered or named if agent in self._agents)

    def _add_function(self, agent: str, function: Callable[..., Any], place: Span, is_defined: bool) -> None:
        """Add the function of an agent. A definition replaces a function that another file only imports."""
        if is_defined and agent in self._defined:
            before = self._defined[agent]
            text = f"agent '{agent}' has two functions: here and in {before.file}:{before.line}"
            self.problems.refuse("duplicate-name", text, place, "rename or remove one of them")
        elif is_defined or agent not in self.functions:
            self.functions[agent] = decorators.AgentFunction(agent, function, self._agents, self._call)
        if is_defined:
            self._defined[agent] = place

    def _add_tool(self, tool: decorators.RegisteredTool, place: Span) -> None:
        """Add a tool. A file that is imported under two names defines its tools once."""
        before = self._tool_places.setdefault(tool.name, place)
        if before != place:
            text = f"there are two tools '{tool.name}': here and in {before.file}:{before.line}"
            self.problems.refuse("duplicate-name", text, place, "give one of them another name")
        elif tool.name not in self.tools:
            self.tools[tool.name] = replace(tool, caller=self._call)
            for argument in tool.unknown_arguments:
                text = f"unknown argument '{argument}' of tool '{tool.name}': it has no effect"
                self.problems.warn("tool-argument", text, place)


def _location(function: Callable[..., Any], file: PythonFile) -> Span:
    """The location of a function's code; for a callable object without code, the start of its file."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    path, line = (code.co_filename, code.co_firstlineno) if code else (file.path, 1)
    return Span(shown_path(path), line, 1)


INPUT: Final = "input_data"

ARRIVALS: Final = "__arrived__"
"""The state key under which a node finds its `Arrivals`."""


@dataclass(frozen=True)
class MeshParts:
    """A runnable mesh: the mesh file, its Python, its connectors by agent, its joins by fan-in agent.

    `env` has the values of its variables.
    """

    mesh: Mesh
    agency: Agency
    connectors: Mapping[str, Connector]
    joins: Mapping[str, Join]
    env: Mapping[str, str]


@dataclass(frozen=True)
class Handover:
    """The data that a call passes to the called agent.

    input           its input, before the keys that every callee gets are added
    caller_output   the whole output of the caller; None for an entry point
    caller          the call that settled or failed; None for an entry point
    position        of the can_call entry; None for calls by the Summarizer or an escalation
    previous_start  the last start of an agent that is rerun, if it ran before
    rerun           the feedback for an agent that is rerun, if any
    """

    input: Output
    caller_output: Output | None = None
    caller: Call | None = None
    position: int | None = None
    is_escalation: bool = False
    previous_start: Start | None = None
    rerun: Mapping[str, Any] | None = None


@dataclass(eq=False)
class Arrivals:
    """The handovers of one start of an agent, in order of arrival, and its call once it has started."""

    handovers: tuple[Handover, ...]
    call: Call | None = None

    @property
    def is_escalation(self) -> bool:
        """True if the call comes from an escalation."""
        return any(handover.is_escalation for handover in self.handovers)

    @property
    def callers(self) -> list[Call]:
        """The calls that settled and called this agent; entry points and escalations are not among them."""
        return [each.caller for each in self.handovers if each.caller is not None and not each.is_escalation]


def dispatch(edge: Edge, handover: Handover) -> Dispatch:
    """Return the dispatch of a handover along an edge."""
    return Dispatch(edge, {ARRIVALS: handover})


def input_of(arrivals: Sequence[Arrival], state: State) -> State:
    """Return the state of a node: outputs so far, and its input, merged in order of arrival. NOTES 3.3."""
    handovers = tuple(arrival.state[ARRIVALS] for arrival in arrivals if arrival.state is not None)
    merged = {key: value for handover in handovers for key, value in handover.input.items()}
    return {**state, INPUT: merged, ARRIVALS: Arrivals(handovers)}
