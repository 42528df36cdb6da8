"""Compilation of a graph agent to a Graph: document, structure, validator, warnings, then nodes and edges."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache, partial
from typing import Any, Final

from pydantic import ValidationError

from harness.dialects.kit.manifest import Problems, input_values, only_document, refuse_deep_nesting
from harness.dialects.loki import document as doc
from harness.dialects.loki.declared import declared_data
from harness.dialects.loki.dialect import MANIFEST
from harness.dialects.loki.document import INITIAL_PROMPT, GraphFile
from harness.dialects.loki.model_nodes import CONFIG, ModelSettings, is_file_name
from harness.dialects.loki.nodes import OUTPUT, AgentContext, node_function
from harness.dialects.loki.routing import beside_others, edges_and_routers, reducers_of
from harness.dialects.loki.rules import GraphRules
from harness.dialects.loki.tool_universe import SKILL_TOOLS, Skills, ToolUniverse, UnknownTool
from harness.dialects.loki.warnings import FieldRules, TemplateRules, schema_warnings
from harness.dialects.request import LoadRequest
from harness.engine.context import RunContext
from harness.errors import HarnessError, ManifestError, Problem, Span
from harness.graph.model import (
    Graph,
    Lifecycle,
    NestedGraph,
    Node,
    NodeEntry,
    NodeFunction,
    Outside,
    State,
    Vocabulary,
)
from harness.source.display import did_you_mean
from harness.source.document import Document, shown_path
from harness.source.models import validate


class VisitLimit(HarnessError):
    """A node that is entered more often than `max_loop_iterations` allows."""

    code = "visit-limit"


def lifecycle(context: AgentContext, document: Document) -> Lifecycle:
    """Return the lifecycle of a graph agent. Each input starts the graph from `initial_state`."""
    graph = context.graph

    async def prepare(run: RunContext) -> None:
        if graph.settings.validate_before_run:
            await _check_functions(context, document, run)

    async def accept(value: Any, run: RunContext) -> Mapping[str, Any]:
        run.resources.pop(OUTPUT, None)  # of the turn before
        expected = "an input is text (initial_prompt) or a mapping of state keys"
        return {**deepcopy(graph.initial_state), **input_values(value, INITIAL_PROMPT, expected)}

    async def finish(_state: State, run: RunContext) -> Any:
        return run.resources.get(OUTPUT)

    def guard(entry: NodeEntry) -> Exception | None:
        most, timeout = graph.settings.max_loop_iterations, graph.settings.timeout
        if entry.nth > most:
            return VisitLimit(f"Node '{entry.node}' visited {entry.nth} times (max_loop_iterations={most})")
        if timeout is not None and entry.elapsed_s > timeout:
            passed = f"{entry.elapsed_s:g} s have passed, and its timeout is {timeout:g} s"
            return TimeoutError(f"the graph timed out before node '{entry.node}': {passed}")
        return None

    return Lifecycle(prepare=prepare, accept=accept, guard=guard, finish=finish)


async def _check_functions(context: AgentContext, document: Document, run: RunContext) -> None:
    """Check whitelist entries against the functions of the agent's MCP servers.

    spec: "Each entry is validated at startup".

    Raises:
        ManifestError: an entry is neither a tool of the agent nor a function of its servers.
    """
    problems = []
    for id_, node in context.graph.of(doc.LLMNode).items():
        for index, entry in enumerate(node.tools):
            if entry in context.tools.names():
                continue
            try:
                await context.tools.select([entry], run)
            except UnknownTool as error:
                where = document.span(("nodes", id_, "tools", index))
                hint = did_you_mean(entry, error.known, listing=False)
                problems.append(Problem("unknown-tool", f"node '{id_}': {error}", where, hint))
    if problems:
        raise ManifestError(problems)


def environment_of(graph: GraphFile, request: LoadRequest) -> dict[str, str]:
    """Return the environment of the scripts and tools of an agent."""
    defaults = {_env_name(each.name): each.default for each in graph.variables if each.default is not None}
    return {**defaults, **request.env}


def variable_warnings(graph: GraphFile, document: Document, request: LoadRequest) -> Iterator[Problem]:
    """Yield a warning of each variable without a value. Loki asks the user for it, or does not start."""
    given = environment_of(graph, request)
    for index, each in enumerate(graph.variables):
        if (name := _env_name(each.name)) not in given:
            text = f"the variable '{each.name}' has neither a default nor a value"
            hint = f"add {name} to the env of the scenario"
            yield Problem("missing-variable", text, document.span(("variables", index)), hint, "warning")


def _env_name(variable: str) -> str:
    return f"LLM_AGENT_VAR_{variable.replace('-', '_').upper()}"


def vocabulary(context: AgentContext) -> Vocabulary:
    """Return the vocabulary of a graph agent, with the agent's own model, which extracts structured output."""
    graph = context.graph
    asking, searching = list(graph.of(doc.LLMNode).values()), list(graph.of(doc.RagNode))
    spawning = {id_: node.agent for id_, node in graph.of(doc.AgentNode).items()}
    skilled = [spec.name for spec in SKILL_TOOLS if any(Skills.of(node, graph).names for node in asking)]
    names = context.tools.names_by_kind()
    names["tool"] += skilled
    return Vocabulary(
        names={
            "llm": [*(ModelSettings.of(node, graph).name for node in asking), ModelSettings.of(graph).name],
            **names,
            "agent": list(spawning.values()),
            "script": list(graph.of(doc.ScriptNode)),
            "retrieval": searching,
        },
        inside={
            **{id_: [context.child(agent).nested_graph()] for id_, agent in spawning.items()},
            **{
                id_: [NestedGraph((id_, node.branch), partial(context.branch, node))]
                for id_, node in graph.of(doc.MapNode).items()
            },
        },
        outside=[
            *context.tools.outside(node.tools for node in asking),
            *(Outside("tool", name, asked=(name,)) for name in skilled),
            *(Outside("retrieval", id_) for id_ in searching),
        ],
    )


