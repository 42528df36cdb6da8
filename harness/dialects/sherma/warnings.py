"""Warnings about valid but probably mistaken manifests. One method of `AgentWarnings` per kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from harness.dialects.kit.rules import unreachable_nodes, warning
from harness.dialects.sherma import document as doc
from harness.dialects.sherma.agent import Agent, cel_expressions
from harness.dialects.sherma.document import INTERNAL_STATE_KEY, Ref
from harness.dialects.sherma.tools import same_version
from harness.errors import ExpressionError, Problem
from harness.expressions.cel import Expression, written_keys
from harness.expressions.cel import compile as compile_cel
from harness.graph.model import START, Graph
from harness.source.display import did_you_mean
from harness.source.document import Document, DocumentPath

_RESPONSE: Final = "llm_response"
_WORDS: Final = re.compile(r"[A-Za-z][\w ,.;:!?'’-]{0,60}")
"""Matches invalid expressions that are probably text without quotes."""
_NAMES: Final = re.compile(r"\b(state|prompts|llms|skills|llm_response)\b")
_NUMBERS: Final = re.compile(r"\d+(\.\d+)*")


class AgentWarnings:
    """The warnings of one agent. Paths are below its graph, those in `document` below the whole manifest."""

    def __init__(self, agent: Agent, document: Document) -> None:
        self.agent, self.document, self.definition = agent, document, agent.definition
        self.graph = agent.document.at(("graph",))
        self.nodes = [(node, ("nodes", at)) for at, node in enumerate(agent.definition.graph.nodes)]

    def problems(self) -> Iterator[Problem]:
        """Yield all warnings of the agent."""
        yield from self.field_types()
        yield from self.expressions()
        yield from self.undeclared_fields()
        yield from self.tool_references()
        yield from self.versions()
        yield from self.server_keys()
        yield from self.undeclared_skills()
        yield from self.parts_without_effect()
        yield from self.unreachable_nodes()
        yield from self.unfollowed_edges()
        yield from self.refused_by_sherma()
        yield from self.custom_nodes()

    def field_types(self) -> Iterator[Problem]:
        """State fields have a known type, and a default of it."""
        for at, field in enumerate(self.definition.state.fields_):
            path: DocumentPath = ("state", "fields", at)
            if field.type not in doc.FIELD_TYPES:
                text = f"'{field.type}' is not a type of state fields ({', '.join(doc.FIELD_TYPES)})"
                hint = did_you_mean(field.type, list(doc.FIELD_TYPES), listing=False)
                yield warning("field-type", text, self.agent.document.span((*path, "type")), hint)
                continue
            wanted = "list" if field.name == "messages" else field.type
            found = type(field.default)
            if field.default is not None and found not in doc.FIELD_TYPES[wanted]:
                text = f"the default of state field '{field.name}' is of type {found.__name__}, not {wanted}"
                hint = "a value from ${…} is text" if found is str and wanted != "list" else ""
                yield warning("field-type", text, self.agent.document.span((*path, "default")), hint)

    def expressions(self) -> Iterator[Problem]:
        """Expressions can be parsed, and their names and references exist."""
        variables = ["state", *self.agent.variables]
        if self.agent.remote_skills and "skills" not in variables:
            variables.append("skills")
        for path, text in cel_expressions(self.definition):
            try:
                expression = compile_cel(text, null_as_false=True)
            except ExpressionError as error:
                message = f"this expression will fail when it is evaluated: {error}"
                yield warning("cel-syntax", message, self.graph.span(path), _quote_hint(text))
                continue
            try:
                expression.check_names([*variables, _RESPONSE] if "state_updates" in path else variables)
            except ExpressionError as error:
                where = self.graph.span_within(path, error.line, error.column)
                message = f"this expression refers to a name that does not exist: {error}"
                yield warning("cel-name", message, where, self._name_hint(expression))
            yield from self._check_declared(expression, path)

    def _name_hint(self, expression: Expression) -> str:
        """Return a hint for an unknown name. spec: "always accessed through the state prefix"."""
        for field in self.definition.state.fields_:
            if field.name in expression.names and field.name not in self.agent.variables:
                return f"fields are read from the state: state.{field.name}"
        if _RESPONSE in expression.names:
            return f"'{_RESPONSE}' is available only in the 'state_updates' of a call_llm node"
        if "skills" in expression.names and not self.agent.manifest.skills:
            return "'skills' is available only if the manifest declares any"
        reference = expression.reference
        return _quote_hint(expression.source) if reference is not None and len(reference) == 1 else ""

    def _check_declared(self, expression: Expression, path: DocumentPath) -> Iterator[Problem]:
        """Check references to items: `prompts["id"]`, `llms["id"]` and `skills["id"]`."""
        for section, id_ in sorted(expression.reads):
            if section in ("prompts", "llms", "skills"):
                declared = [item.id for item in getattr(self.agent.manifest, section)]
                if declared and id_ not in declared:
                    text = (
                        f"this expression refers to a name that does not exist: '{id_}' is not in '{section}'"
                    )
                    yield warning("cel-name", text, self.graph.span(path), did_you_mean(id_, declared))

    def undeclared_fields(self) -> Iterator[Problem]:
        """Nodes write, and expressions read, fields that the state declares."""
        declared = declared_fields(self.definition)
        for node, path in self.nodes:
            for field, below in written_fields(node):
                if field not in declared:
                    place: DocumentPath = (*path, *below)
                    where = self.graph.key_span(place) if below[-1] == field else self.graph.span(place)
                    hint = _field_hint(field, self.definition)
                    yield warning("undeclared-state", dropped_text(node.name, field), where, hint)
        for place, expression in cel_expressions(self.definition):
            for field in read_fields(expression):
                if field not in declared:
                    text = f"this expression reads '{field}', which the state does not declare"
                    hint = _field_hint(field, self.definition)
                    yield warning("undeclared-state", text, self.graph.span(place), hint)

    def tool_references(self) -> Iterator[Problem]:
        """Tools are registered; not checked if MCP servers or remote cards may add tools during a run.

        spec: `call_llm`, `tool_node`, tools.
        """
        agent = self.agent
        if agent.mcp_servers or agent.remote_skills or any(skill.card.mcps for skill in agent.skills.skills):
            return
        versions: dict[str, list[str]] = {}
        for tool in agent.tools.all():
            versions.setdefault(tool.id, []).append(tool.version)
        for node, path in self.nodes:
            for at, reference in enumerate(getattr(node.args, "tools", None) or ()):
                place = (*path, "args", "tools", at)
                if reference.id not in versions:
                    text = f"tool '{reference.id}' is not registered: the node will fail"
                    hint = did_you_mean(reference.id, versions)
                    yield warning("unknown-tool", text, self.graph.span((*place, "id")), hint)
                elif not any(same_version(known, reference.version) for known in versions[reference.id]):
                    text = f"tool '{reference.id}' has no version '{reference.version}': the node will fail"
                    hint = f"it has {', '.join(versions[reference.id])}"
                    yield warning("unknown-tool", text, self.graph.span((*place, "version")), hint)

    def versions(self) -> Iterator[Problem]:
        """Models, and agents that are bound as tools, are looked up by id alone: their version is the used one."""
        manifest = self.agent.manifest
        sub_agents = manifest.sub_agents[::-1]  # of several with the same id, the last is used
        if manifest.default_llm is not None:
            where = self.document.at(("default_llm",))
            yield from _check_version("llm", manifest.default_llm, manifest.llms, where)
        for node, path in self.nodes:
            if node.type != "call_llm":
                continue
            args = self.graph.at((*path, "args"))
            if node.args.llm is not None:
                yield from _check_version("llm", node.args.llm, manifest.llms, args.at(("llm",)))
            if isinstance(node.args.use_sub_agents_as_tools, list):
                for at, reference in enumerate(node.args.use_sub_agents_as_tools):
                    where = args.at(("use_sub_agents_as_tools", at))
                    yield from _check_version("agent", reference, sub_agents, where)

    def server_keys(self) -> Iterator[Problem]:
        """`headers` of MCP servers are for HTTP and SSE, `args` and `env` for stdio."""
        for at, server in enumerate(self.agent.manifest.mcp_servers):
            for key in ("headers",) if server.transport == "stdio" else ("args", "env"):
                if getattr(server, key):
                    what = f"'{key}' of MCP server '{server.id}'"
                    text = f"{what} has no effect with transport '{server.transport}'"
                    yield warning("no-effect", text, self.document.key_span(("mcp_servers", at, key)))

    def undeclared_skills(self) -> Iterator[Problem]:
        """Nodes use skills only if some are declared. spec: `load_skills`, "Tool binding modes"."""
        for node, path in self.nodes if not self.agent.manifest.skills else ():
            if node.type == "call_llm" and node.args.use_tools_from_loaded_skills:
                key, text = (
                    "use_tools_from_loaded_skills",
                    "binds the tools of skills, and the manifest declares no skills",
                )
            elif node.type == "load_skills":
                key, text = "skill_ids", "loads skills, and the manifest declares none"
            else:
                continue
            where = self.graph.key_span((*path, "args", key))
            yield warning("no-effect", f"node '{node.name}' {text}", where)

    def parts_without_effect(self) -> Iterator[Problem]:
        """Edges have no key of the other kind of edge, and `on_error` blocks are not empty."""
        for at, edge in enumerate(self.definition.graph.edges):
            key = "target" if edge.branches else "default"
            if getattr(edge, key) is not None:
                why = "together with 'branches'" if edge.branches else "without 'branches'"
                hint = "'default' is the target when no branch holds" if edge.branches else ""
                text = f"'{key}' of the edge from '{edge.source}' changes nothing {why}"
                yield warning("no-effect", text, self.graph.key_span(("edges", at, key)), hint)
        for node, path in self.nodes:
            if node.on_error is not None and node.on_error.retry is None and node.on_error.fallback is None:
                text = (
                    f"'on_error' of node '{node.name}' changes nothing: it has neither 'retry' nor 'fallback'"
                )
                yield warning("no-effect", text, self.graph.key_span((*path, "on_error")))

    def unreachable_nodes(self) -> Iterator[Problem]:
        """Every node can be reached."""
        places = ((node.name, self.graph.span((*path, "name"))) for node, path in self.nodes)
        yield from unreachable_nodes(transitions(self.definition.graph), places)

    def unfollowed_edges(self) -> Iterator[Problem]:
        """The first branch that holds is followed, and every edge of a node is. spec: `branches`."""
        edges = self.definition.graph.edges
        plain: set[tuple[str, str | None]] = set()
        branching = {edge.source for edge in edges if edge.branches}
        for at, edge in enumerate(edges):
            if edge.branches:
                yield from self._dead_branches(edge, ("edges", at))
                continue
            end = edge.source, edge.target
            if end in plain:
                text = f"a second edge from '{edge.source}' to '{edge.target}' changes nothing"
                yield warning("second-edge", text, self.graph.span(("edges", at)))
            elif edge.source in branching:
                text = f"this edge to '{edge.target}' is followed whatever branch of '{edge.source}' is taken"
                hint = (
                    f"for the case that no branch holds, write `default: {edge.target}` beside the branches"
                )
                yield warning("second-edge", text, self.graph.span(("edges", at)), hint)
            plain.add(end)

    def _dead_branches(self, edge: doc.Edge, path: DocumentPath) -> Iterator[Problem]:
        first: dict[str, int] = {}
        always: int | None = None
        for number, branch in enumerate(edge.branches or ()):
            span = self.graph.span((*path, "branches", number, "condition"))
            value = _constant(branch.condition)
            if always is not None:
                why = f"the condition in line {always} always holds"
            elif (line := first.get(branch.condition.strip())) is not None:
                why = f"its condition is that of an earlier one, in line {line}"
            else:
                why = "its condition never holds" if value is False else ""
            if why:
                yield warning("dead-branch", f"the branch to '{branch.target}' is never taken: {why}", span)
            elif value is True:
                always = span.line
            first.setdefault(branch.condition.strip(), span.line)
        if always is not None and edge.default is not None:
            text = f"'default' is never taken: the condition in line {always} always holds"
            yield warning("dead-branch", text, self.graph.span((*path, "default")))

    def refused_by_sherma(self) -> Iterator[Problem]:
        """The graph is none that sherma's LangGraph refuses although the document allows it. Such graphs run here."""
        for node, path in self.nodes:
            if taken := sorted({":", "|"}.intersection(node.name)):
                text = f"sherma refuses '{taken[0]}' in the name of a node: '{node.name}'"
                yield warning("reserved-name", text, self.graph.span((*path, "name")))
        branching: set[str] = set()
        for at, edge in enumerate(self.definition.graph.edges):
            if edge.branches and edge.source in branching:
                text = f"sherma refuses a second edge with branches from '{edge.source}'"
                hint = "one edge may have any number of branches"
                yield warning("second-edge", text, self.graph.span(("edges", at)), hint)
            if edge.branches:
                branching.add(edge.source)

    def custom_nodes(self) -> Iterator[Problem]:
        """A hook executes the custom nodes: `node_execute` or `node_exit`. spec: `custom`."""
        hooks = self.agent.hooks
        if any(not hook.overridden.isdisjoint(("node_execute", "node_exit")) for hook in hooks):
            return
        why = "none of the hooks has 'node_execute'" if hooks else "there are no hooks that could execute it"
        for node, path in self.nodes:
            if node.type == "custom":
                text = f"custom node '{node.name}' does nothing: {why}"
                yield warning("no-hooks", text, self.graph.span((*path, "name")))


