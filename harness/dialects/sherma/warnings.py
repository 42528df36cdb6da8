"""Warnings about valid but probably mistaken manifests. One function per kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from harness.dialects.kit.manifest import reachable
from harness.dialects.sherma import document as doc
from harness.dialects.sherma.agent import Agent, cel_expressions
from harness.dialects.sherma.document import INTERNAL_STATE_KEY, Graph, Node, Ref
from harness.dialects.sherma.tools import same_version
from harness.errors import ExpressionError, ManifestError, Problem, Span
from harness.expressions.cel import Expression, written_keys
from harness.expressions.cel import compile as compile_cel
from harness.graph.model import START
from harness.graph.model import Graph as ModelGraph
from harness.source.display import did_you_mean
from harness.source.document import Document, DocumentPath
from harness.source.models import validate

_RESPONSE: Final = "llm_response"
_WORDS: Final = re.compile(r"[A-Za-z][\w ,.;:!?'’-]{0,60}")
"""Matches invalid expressions that are probably text without quotes."""
_NAMES: Final = re.compile(r"\b(state|prompts|llms|skills|llm_response)\b")


def expression_warnings(agent: Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Yield the warnings for all expressions of an agent. `path` is that of its graph."""
    variables = ["state", *agent.variables]
    if agent.remote_skills and "skills" not in variables:
        variables.append("skills")
    for below, text in cel_expressions(agent.definition):
        place = (*path, *below)
        try:
            expression = compile_cel(text, null_as_false=True)
        except ExpressionError as error:
            message = f"this expression will fail when it is evaluated: {error}"
            yield Problem("cel-syntax", message, document.span(place), _quote_hint(text), "warning")
            continue
        try:
            expression.check_names([*variables, _RESPONSE] if "state_updates" in below else variables)
        except ExpressionError as error:
            where = document.span_within(place, error.line, error.column)
            message = f"this expression refers to a name that does not exist: {error}"
            yield Problem("cel-name", message, where, _name_hint(expression, agent), "warning")
        yield from _check_declared(expression, agent, document, place)


def _quote_hint(text: str) -> str:
    """Return a hint about missing quotes.

    spec: "String literals must be double-quoted inside the YAML string".
    """
    words = text.strip()
    is_text = _WORDS.fullmatch(words) and not _NAMES.search(words)
    return f"text needs quotes of its own: '\"{words}\"'" if is_text else ""


def _name_hint(expression: Expression, agent: Agent) -> str:
    """Return a hint for an unknown name. spec: "always accessed through the state prefix"."""
    for field in agent.definition.state.fields_:
        if field.name in expression.names and field.name not in agent.variables:
            return f"fields are read from the state: state.{field.name}"
    if _RESPONSE in expression.names:
        return f"'{_RESPONSE}' is available only in the 'state_updates' of a call_llm node"
    if "skills" in expression.names and not agent.manifest.skills:
        return "'skills' is available only if the manifest declares any"
    reference = expression.reference
    return _quote_hint(expression.source) if reference is not None and len(reference) == 1 else ""


def _check_declared(
    expression: Expression, agent: Agent, document: Document, place: DocumentPath
) -> Iterator[Problem]:
    """Yield references to undeclared items in `prompts["id"]`, `llms["id"]` and `skills["id"]`."""
    declared = {
        "prompts": [prompt.id for prompt in agent.manifest.prompts],
        "llms": [llm.id for llm in agent.manifest.llms],
        "skills": [skill.id for skill in agent.manifest.skills],
    }
    for section, id_ in sorted(expression.reads):
        if declared.get(section) and id_ not in declared[section]:
            message = f"this expression refers to a name that does not exist: '{id_}' is not in '{section}'"
            hint = did_you_mean(id_, declared[section])
            yield Problem("cel-name", message, document.span(place), hint, "warning")


_HTTP_KEYS: Final = ("headers",)
_STDIO_KEYS: Final = ("args", "env")