_ORDINARY: Final = "an ordinary agent, which an agent node can spawn"


def load(request: LoadRequest, inherited: str | None = None) -> Graph:
    """Compile a graph agent. `inherited` is the model that it uses if it names none.

    Raises:
        ManifestError: with all mistakes in the structure of the document; else, unless `validate_before_run` is
            false, all errors of the validator.
    """
    with refuse_deep_nesting(request.path, "its values are nested too deep"):
        return _load(request, inherited)


def _load(request: LoadRequest, inherited: str | None) -> Graph:
    _check_folder(request)
    document = only_document(request, what="a Loki graph agent", yaml="1.2")
    if request.path.name == CONFIG and "nodes" not in (document.value or ()):
        text = f"a {CONFIG} is of {_ORDINARY}: a graph agent has a {MANIFEST}"
        raise ManifestError(Problem("missing-file", text, document.span()))
    graph = validate(GraphFile, document)
    folder = request.path.resolve().parent.name
    name = graph.name or folder
    if request.agent not in (None, name, folder):  # Loki names an agent by its folder
        text = f"this graph agent is '{name}', but '{request.agent}' was requested"
        hint = did_you_mean(str(request.agent), [name, folder])
        raise ManifestError(Problem("unknown-agent", text, document.span(("name",)), hint))
    graph = _with_app_settings(graph, document, request)
    env = environment_of(graph, request)
    tools = ToolUniverse.of(graph.global_tools, graph.mcp_servers, request, env)
    rules = GraphRules(graph, document, request, tools)
    problems = Problems()
    validated = graph.settings.validate_before_run
    problems.add(fault for fault in rules.errors() if validated or fault.code == "path-outside")
    problems.add(_unbuilt_bases(graph, document, request))
    problems.raise_errors()
    problems.add(rules.warnings())
    problems.add(FieldRules(graph, document, request).warnings())
    problems.add(schema_warnings(graph, document))
    problems.add(TemplateRules(graph, document).warnings())
    problems.add(tools.warnings(document))
    problems.add(variable_warnings(graph, document, request))
    graph = graph.with_model(inherited)
    context = AgentContext(graph, document, request, tools, rules.scripts, env, load)
    edges, routers = edges_and_routers(graph, document)
    pausing = (doc.ApprovalNode, doc.InputNode, doc.AgentNode)
    scripts = frozenset(graph.of(doc.ScriptNode).keys() - graph.branches.keys())
    merging = graph.runs_side_by_side

    def function(id_: str, node: doc.NodeSpec) -> NodeFunction:
        own = node_function(id_, node, context)
        return beside_others(own, graph.settings.max_concurrency) if merging else own

    nodes = tuple(
        Node(id_, node.type, function(id_, node), document.key_span(("nodes", id_)))
        for id_, node in graph.nodes.items()
        if id_ not in graph.branches
    )
    return Graph(
        name=name,
        dialect="loki",
        nodes=nodes,
        edges=tuple(edges),
        channels=(),
        routers=routers,
        lifecycle=lifecycle(context, document),
        recursion_limit=len(nodes) * graph.settings.max_loop_iterations + 1,
        may_pause=any(isinstance(n, pausing) for n in graph.nodes.values()),
        warnings=tuple(problems.warnings),
        open_state=True,
        merges=reducers_of(graph) if merging else None,
        tool_problems=lambda functions: list(rules.tools_of_nodes(functions)) if validated else [],
        takes_hooks=False,
        vocabulary=lambda: vocabulary(context),
        declared=cache(partial(declared_data, context)),
        explicit_ends=True,
        goto_anywhere=scripts,
    )