def _constant(condition: str) -> object:
    """Return the value of a condition that reads nothing; None if it reads something, or has no value."""
    try:
        expression = compile_cel(condition, null_as_false=True)
        return None if expression.names else expression.evaluate({})
    except ExpressionError:  # reported by `expressions`
        return None


def _quote_hint(text: str) -> str:
    """Return a hint about missing quotes.

    spec: "String literals must be double-quoted inside the YAML string".
    """
    words = text.strip()
    is_text = _WORDS.fullmatch(words) and not _NAMES.search(words)
    return f"text needs quotes of its own: '\"{words}\"'" if is_text else ""


def _check_version(what: str, reference: Ref, declared: Sequence[Any], part: Document) -> Iterator[Problem]:
    """Check the version of a reference. `declared`: of several with the same id, the first is used."""
    used = next((item.version for item in declared if item.id == reference.id), "*")
    if _NUMBERS.fullmatch(reference.version) and not same_version(used, reference.version):
        text = f"version '{used}' of {what} '{reference.id}' is used, not '{reference.version}'"
        yield warning(f"unknown-{what}", text, part.span(("version",)), "it is found by its id alone")


MESSAGE_WRITERS: Final = ("tool_node", "call_agent", "load_skills")
"""Node types that write `messages` and do not require the field."""