def no_effect_warnings(agent: Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Yield the warnings of an agent. `path` is that of the graph."""
    yield from _check_servers(agent, document)
    if not agent.manifest.skills:
        yield from _check_skills(agent, document, path)
    yield from _check_graph(agent.definition.graph, document, path)


def _check_servers(agent: Agent, document: Document) -> Iterator[Problem]:
    """Check the keys of MCP servers: `headers` are for HTTP and SSE, `args` and `env` for stdio."""
    for at, server in enumerate(agent.manifest.mcp_servers):
        for key in _HTTP_KEYS if server.transport == "stdio" else _STDIO_KEYS:
            if getattr(server, key):
                text = (
                    f"'{key}' of MCP server '{server.id}' has no effect with transport '{server.transport}'"
                )
                where = document.key_span(("mcp_servers", at, key))
                yield Problem("no-effect", text, where, severity="warning")


def _check_skills(agent: Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Report nodes that use skills although none are declared. spec: `load_skills`, "Tool binding modes"."""
    for at, node in enumerate(agent.definition.graph.nodes):
        args = (*path, "nodes", at, "args")
        if node.type == "call_llm" and node.args.use_tools_from_loaded_skills:
            text = f"node '{node.name}' binds the tools of skills, and the manifest declares no skills"
            where = document.key_span((*args, "use_tools_from_loaded_skills"))
        elif node.type == "load_skills":
            text = f"node '{node.name}' loads skills, and the manifest declares none"
            where = document.key_span((*args, "skill_ids"))
        else:
            continue
        yield Problem("no-effect", text, where, severity="warning")


def _check_graph(graph: Graph, document: Document, path: DocumentPath) -> Iterator[Problem]:
    for at, edge in enumerate(graph.edges):
        key = "target" if edge.branches else "default"
        if getattr(edge, key) is not None:
            why = "together with 'branches'" if edge.branches else "without 'branches'"
            hint = "'default' is the target when no branch holds" if edge.branches else ""
            where = document.key_span((*path, "edges", at, key))
            text = f"'{key}' of the edge from '{edge.source}' changes nothing {why}"
            yield Problem("no-effect", text, where, hint, "warning")
    for at, node in enumerate(graph.nodes):
        if node.on_error is not None and node.on_error.retry is None and node.on_error.fallback is None:
            text = f"'on_error' of node '{node.name}' changes nothing: it has neither 'retry' nor 'fallback'"
            where = document.key_span((*path, "nodes", at, "on_error"))
            yield Problem("no-effect", text, where, severity="warning")


_NUMBERS = re.compile(r"\d+(\.\d+)*")


def reference_warnings(agent: Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Yield the warnings of an agent. `path` is that of the graph."""
    yield from _check_tools(agent, document, path)
    yield from _check_versions(agent, document, path)


def _check_tools(agent: Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Check references to tools; skipped if MCP servers or remote cards may add tools during a run.

    spec: `call_llm`, `tool_node`, tools.
    """
    cards = [skill.card for skill in agent.skills.skills]
    if agent.mcp_servers or agent.remote_skills or any(card.mcps for card in cards):
        return
    versions: dict[str, list[str]] = {}
    for tool in agent.tools.all():
        versions.setdefault(tool.id, []).append(tool.version)
    for place, reference in _tool_references(agent):
        if reference.id not in versions:
            text = f"tool '{reference.id}' is not registered: the node will fail"
            where = document.span((*path, *place, "id"))
            yield Problem("unknown-tool", text, where, did_you_mean(reference.id, versions), "warning")
        elif not any(same_version(known, reference.version) for known in versions[reference.id]):
            text = f"tool '{reference.id}' has no version '{reference.version}': the node will fail"
            hint = f"it has {', '.join(versions[reference.id])}"
            where = document.span((*path, *place, "version"))
            yield Problem("unknown-tool", text, where, hint, "warning")


def _tool_references(agent: Agent) -> Iterator[tuple[DocumentPath, Ref]]:
    for at, node in enumerate(agent.definition.graph.nodes):
        for number, reference in enumerate(getattr(node.args, "tools", None) or ()):
            yield ("nodes", at, "args", "tools", number), reference


def _check_versions(agent: Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Check the versions of models and of agents that are bound as tools, which are looked up by id alone."""
    manifest = agent.manifest
    sub_agents = manifest.sub_agents[::-1]  # of several with the same id, the last is used
    default = manifest.default_llm
    if default is not None:
        yield from _check_version("llm", default, manifest.llms, document, ("default_llm",))
    for at, node in enumerate(agent.definition.graph.nodes):
        args = (*path, "nodes", at, "args")
        if node.type == "call_llm" and node.args.llm is not None:
            yield from _check_version("llm", node.args.llm, manifest.llms, document, (*args, "llm"))
        if node.type == "call_llm" and isinstance(node.args.use_sub_agents_as_tools, list):
            for number, reference in enumerate(node.args.use_sub_agents_as_tools):
                place = (*args, "use_sub_agents_as_tools", number)
                yield from _check_version("agent", reference, sub_agents, document, place)


def _check_version(
    what: str, reference: Ref, declared: Sequence[Any], document: Document, path: DocumentPath
) -> Iterator[Problem]:
    """Check one version. `declared`: of several with the same id, the first is used."""
    used = next((item.version for item in declared if item.id == reference.id), "*")
    is_plain = _NUMBERS.fullmatch(reference.version) is not None
    if is_plain and not same_version(used, reference.version):
        text = f"version '{used}' of {what} '{reference.id}' is used, not '{reference.version}'"
        where = document.span((*path, "version"))
        yield Problem(f"unknown-{what}", text, where, "it is found by its id alone", "warning")


MESSAGE_WRITERS = ("tool_node", "call_agent", "load_skills")
"""Node types that write `messages` and do not require the field."""


def declared_fields(agent: doc.Agent) -> list[str]:
    """Return the fields that a node may write."""
    return [*(field.name for field in agent.state.fields_), INTERNAL_STATE_KEY]


def undeclared_fields(agent: doc.Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Yield warnings about undeclared fields in the manifest. `path` is that of the graph."""
    declared = declared_fields(agent)

    def warning(text: str, field: str, where: Span) -> Problem:
        return Problem("undeclared-state", text, where, _hint(field, agent), "warning")

    for at, node in enumerate(agent.graph.nodes):
        for field, below in _written_fields(node):
            if field not in declared:
                place = (*path, "nodes", at, *below)
                where = document.key_span(place) if below[-1] == field else document.span(place)
                yield warning(dropped_text(node.name, field), field, where)
    for below, text in cel_expressions(agent):
        for field in _read_fields(text):
            if field not in declared:
                text = f"this expression reads '{field}', which the state does not declare"
                yield warning(text, field, document.span((*path, *below)))


def dropped_text(node: str, field: str) -> str:
    """Return the text of the warning that an update of an undeclared field is dropped."""
    return f"node '{node}' writes '{field}', which the state does not declare: it is dropped"


def dropped_warning(node: str, field: str, agent: doc.Agent, graph: ModelGraph) -> str:
    """Return the warning of a run: the one reported at load if there was one, else with the node's location."""
    text = dropped_text(node, field)
    place = next((known.span for known in graph.nodes if known.name == node), None)
    found = Problem("undeclared-state", text, place, _hint(field, agent), "warning")
    return next((known for known in graph.warnings if known.message == text), found).one_line


def _hint(field: str, agent: doc.Agent) -> str:
    return did_you_mean(field, [field.name for field in agent.state.fields_])


def _written_fields(node: Node) -> Iterator[tuple[str, DocumentPath]]:
    """Yield the fields that a node writes, with their paths below the node."""
    if node.type in MESSAGE_WRITERS:
        yield "messages", ("name",)
    for section in ("state_updates", "values"):
        for field in getattr(node.args, section, None) or ():
            yield field, ("args", section, field)
    if node.type == "data_transform":
        try:
            for field in sorted(written_keys(node.args.expression)):
                yield field, ("args", "expression")
        except ExpressionError:
            return  # reported by expression_warnings


def _read_fields(text: str) -> list[str]:
    try:
        return sorted(field for name, field in compile_cel(text, null_as_false=True).reads if name == "state")
    except ExpressionError:
        return []


def unknown_keys(document: Document) -> Iterator[Problem]:
    """Yield undocumented keys, which sherma ignores."""
    try:
        validate(doc.Manifest, document, extra="forbid")
    except ManifestError as refusal:
        for problem in refusal.problems:
            if problem.code == "unknown-key":
                yield replace(problem, message=f"{problem.message} is ignored", severity="warning")


_BY_ID: Final = ("sub_agents", "mcp_servers")
_BY_VERSION: Final = ("prompts", "llms", "tools", "skills")


def duplicate_declarations(manifest: doc.Manifest, document: Document) -> Iterator[Problem]:
    """Yield duplicate declarations of an id or a version: sherma's registries keep only one.

    Versions of a sub-agent are told apart by call_agent nodes alone.
    """
    nodes = (node for agent in manifest.agents.values() for node in agent.graph.nodes)
    called = {node.args.agent.id for node in nodes if node.type == "call_agent"}
    for section in (*_BY_VERSION, *_BY_ID):
        seen: set[tuple[str, str]] = set()
        for at, declared in enumerate(getattr(manifest, section)):
            by_version = section in _BY_VERSION or (section == "sub_agents" and declared.id in called)
            name = (declared.id, declared.version if by_version else "")
            if name in seen:
                version = f" with version '{declared.version}'" if by_version else ""
                text = f"'{declared.id}' is defined twice in '{section}'{version}: only one of them is used"
                where = document.span((section, at, "id"))
                yield Problem("duplicate-name", text, where, severity="warning")
            seen.add(name)


def agent_warnings(agent: Agent, document: Document) -> Iterator[Problem]:
    """Yield all warnings of an agent."""
    definition = agent.definition
    graph: DocumentPath = ("agents", agent.name, "graph")
    yield from _check_field_types(definition, document, ("agents", agent.name, "state", "fields"))
    yield from expression_warnings(agent, document, graph)
    yield from undeclared_fields(definition, document, graph)
    yield from reference_warnings(agent, document, graph)
    yield from no_effect_warnings(agent, document, graph)
    yield from _check_reachable(definition, document, graph)
    yield from _refused_by_sherma(definition, document, graph)
    yield from _check_custom_nodes(agent, document, graph)


def _check_field_types(agent: doc.Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    for at, field in enumerate(agent.state.fields_):
        if field.type not in doc.FIELD_TYPES:
            text = f"'{field.type}' is not a type of state fields ({', '.join(doc.FIELD_TYPES)})"
            hint = did_you_mean(field.type, list(doc.FIELD_TYPES), listing=False)
            yield Problem("field-type", text, document.span((*path, at, "type")), hint, "warning")
            continue
        wanted = "list" if field.name == "messages" else field.type
        found = type(field.default)
        if field.default is not None and found not in doc.FIELD_TYPES[wanted]:
            text = f"the default of state field '{field.name}' is of type {found.__name__}, not {wanted}"
            hint = "a value from ${…} is text" if found is str and wanted != "list" else ""
            yield Problem("field-type", text, document.span((*path, at, "default")), hint, "warning")


def _check_custom_nodes(agent: Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Report custom nodes without a hook that executes them: `node_execute` or `node_exit`. spec: `custom`."""
    if any(not hook.overridden.isdisjoint(("node_execute", "node_exit")) for hook in agent.hooks):
        return
    why = (
        "none of the hooks has 'node_execute'" if agent.hooks else "there are no hooks that could execute it"
    )
    for at, node in enumerate(agent.definition.graph.nodes):
        if node.type == "custom":
            text = f"custom node '{node.name}' does nothing: {why}"
            where = document.span((*path, "nodes", at, "name"))
            yield Problem("no-hooks", text, where, severity="warning")


def _check_reachable(agent: doc.Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    graph = agent.graph
    reached = reachable(START, _transitions(graph))
    for at, node in enumerate(graph.nodes):
        if node.name not in reached:
            text = f"node '{node.name}' can never run: nothing leads to it"
            where = document.span((*path, "nodes", at, "name"))
            yield Problem("unreachable-node", text, where, severity="warning")


def _refused_by_sherma(agent: doc.Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Report graphs that sherma's LangGraph refuses although the document allows them. They run here."""
    for at, node in enumerate(agent.graph.nodes):
        if taken := sorted({":", "|"}.intersection(node.name)):
            text = f"sherma refuses '{taken[0]}' in the name of a node: '{node.name}'"
            where = document.span((*path, "nodes", at, "name"))
            yield Problem("reserved-name", text, where, severity="warning")
    branching: set[str] = set()
    for at, edge in enumerate(agent.graph.edges):
        if edge.branches and edge.source in branching:
            text = f"sherma refuses a second edge with branches from '{edge.source}'"
            hint = "one edge may have any number of branches"
            yield Problem("second-edge", text, document.span((*path, "edges", at)), hint, "warning")
        if edge.branches:
            branching.add(edge.source)


def _transitions(graph: Graph) -> Iterator[tuple[str, str]]:
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
