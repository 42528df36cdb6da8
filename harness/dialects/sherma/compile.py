"""A sherma manifest compiled to a Graph. One function for each section of the documentation, in its order."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from harness.dialects.kit.manifest import Problems, imported, imported_hook, only_document
from harness.dialects.request import LoadRequest
from harness.dialects.sherma import document as doc
from harness.dialects.sherma import graph_document as graph_doc
from harness.dialects.sherma.agent import Agent, MCPDeclaration, SubAgent
from harness.dialects.sherma.hooks import POINTS
from harness.dialects.sherma.lifecycle import lifecycle
from harness.dialects.sherma.nodes import BODIES
from harness.dialects.sherma.prompt_list import read_instructions
from harness.dialects.sherma.routing import edges_and_routers
from harness.dialects.sherma.rules import Rules, tool_node_name, wants_tool_node
from harness.dialects.sherma.section import INTERNAL
from harness.dialects.sherma.skill_tools import skill_tools
from harness.dialects.sherma.skills import Skills, read_skill
from harness.dialects.sherma.stand_in import offer_stand_in
from harness.dialects.sherma.sub_agents import sub_agent, sub_agent_tool
from harness.dialects.sherma.tools import Tool, ToolRegistry, python_tool
from harness.dialects.sherma.visit import around
from harness.errors import ManifestError, Problem, Span
from harness.graph.effects import MCPEndpoint
from harness.graph.messages import MessageLog, append_messages, to_messages
from harness.graph.model import Channel, Graph, Node
from harness.source.document import Document, DocumentPath
from harness.source.environment import substitute
from harness.source.models import validate
from harness.source.suggest import did_you_mean

T = TypeVar("T")


def load(request: LoadRequest) -> Graph:
    """The graph of the agent that a request names.

    Raises:
        ManifestError: with all problems.
    """
    document = substitute(only_document(request, what="a sherma manifest"), request.env)
    try:
        manifest = validate(doc.Manifest, document)
    except ManifestError as error:
        # A missing key may be there, but misspelt.
        problems = [*error.problems, *_unknown_keys(document)]
        raise ManifestError([_without_values(problem, request.env) for problem in problems]) from None
    name = chosen_agent(manifest, document, request.agent)
    rules = Rules(manifest, name, document)
    sections = _Sections(request, document, manifest)
    agent = sections.agent(name)
    sections.problems.add(rules.problems())
    sections.problems.raise_errors()
    warnings = [*_unknown_keys(document), *rules.warnings()]
    if request.agent is not None and request.agent != name:
        text = f"agent '{request.agent}' is not in the manifest; its only agent '{name}' is run"
        warnings.append(Problem("other-agent", text, document.span(("agents",)), severity="warning"))
    return _graph(agent, document, warnings)


def _without_values(problem: Problem, env: Mapping[str, str]) -> Problem:
    """The problem with the values of variables, which may be secrets, replaced by their names."""
    message = problem.message
    for name, value in env.items():
        if len(value) > 3:
            message = message.replace(value, f"${{{name}}}")
    return replace(problem, message=message)


def chosen_agent(manifest: doc.Manifest, document: Document, wanted: str | None) -> str:
    """The agent of that id; else the only one. spec: "id must match an agent key in the YAML"."""
    names = list(manifest.agents)
    if wanted in manifest.agents:
        return str(wanted)
    if len(names) == 1:
        return names[0]
    where = document.span(("agents",))
    if not names:
        raise ManifestError(Problem("no-agent", "the manifest defines no agent", where))
    if wanted is None:
        text = f"the manifest has several agents: say which ({', '.join(names)})"
        raise ManifestError(Problem("which-agent", text, where))
    text = f"agent '{wanted}' is not in the manifest"
    raise ManifestError(Problem("unknown-agent", text, where, did_you_mean(wanted, names)))


def _unknown_keys(document: Document) -> Iterator[Problem]:
    """Warnings of keys that the documentation does not know: sherma ignores them."""
    try:
        validate(doc.Manifest, document, extra="forbid")
    except ManifestError as refusal:
        for problem in refusal.problems:
            if problem.code == "unknown-key":
                yield replace(problem, message=f"{problem.message} is ignored", severity="warning")


class _Sections:
    """Compiles the sections of a manifest and collects what is wrong with them."""

    def __init__(self, request: LoadRequest, document: Document, manifest: doc.Manifest) -> None:
        self.request, self.document, self.manifest = request, document, manifest
        self.problems = Problems()

    def agent(self, name: str) -> Agent:
        """The agent, with everything it can use."""
        offer_stand_in()
        skills = self.skills()
        sub_agents = self.sub_agents()
        registry = ToolRegistry(self.tools())
        if skills:
            for tool in (*skill_tools(skills), *(tool for skill in skills.skills for tool in skill.tools)):
                registry.add(tool)
        for declared in sub_agents.values():
            registry.add(sub_agent_tool(declared))
        return Agent(
            name=name,
            definition=self.manifest.agents[name],
            manifest=self.manifest,
            variables=self.variables(skills),
            tools=registry,
            skills=skills,
            llms={llm.id: llm for llm in self.manifest.llms},
            sub_agents=sub_agents,
            hooks=self.hooks(),
            mcp_servers=self.mcp_servers(),
            remote_skills=self.remote_skills(),
            folders=self.request.folders,
        )

    def variables(self, skills: Skills) -> Mapping[str, Any]:
        """spec: CEL, the variables `prompts`, `llms` and `skills` beside `state`."""
        variables: dict[str, Any] = {
            "prompts": {
                prompt.id: {"instructions": self._instructions(prompt, at)}
                for at, prompt in enumerate(self.manifest.prompts)
            },
            "llms": {llm.id: {"model_name": llm.model_name} for llm in self.manifest.llms},
        }
        if skills:
            variables["skills"] = {skill["id"]: skill for skill in skills.listed()}
        if self.manifest.data:
            variables["data"] = self.manifest.data
        return variables

    def _instructions(self, prompt: doc.Prompt, at: int) -> str:
        """spec: `instructions` or `instructions_path`."""
        if prompt.instructions_path is None:
            return prompt.instructions or ""
        where = self.document.span(("prompts", at, "instructions_path"))
        text = ""
        with self.problems.collecting():
            path = self.request.resolve(prompt.instructions_path, where)
            text = read_instructions(path, where)
        return text

    def tools(self) -> Iterator[Tool]:
        """spec: `tools`."""
        for at, tool in enumerate(self.manifest.tools):
            path = ("tools", at, "import_path")
            found = self._import(tool.import_path, path)
            if found is not None:
                made = self._made(partial(python_tool, tool.id, tool.version, found), path)
                if made is not None:
                    yield made

    def skills(self) -> Skills:
        """spec: `skills`. Cards are read and their tools imported when the manifest is loaded."""
        skills = Skills()
        for at, skill in enumerate(self.manifest.skills):
            if skill.skill_card_path is None:
                continue
            where = self.document.span(("skills", at, "skill_card_path"))
            with self.problems.collecting():
                path = self.request.resolve(skill.skill_card_path, where)
                skills.skills.append(read_skill(skill, path, self.request))
        return skills

    def remote_skills(self) -> tuple[tuple[doc.Skill, Span], ...]:
        """spec: `skills`, url. Their cards are fetched from the world when a run begins."""
        return tuple(
            (skill, self.document.span(("skills", at, "url")))
            for at, skill in enumerate(self.manifest.skills)
            if skill.url is not None
        )

    def hooks(self) -> tuple[Any, ...]:
        """spec: `hooks`. The caller's hooks first, then the manifest's; a run gets fresh instances."""
        installed: list[Any] = []
        for given in self.request.hooks:
            with self.problems.collecting():
                installed.append(imported_hook(given, self.request))
        for at, declared in enumerate(self.manifest.hooks):
            path = ("hooks", at, "import_path")
            found = self._import(declared.import_path, path)
            if found is not None:
                installed.append(found)
                if not any(hasattr(found, point) for point in POINTS):
                    text = f"'{declared.import_path}' is not a hook: it has none of the hook methods"
                    self.problems.refuse("not-a-hook", text, self.document.span(path), ", ".join(POINTS))
        return tuple(installed)

    def sub_agents(self) -> Mapping[str, SubAgent]:
        """spec: `sub_agents`. Files must be there; they are parsed when they are first called."""
        agents: dict[str, SubAgent] = {}
        for at, declared in enumerate(self.manifest.sub_agents):
            imported = None
            path = None
            if declared.import_path is not None:
                imported = self._import(declared.import_path, ("sub_agents", at, "import_path"))
            if declared.yaml_path is not None:
                where = self.document.span(("sub_agents", at, "yaml_path"))
                with self.problems.collecting():
                    path = self.request.resolve(declared.yaml_path, where)
            agents[declared.id] = sub_agent(declared, self.request, path, imported, load)
        return agents

    def mcp_servers(self) -> tuple[MCPDeclaration, ...]:
        """spec: `mcp_servers`. Their tools are listed by the world when a run begins."""
        return tuple(
            MCPDeclaration(
                server,
                MCPEndpoint(
                    server.id,
                    server.transport,
                    server.url,
                    server.headers,
                    server.command,
                    server.args,
                    server.env,
                ),
                self.document.span(("mcp_servers", at)),
            )
            for at, server in enumerate(self.manifest.mcp_servers)
        )

    def _import(self, dotted: str, path: DocumentPath) -> Any:
        with self.problems.collecting():
            return imported(dotted, self.request.folders, self.document.span(path))

    def _made(self, make: Callable[[], T], path: DocumentPath) -> T | None:
        """What `make` makes of a user's object; None, and a problem, if it fails."""
        try:
            return make()
        except Exception as error:
            text = f"this is not a tool: {type(error).__name__}: {error}"
            self.problems.refuse("not-a-tool", text, self.document.span(path))
            return None