def declared_fields(agent: doc.Agent) -> list[str]:
    """Return the fields that a node may write."""
    return [*(field.name for field in agent.state.fields_), INTERNAL_STATE_KEY]


def dropped_text(node: str, field: str) -> str:
    """Return the text of the warning that an update of an undeclared field is dropped."""
    return f"node '{node}' writes '{field}', which the state does not declare: it is dropped"


def dropped_warning(node: str, field: str, agent: doc.Agent, graph: Graph) -> str:
    """Return the warning of a run: the one reported at load if there was one, else with the node's location."""
    text = dropped_text(node, field)
    place = next((known.span for known in graph.nodes if known.name == node), None)
    found = Problem("undeclared-state", text, place, _field_hint(field, agent), "warning")
    return next((known for known in graph.warnings if known.message == text), found).one_line


def _field_hint(field: str, agent: doc.Agent) -> str:
    return did_you_mean(field, [field.name for field in agent.state.fields_])


def written_fields(node: doc.Node) -> Iterator[tuple[str, DocumentPath]]:
    """Yield the fields that a node writes, with their paths below the node."""
    if node.type in MESSAGE_WRITERS:
        yield "messages", ("name",)
    for section in ("state_updates", "values"):
        for field in getattr(node.args, section, None) or ():
            yield field, ("args", section, field)
    if node.type == "data_transform":
        try:
            yield from (
                (field, ("args", "expression")) for field in sorted(written_keys(node.args.expression))
            )
        except ExpressionError:
            return  # reported by `expressions`


def read_fields(text: str) -> list[str]:
    """Return the fields that an expression reads."""
    try:
        return sorted(field for name, field in compile_cel(text, null_as_false=True).reads if name == "state")
    except ExpressionError:
        return []


def transitions(graph: doc.Graph) -> Iterator[tuple[str, str]]:
    """Yield the transitions of a graph: entry, edges, branches, injected tool nodes, fallbacks."""
    if graph.entry_point is not None:
        yield START, graph.entry_point
    for edge in graph.edges:
        branching = [*(branch.target for branch in edge.branches or ()), edge.default]
        for target in branching if edge.branches else [edge.target]:
            if target is not None:
                yield edge.source, target
    yield from graph.injected.items()
    for node in graph.nodes:
        if node.on_error is not None and node.on_error.fallback is not None:
            yield node.name, node.on_error.fallback
