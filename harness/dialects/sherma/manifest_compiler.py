"""Compiles the sections of a manifest: one method each, in the order of the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from inspect import isfunction
from itertools import chain, count
from typing import Any

from harness.dialects.kit.manifest import Problems, UnimportedObject, is_class, load_hook, load_object
from harness.dialects.request import LoadRequest
from harness.dialects.sherma import document as doc
from harness.dialects.sherma.agent import Agent, MCPDeclaration, SubAgent
from harness.dialects.sherma.expressions import expression_place
from harness.dialects.sherma.installed_hooks import InstalledHook
from harness.dialects.sherma.prompt_list import read_instructions
from harness.dialects.sherma.server_hooks import InstalledServer
from harness.dialects.sherma.skill_tools import skill_tools
from harness.dialects.sherma.skills import Skills, read_skill
from harness.dialects.sherma.stand_in import offer_stand_in
from harness.dialects.sherma.sub_agents import Load, sub_agent, sub_agent_tool
from harness.dialects.sherma.tools import Tool, ToolRegistry, imported_tool
from harness.errors import Problem, Span
from harness.graph.effects import MCPEndpoint
from harness.source.document import Document, DocumentPath


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
            definition=self.manifest.agents[name],
            manifest=self.manifest,
            variables=self.variables(skills),
            tools=registry,
            skills=skills,
            llms=self.llms(),
            sub_agents=sub_agents,
            hooks=self.hooks(),
            mcp_servers=self.mcp_servers(),
            remote_skills=self.remote_skills(),
            folders=self.request.folders,
            expression_place=partial(
                expression_place, self.manifest.agents[name], self.document, ("agents", name, "graph")
            ),
            schema_places={
                key: self.document.span(("agents", name, key)) for key in ("input_schema", "output_schema")
            },
        )

    def llms(self) -> Mapping[str, doc.LLM]:
        """Return the models by id. Of several versions, nodes use the first declared (observed in sherma)."""
        found: dict[str, doc.LLM] = {}
        for llm in self.manifest.llms:
            found.setdefault(llm.id, llm)
        return found

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
            if found is not None:
                self._warn_of_function(tool.import_path, found, path)
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

    def remote_skills(self) -> tuple[tuple[doc.Skill, Span], ...]:
        """Return the skills with a `url`, whose cards are fetched when a run begins. spec: `skills`."""
        return tuple(
            (skill, self.document.span(("skills", at, "url")))
            for at, skill in enumerate(self.manifest.skills)
            if skill.url is not None
        )

    def hooks(self) -> tuple[InstalledHook | InstalledServer, ...]:
        """Return the hooks: the caller's, then the manifest's. Runs create instances. spec: `hooks`."""
        installed: list[InstalledHook | InstalledServer] = []
        for given in self.request.hooks:
            with self.problems.collecting():
                found = load_hook(given, self.request)
                name = given if isinstance(given, str) else getattr(given, "__name__", type(given).__name__)
                installed.append(InstalledHook(found, name, self.request.span_of_hook(given)))
        names = self._names_of_hook_servers()
        for at, declared in enumerate(self.manifest.hooks):
            path = ("hooks", at, "import_path")
            if declared.import_path is not None:
                found = self._import(declared.import_path, path)
                if found is not None:
                    installed.append(InstalledHook(found, declared.import_path, self.document.span(path)))
            elif declared.url is not None:
                installed.append(InstalledServer(declared.url, self.document.span(("hooks", at, "url"))))
            elif declared.mcp is not None:
                endpoint = _endpoint(next(names), declared.mcp)
                installed.append(InstalledServer(endpoint, self.document.span(("hooks", at, "mcp"))))
        for hook in installed:
            self.problems.add(hook.problems())
        return tuple(installed)

    def _names_of_hook_servers(self) -> Iterator[str]:
        """Yield names for the MCP servers of hooks, which have none: `hooks`, `hooks-2`, …"""
        taken = {server.id for server in self.manifest.mcp_servers}
        names = chain(["hooks"], (f"hooks-{number}" for number in count(2)))
        return (name for name in names if name not in taken)

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

    def mcp_servers(self) -> tuple[MCPDeclaration, ...]:
        """Return the MCP servers, whose tools are listed when a run begins. spec: `mcp_servers`."""
        return tuple(
            MCPDeclaration(
                server,
                _endpoint(server.id, server),
                self.document.span(("mcp_servers", at)),
            )
            for at, server in enumerate(self.manifest.mcp_servers)
        )

    def _import(self, dotted: str, path: DocumentPath) -> Any:
        with self.problems.collecting():
            return load_object(
                dotted, self.request.folders, self.document.span(path), imports=self.request.imports
            )

    def _warn_of_function(self, dotted: str, found: Any, path: DocumentPath) -> None:
        """Warn about a plain function under `tools`, which sherma refuses.

        spec: "should point to a @tool-decorated function".
        """
        if isfunction(found) or (isinstance(found, UnimportedObject) and found.is_function):
            text = f"'{dotted}' is a plain function, which sherma refuses: decorate it with LangChain's @tool"
            warning = Problem("plain-function", text, self.document.span(path), severity="warning")
            self.problems.add([warning])


def _endpoint(name: str, server: doc.MCPServer | doc.MCPHook) -> MCPEndpoint:
    """Return the endpoint of an MCP server; one of a hook with a command is started by it."""
    return MCPEndpoint(
        name,
        "stdio" if server.command else server.transport,
        server.url,
        server.headers,
        server.command,
        server.args,
        server.env,
    )
