"""Compiles a sherma manifest to a Graph. One function per section of the documentation, in its order."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from inspect import isfunction
from itertools import chain, count
from typing import Any, Final

from harness.dialects.kit.manifest import (
    Problems,
    UnimportedObject,
    is_class,
    load_hook,
    load_object,
    only_document,
)
from harness.dialects.kit.rules import warning
from harness.dialects.request import LoadRequest
from harness.dialects.sherma import document as doc
from harness.dialects.sherma.agent import Agent, Skills, SubAgent, read_skill, vocabulary
from harness.dialects.sherma.call_llm import node_function
from harness.dialects.sherma.declared import declared_data
from harness.dialects.sherma.document import INTERNAL_STATE_KEY
from harness.dialects.sherma.hooks import InstalledHook
from harness.dialects.sherma.lifecycle import edges_and_routers, lifecycle
from harness.dialects.sherma.nodes import NODE_FUNCTIONS, skill_tools
from harness.dialects.sherma.prompt_list import read_instructions
from harness.dialects.sherma.rules import AgentRules, duplicate_declarations, unknown_keys
from harness.dialects.sherma.server_hooks import InstalledServer
from harness.dialects.sherma.stand_in import offer_stand_in
from harness.dialects.sherma.sub_agents import Load, sub_agent, sub_agent_tool
from harness.dialects.sherma.tools import Tool, ToolRegistry, imported_tool
from harness.dialects.sherma.warnings import AgentWarnings
from harness.errors import ManifestError, Problem, Span
from harness.graph.messages import MessageLog, append_messages, to_messages
from harness.graph.model import Channel, Graph, Node
from harness.source.display import did_you_mean
from harness.source.document import Document, DocumentPath
from harness.source.environment import substitute
from harness.source.models import validate


class ManifestCompiler:
    """Compiles the sections of a manifest and collects their problems. `load` compiles sub-agents."""

    def __init__(self, request: LoadRequest, document: Document, manifest: doc.Manifest, load: Load) -> None:
        self.request, self.document, self.manifest, self.load = request, document, manifest, load
        self.problems = Problems()

    def agent(self, name: str) -> Agent:
        """Return the agent with everything it can use."""
        offer_stand_in()
        skills = self.skills()
        sub_agents = self.sub_agents()
        registry = ToolRegistry(self.tools())
        if skills:
            for tool in (*skill_tools(skills), *(tool for skill in skills.skills for tool in skill.tools)):
                registry.add(tool)
        for declared in sub_agents:
            registry.add(sub_agent_tool(declared))
        return Agent(
            name=name,
            manifest=self.manifest,
            document=self.document.at(("agents", name)),
            variables=self.variables(skills),
            tools=registry,
            skills=skills,
            sub_agents=sub_agents,
            hooks=self.hooks(),
            mcp_servers=tuple(
                (server, self.document.span(("mcp_servers", at)))
                for at, server in enumerate(self.manifest.mcp_servers)
            ),
            remote_skills=tuple(
                (skill, self.document.span(("skills", at, "url")))
                for at, skill in enumerate(self.manifest.skills)
                if skill.url is not None
            ),
            folders=self.request.folders,
        )

    def variables(self, skills: Skills) -> Mapping[str, Any]:
        """Return the CEL variables besides `state`: `prompts`, `llms`, `skills`, `data`. spec: CEL."""
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
        """Return the instructions of a prompt, inline or from the file of `instructions_path`."""
        if prompt.instructions_path is None:
            return prompt.instructions or ""
        where = self.document.span(("prompts", at, "instructions_path"))
        text = ""
        with self.problems.collecting():
            path = self.request.resolve(prompt.instructions_path, where)
            text = read_instructions(path, where, self.request)
        return text

    def tools(self) -> Iterator[Tool]:
        """Yield the tools of the section `tools`."""
        for at, tool in enumerate(self.manifest.tools):
            path = ("tools", at, "import_path")
            found = self._import(tool.import_path, path)
            if found is None:
                continue
            if isfunction(found) or (isinstance(found, UnimportedObject) and found.is_function):
                # spec: "should point to a @tool-decorated function"
                refused = f"'{tool.import_path}' is a plain function, which sherma refuses"
                text = f"{refused}: decorate it with LangChain's @tool"
                self.problems.warn("plain-function", text, self.document.span(path))
            with self.problems.collecting():
                yield imported_tool(tool, found, self.document.span(path))

    def skills(self) -> Skills:
        """Read the local skill cards and import their tools. spec: `skills`."""
        skills = Skills()
        for at, skill in enumerate(self.manifest.skills):
            if skill.skill_card_path is None:
                continue
            where = self.document.span(("skills", at, "skill_card_path"))
            with self.problems.collecting():
                path = self.request.resolve(skill.skill_card_path, where)
                skills.skills.append(read_skill(skill, path, self.request))
        return skills

    def hooks(self) -> tuple[InstalledHook | InstalledServer, ...]:
        """Return the hooks: the caller's, then the manifest's. Runs create instances. spec: `hooks`."""
        installed: list[InstalledHook | InstalledServer] = []
        for given in self.request.hooks:
            with self.problems.collecting():
                found = load_hook(given, self.request)
                name = given if isinstance(given, str) else getattr(given, "__name__", type(given).__name__)
                installed.append(InstalledHook(found, name, self.request.span_of_hook(given)))
        taken = {server.id for server in self.manifest.mcp_servers}
        names = chain(["hooks"], (f"hooks-{number}" for number in count(2)))
        free = (name for name in names if name not in taken)  # the MCP servers of hooks have no names
        for at, declared in enumerate(self.manifest.hooks):
            (key,) = doc.given(declared, "import_path", "url", "mcp")
            where = self.document.span(("hooks", at, key))
            if declared.import_path is not None:
                found = self._import(declared.import_path, ("hooks", at, key))
                if found is not None:
                    installed.append(InstalledHook(found, declared.import_path, where))
            elif declared.url is not None:
                installed.append(InstalledServer(declared.url, where))
            elif declared.mcp is not None:
                installed.append(InstalledServer(declared.mcp.endpoint(next(free)), where))
        for hook in installed:
            self.problems.add(hook.problems())
        return tuple(installed)

    def sub_agents(self) -> tuple[SubAgent, ...]:
        """Return the sub-agents. Files must exist, but are parsed at the first call. spec: `sub_agents`."""
        agents: list[SubAgent] = []
        for at, declared in enumerate(self.manifest.sub_agents):
            imported = None
            path = None
            where = self.document.span(("sub_agents", at))
            if declared.import_path is not None:
                where = self.document.span(("sub_agents", at, "import_path"))
                imported = self._import(declared.import_path, ("sub_agents", at, "import_path"))
                if is_class(imported):
                    text = f"'{declared.import_path}' is a class, not an agent"
                    self.problems.refuse("agent-object", text, where, "name an instance of it")
            if declared.yaml_path is not None:
                where = self.document.span(("sub_agents", at, "yaml_path"))
                with self.problems.collecting():
                    path = self.request.resolve(declared.yaml_path, where)
            agents.append(sub_agent(declared, self.request, path, imported, where, self.load))
        return tuple(agents)

    def _import(self, dotted: str, path: DocumentPath) -> Any:
        with self.problems.collecting():
            return load_object(
                dotted, self.request.folders, self.document.span(path), imports=self.request.imports
            )


_COLLISION_HINT: Final = (
    "only `messages` has a reducer: give each node a field of its own, or have them run one after the other"
)


def load(request: LoadRequest) -> Graph:
    """Return the graph of the agent that a request names.

    Raises:
        ManifestError: lists all problems.
    """
    document = substitute(only_document(request, what="a sherma manifest", yaml="scalar-keys"), request.env)
    try:
        return _compile(request, document)
    except ManifestError as error:
        # A missing key may be misspelt: report unknown keys together with the errors.
        raise ManifestError([*error.problems, *unknown_keys(document)]) from None


def _compile(request: LoadRequest, document: Document) -> Graph:
    manifest = validate(doc.Manifest, document)
    name = select_agent(manifest, document, request.agent)
    compiler = ManifestCompiler(request, document, manifest, load)
    agent = compiler.agent(name)
    compiler.problems.add(AgentRules(manifest, name, document).problems())
    compiler.problems.raise_errors()
    warnings = [*unknown_keys(document), *compiler.problems.warnings]
    warnings += [*duplicate_declarations(manifest, document), *AgentWarnings(agent, document).problems()]
    if request.agent is not None and request.agent != name:
        text = f"agent '{request.agent}' is not in the manifest; its only agent '{name}' is run"
        warnings.append(warning("other-agent", text, document.span(("agents",))))
    return _graph(agent, warnings)


def select_agent(manifest: doc.Manifest, document: Document, wanted: str | None) -> str:
    """Return the agent with this id, else the only agent. spec: "id must match an agent key in the YAML"."""
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


def _graph(agent: Agent, warnings: Sequence[Problem]) -> Graph:
    definition = agent.definition
    places = {
        node.name: agent.document.span(("graph", "nodes", at))
        for at, node in enumerate(definition.graph.nodes)
    }
    nodes = [_node(node, places[node.name]) for node in definition.graph.nodes]
    for name, tools in definition.graph.injected.items():
        # It serves every registered tool. spec: "Auto-injected tool_node"
        nodes.append(_node(doc.ToolNodeNode(name=tools, type="tool_node"), places[name]))
    edges, routers = edges_and_routers(agent)
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
        # Hooks may pause a node.
        may_pause=bool(agent.hooks) or any(node.kind == "interrupt" for node in nodes),
        warnings=tuple(warnings),
        collision_hint=_COLLISION_HINT,
        shares_answers=False,
        vocabulary=lambda: vocabulary(agent, tuple(nodes)),
        declared=cache(partial(declared_data, agent)),
    )


def _node(node: doc.Node, span: Span) -> Node:
    return Node(node.name, node.type, node_function(node, NODE_FUNCTIONS[node.type]), span)


def _channels(definition: doc.Agent) -> Iterator[Channel]:
    """Yield the state channels: `messages` accumulates, other fields are replaced. spec: `state`."""
    for field in definition.state.fields_:
        if field.name == "messages" and definition.keeps_messages:
            yield Channel(field.name, append_messages, partial(_initial_messages, field.default))
        elif field.name != INTERNAL_STATE_KEY:
            yield Channel(
                field.name, initial=partial(copy.deepcopy, field.default) if field.has_default else None
            )
    yield Channel(INTERNAL_STATE_KEY)


def _initial_messages(messages: Any) -> MessageLog:
    written = to_messages(messages or [])
    return MessageLog(
        [m if m.id else m.model_copy(update={"id": f"default-{at}"}) for at, m in enumerate(written)]
    )