def _check_folder(request: LoadRequest) -> None:
    """Check that the folder of the agent has a `graph.yaml` and no `config.yaml`.

    spec: "The presence of `graph.yaml` is what marks an agent as a graph agent", "Both files present is an error".

    Raises:
        ManifestError: the folder has no `graph.yaml`, or has both files.
    """
    if request.text is None and os.path.isdir(request.path):  # `Path.is_dir` raises for some names
        text = f"the folder {shown_path(request.path)} is not a graph agent: it has no {MANIFEST}"
        near = next((path.name for path in sorted(request.path.glob("[gG]raph.*"))), None)
        hint = f"rename {near}" if near else ""
        if (request.path / CONFIG).is_file():
            hint = f"with a {CONFIG} it is {_ORDINARY}"
        raise ManifestError(Problem("missing-file", text, request.named_at, hint))
    if request.text is not None or request.path.name != MANIFEST:
        return
    config = request.path.with_name(CONFIG)
    request.record(config)
    if config.exists():
        text = f"the folder of an agent holds either {CONFIG} or {MANIFEST}, and {request.path.parent.name} has both"
        where = request.named_at or Span(shown_path(request.path), 1, 1)
        raise ManifestError(Problem("both-files", text, where, "remove one of them"))


def _with_app_settings(graph: GraphFile, document: Document, request: LoadRequest) -> GraphFile:
    """Return the graph whose rag nodes have the settings of the app that they omit."""
    nodes = dict(graph.nodes)
    for id_, node in graph.of(doc.RagNode).items():
        try:
            nodes[id_] = node.with_app_settings(request.env)
        except ValidationError as error:
            (wrong, *_) = error.errors(include_url=False)
            variable = doc.APP_SETTINGS[str(wrong["loc"][0])][0]
            text = f"{variable}, for the rag node '{id_}': {wrong['msg']}; found '{wrong['input']}'"
            raise ManifestError(Problem("bad-value", text, document.key_span(("nodes", id_)))) from None
    return graph.model_copy(update={"nodes": nodes})


def _unbuilt_bases(graph: GraphFile, document: Document, request: LoadRequest) -> Iterator[Problem]:
    """Yield the problems of rag nodes whose knowledge base is not built and cannot be built non-interactively.

    spec: "Knowledge base lifecycle".
    """
    for id_, node in graph.of(doc.RagNode).items():
        where = document.key_span(("nodes", id_))
        file = f"{id_}.yaml"
        if not is_file_name(file) or file in (MANIFEST, CONFIG):
            why = f"and {file} is a manifest" if is_file_name(file) else "which no file can have"
            text = f"the knowledge base of the rag node '{id_}' has the name of the node, {why}"
            yield Problem("bad-value", text, where, "rename the node")
            continue
        built = request.path.resolve().parent / file
        request.record(built)
        if node.unspecified and not built.is_file():
            text = f"the knowledge base of the rag node '{id_}' is not built, and building it requires user input"
            variables = ", ".join(doc.APP_SETTINGS[name][0] for name in node.unspecified)
            hint = f"set {', '.join(node.unspecified)}, or {variables} in the scenario's `env`"
            yield Problem("not-built", text, where, hint)