def _graph(agent: Agent, document: Document, warnings: Sequence[Problem]) -> Graph:
    definition = agent.definition
    places: DocumentPath = ("agents", agent.name, "graph", "nodes")
    nodes = [
        Node(node.name, node.type, around(node, BODIES[node.type]), document.span((*places, at)))
        for at, node in enumerate(definition.graph.nodes)
    ]
    nodes += [
        _injected(node, document.span((*places, at)))
        for at, node in enumerate(definition.graph.nodes)
        if wants_tool_node(node, definition.graph)
    ]
    edges, routers = edges_and_routers(agent, document)
    limit = definition.langgraph_config.recursion_limit if definition.langgraph_config else None
    return Graph(
        name=agent.name,
        dialect="sherma",
        nodes=tuple(nodes),
        edges=tuple(edges),
        channels=tuple(_channels(definition)),
        routers=routers,
        lifecycle=lifecycle(agent),
        recursion_limit=limit or 25,
        # A hook may pause a node by itself.
        may_pause=bool(agent.hooks) or any(node.kind == "interrupt" for node in nodes),
        warnings=tuple(warnings),
    )


def _injected(node: Any, span: Span) -> Node:
    """spec: "Auto-injected tool_node": serves every registered tool."""
    definition = graph_doc.ToolNodeNode(
        name=tool_node_name(node), type="tool_node", args=graph_doc.ToolNode()
    )
    return Node(definition.name, "tool_node", around(definition, BODIES["tool_node"]), span)


def _channels(definition: doc.Agent) -> Iterator[Channel]:
    """spec: `state`. `messages` accumulates; other fields are replaced; a default is the initial value."""
    for field in definition.state.fields_:
        if field.name == "messages" and definition.keeps_messages:
            yield Channel(field.name, append_messages, partial(_log, field.default))
        elif field.name != INTERNAL:
            yield Channel(
                field.name, initial=partial(copy.deepcopy, field.default) if field.has_default else None
            )
    yield Channel(INTERNAL, _merge)


def _log(messages: Any) -> MessageLog:
    written = to_messages(messages or [])
    return MessageLog(
        [m if m.id else m.model_copy(update={"id": f"default-{at}"}) for at, m in enumerate(written)]
    )


def _merge(left: Mapping[str, Any], right: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**left, **right}
