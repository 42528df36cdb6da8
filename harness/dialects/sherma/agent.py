"""A compiled agent, and the session of one run, which its nodes share."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin

from pydantic import Field

from harness.dialects.kit.manifest import load_object
from harness.dialects.request import LoadRequest
from harness.dialects.sherma import document as doc
from harness.dialects.sherma.document import INTERNAL_STATE_KEY, Section
from harness.dialects.sherma.hooks import Hooks, InstalledHook
from harness.dialects.sherma.server_hooks import InstalledServer
from harness.dialects.sherma.tools import (
    Origin,
    Tool,
    ToolRegistry,
    find_version,
    imported_tool,
    resolve_version,
)
from harness.engine.context import NodeContext, RunContext
from harness.errors import ExpressionError, HarnessError, ManifestError, Problem, Span
from harness.expressions.cel import compile as compile_cel
from harness.graph.effects import NAMED_KINDS
from harness.graph.messages import MessageLog
from harness.graph.model import NODE, NestedGraph, Node, Outside, State, Vocabulary
from harness.source.display import did_you_mean
from harness.source.document import Document, DocumentPath, parse, read
from harness.source.models import validate


class SkillNotFound(HarnessError):
    """A skill is not declared, or cannot be loaded."""

    code = "unknown-skill"


class LocalTool(doc.Tool, title="a tool of a skill card"):
    """A Python tool of a skill."""


class CardMCPServer(doc.Declaration, title="an MCP server of a skill card"):
    """An MCP server of a skill, whose tools are listed when the skill is loaded."""

    url: str
    transport: str = "streamable-http"


class Card(Section, title="a skill card"):
    """A skill card. `files` are relative to `base_uri`, which is relative to the card.

    The skill's id and version come from the manifest.
    """

    name: str
    description: str
    base_uri: str = "."
    files: list[str] = Field(default_factory=list)
    mcps: dict[str, CardMCPServer] = Field(default_factory=dict)
    local_tools: dict[str, LocalTool] = Field(default_factory=dict)


Fetch = Callable[[str], Awaitable[str]]
"""Fetches the text at a URL, as an effect; raises SkillNotFound."""


@dataclass(frozen=True)
class Skill:
    """A declared skill: id and version from the manifest, its card, the place of its files, and its tools.

    The files are in a folder, or below a URL if the card or its `base_uri` is one; then they are fetched when read.
    """

    id: str
    version: str
    card: Card
    base: Path | str
    tools: tuple[Tool, ...] = ()

    @property
    def tool_ids(self) -> list[str]:
        """The ids of its local tools; those of its MCP servers are not known yet."""
        return [tool.id for tool in self.card.local_tools.values()]

    def files_under(self, prefix: str) -> list[str]:
        """Return the files of the card below a folder such as `references/`."""
        return [name for name in self.card.files if name.startswith(prefix)]

    async def text(self, name: str, fetch: Fetch) -> str:
        """Return the text of a file.

        Raises:
            SkillNotFound: it does not exist, is not text, or is outside the skill's folder.
        """
        try:
            if isinstance(self.base, str):
                return await fetch(urljoin(self.base, name))
            path = (self.base / name).resolve()
            if not path.is_relative_to(self.base):
                raise SkillNotFound(f"'{name}' is outside the skill's folder")
            return path.read_text(encoding="utf-8-sig")
        except SkillNotFound as error:
            raise SkillNotFound(f"skill '{self.id}': {error}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise SkillNotFound(f"skill '{self.id}': cannot read '{name}': {error}") from None


@dataclass
class Skills:
    """The declared skills, in order. An id may have several versions."""

    skills: list[Skill] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.skills)

    def get(self, id_: str, version: str = "*") -> Skill:
        """Return a skill; `*` is the latest version.

        Raises:
            SkillNotFound: no such skill or version.
        """
        versions = {skill.version: skill for skill in reversed(self.skills) if skill.id == id_}
        if not versions:
            hint = did_you_mean(id_, [skill.id for skill in self.skills])
            raise SkillNotFound(f"skill '{id_}' not found" + (f" ({hint})" if hint else ""))
        wanted = version.removeprefix("==")
        found = resolve_version(versions, wanted)
        if found is None:
            raise SkillNotFound(f"skill '{id_}' has no version '{wanted}'")
        return versions[found]

    def listed(self) -> list[dict[str, str]]:
        """Return the result of `list_skills`."""
        return [
            {
                "id": each.id,
                "version": each.version,
                "name": each.card.name,
                "description": each.card.description,
            }
            for each in self.skills
        ]


def read_skill(declared: doc.Skill, card_path: Path, request: LoadRequest) -> Skill:
    """Read a skill from a local card. Its files are beside the card, or at `base_uri` if that is a URL.

    Raises:
        ManifestError: the card is invalid, or a tool cannot be imported.
    """
    document = read(card_path)
    card = validate(Card, document)
    tools = _card_tools(card, document, request.folders, imports=request.imports)
    if card.base_uri.startswith(("http://", "https://")):
        return Skill(declared.id, declared.version, card, _as_folder(card.base_uri), tools)
    folder = (card_path.parent / card.base_uri).resolve()
    if not request.may_read(folder):
        text = f"base_uri '{card.base_uri}' leads out of the folders a manifest may read"
        raise ManifestError(Problem("path-outside", text, document.span(("base_uri",))))
    request.record(folder)  # its files are read during runs
    return Skill(declared.id, declared.version, card, folder, tools)


def remote_skill(declared: doc.Skill, text: str, folders: Sequence[Path]) -> Skill:
    """Return a skill from the text of the card at its `url`; `base_uri` is relative to it.

    Raises:
        ManifestError: the card is invalid, or a tool cannot be imported.
    """
    url = declared.url or ""
    document = parse(text, file=url, json=True)
    card = validate(Card, document)
    base = _as_folder(urljoin(url, card.base_uri))
    return Skill(declared.id, declared.version, card, base, _card_tools(card, document, folders))


def _as_folder(url: str) -> str:
    return url if url.endswith("/") else f"{url}/"


def _card_tools(
    card: Card, document: Document, folders: Sequence[Path], *, imports: bool = True
) -> tuple[Tool, ...]:
    tools = []
    for key, tool in card.local_tools.items():
        span = document.span(("local_tools", key, "import_path"))
        found = load_object(tool.import_path, folders, span, imports=imports)
        tools.append(imported_tool(tool, found, span, origin=Origin.SKILL))
    return tuple(tools)


@dataclass
class LoadedSkills:
    """The skills and tools that a conversation has loaded, stored in `__sherma__` beside `others`."""

    tools: list[str]
    skills: dict[str, dict[str, Any]]
    others: Mapping[str, Any]

    @classmethod
    def of(cls, state: Any) -> LoadedSkills:
        """Read them from a state."""
        internal = state.get(INTERNAL_STATE_KEY) or {}
        return cls(
            list(internal.get("loaded_tools_from_skills") or ()),
            dict(internal.get("loaded_skills") or {}),
            internal,
        )

    def load(self, skill: Skill, version: str, tool_ids: Sequence[str]) -> None:
        """Add a skill and its tools, in loading order and without duplicates."""
        self.tools += [id_ for id_ in tool_ids if id_ not in self.tools]
        self.skills[skill.id] = {"version": version, "tools": list(tool_ids)}

    def unload(self, skill_id: str) -> None:
        """Remove a skill and its tools, if it is loaded."""
        gone = self.skills.pop(skill_id, {"tools": ()})["tools"]
        self.tools = [id_ for id_ in self.tools if id_ not in gone]

    def as_update(self) -> dict[str, Any]:
        """Return the update of `__sherma__`."""
        return {**self.others, "loaded_tools_from_skills": self.tools, "loaded_skills": self.skills}


CallAgent = Callable[[str, NodeContext], Awaitable[str | None]]
"""Sends text to an agent and returns its text, or None if it has none or paused."""


@dataclass(frozen=True)
class SubAgent:
    """A declared sub-agent.

    call           sends text to it, as an `agent` effect
    url            address of a remote agent
    description    shown to models
    inside         the graph of a local manifest
    is_python      True for a Python object
    is_unimported  True for a Python object that was not imported
    """

    id: str
    version: str
    call: CallAgent
    url: str | None = None
    description: str = ""
    inside: NestedGraph | None = None
    is_python: bool = False
    is_unimported: bool = False


@dataclass(frozen=True)
class Agent:
    """A compiled agent of a manifest.

    document       the agent as it is written
    mcp_servers    the servers whose tools are listed when a run begins, with their locations
    variables      the CEL variables besides `state`
    remote_skills  skills whose cards are fetched when a run begins
    folders        folders that modules are imported from
    """

    name: str
    manifest: doc.Manifest
    document: Document
    variables: Mapping[str, Any]
    tools: ToolRegistry
    skills: Skills
    sub_agents: tuple[SubAgent, ...]
    hooks: tuple[InstalledHook | InstalledServer, ...]
    mcp_servers: tuple[tuple[doc.MCPServer, Span], ...]
    remote_skills: tuple[tuple[doc.Skill, Span], ...]
    folders: tuple[Path, ...]

    @property
    def definition(self) -> doc.Agent:
        """The agent in its manifest."""
        return self.manifest.agents[self.name]

    @cached_property
    def llms(self) -> Mapping[str, doc.LLM]:
        """The models by id. Of several versions, nodes use the first declared (observed in sherma)."""
        found: dict[str, doc.LLM] = {}
        for llm in self.manifest.llms:
            found.setdefault(llm.id, llm)
        return found

    def sub_agent(self, id_: str, version: str) -> SubAgent:
        """Return the sub-agent that a call_agent node names. The rules have checked that there is one."""
        declared = {agent.version: agent for agent in self.sub_agents if agent.id == id_}
        found = find_version(declared, version)
        assert found is not None
        return declared[found]

    def evaluate(self, expression: str, state: State, **names: Any) -> Any:
        """Evaluate a CEL expression. It is parsed here, so a syntax error fails the node, not the load.

        Raises:
            ExpressionError: it cannot be parsed or evaluated.
        """
        bindings = {**self.variables, **names, "state": state}
        return compile_cel(expression, null_as_false=True).evaluate(bindings)

    def expression_place(self, node: str, error: ExpressionError) -> Span | None:
        """Return the location of a failed expression of a node; None if it is not one of the manifest's.

        The expression is found by its text.
        """
        nodes = self.definition.graph.nodes
        for path, text in cel_expressions(self.definition):
            if text == error.source and path[0] == "nodes" and nodes[int(path[1])].name == node:
                return self.document.span_within(("graph", *path), error.line, error.column)
        return None


@dataclass
class AgentSession:
    """The state of one run of an agent: its hook instances, and its tools including those of MCP servers.

    invocation   input and config of the current invocation, and the models that hooks configured
    hook_copies  parts of the manifest that hooks have seen
    """

    agent: Agent
    hooks: Hooks
    tools: ToolRegistry
    invocation: dict[str, Any] = field(default_factory=dict)
    hook_copies: dict[str, Any] = field(default_factory=dict)

    def copy_for_hooks(self, name: str, definition: Any) -> Any:
        """Return a copy of a part of the manifest, made once per run."""
        if name not in self.hook_copies:
            self.hook_copies[name] = definition.model_copy(deep=True)
        return self.hook_copies[name]

    @classmethod
    def of(cls, run: RunContext) -> AgentSession:
        """Return the session of a run."""
        session: AgentSession = run.resources["session"]
        return session


def hook_state(state: State) -> dict[str, Any]:
    """Return the state for hooks: copies, which they may change; `messages` is a list."""
    return {name: _copy(value) for name, value in state.items()}


def _copy(value: Any) -> Any:
    if isinstance(value, MessageLog):
        return [message.model_copy(deep=True) for message in value]
    try:
        return copy.deepcopy(value)
    except Exception:  # a hook stored something that cannot be copied, such as a lock
        return value


LEGACY_CONDITION: Final = "has_tool_calls"
"""A branch condition that is not CEL, from manifests older than injected tool nodes."""


def cel_expressions(agent: doc.Agent) -> Iterator[tuple[DocumentPath, str]]:
    """Yield the CEL expressions of a graph, with their paths in it."""
    for at, node in enumerate(agent.graph.nodes):
        args = ("nodes", at, "args")
        if node.type == "call_llm":
            for number, item in enumerate(node.args.prompt):
                yield (*args, "prompt", number, "content"), item.content
        for section in ("state_updates", "values"):
            for key, text in (getattr(node.args, section, None) or {}).items():
                yield (*args, section, key), text
        for key in ("input", "expression", "value", "skill_ids"):
            if isinstance(text := getattr(node.args, key, None), str):
                yield (*args, key), text
    for at, edge in enumerate(agent.graph.edges):
        for number, branch in enumerate(edge.branches or ()):
            if branch.condition.strip() != LEGACY_CONDITION:
                yield ("edges", at, "branches", number, "condition"), branch.condition


_CALLING = ("call_agent", "tool_node")
"""Node types that call sub-agents. With hooks, any node may."""


def vocabulary(agent: Agent, nodes: tuple[Node, ...]) -> Vocabulary:
    """Return the names of an agent's graph."""
    # Calls of sub-agents are `agent` effects, those of MCP tools are `mcp`.
    tools = [tool for tool in agent.tools.all() if tool.origin in (Origin.MANIFEST, Origin.SKILL)]
    cards = [skill.card for skill in agent.skills.skills]
    inside = [sub.inside for sub in agent.sub_agents if sub.inside is not None]
    calling = [node.name for node in nodes if agent.hooks or node.kind in _CALLING]
    return Vocabulary(
        names={
            "llm": [llm.model_name for llm in agent.llms.values()],
            "tool": [tool.id for tool in tools],
            "server": [
                *(server.id for server in agent.manifest.mcp_servers),
                *(server.id for card in cards for server in card.mcps.values()),
                *(hook.server for hook in agent.hooks if isinstance(hook, InstalledServer) and hook.server),
            ],
            "agent": list(dict.fromkeys(sub.id for sub in agent.sub_agents)),
        },
        aliases={"tool": {tool.name: tool.id for tool in tools if tool.name != tool.id}},
        open=dict(_open(agent)),
        inside=dict.fromkeys(calling, inside) if inside else {},
        outside=[*_outside(agent)],
    )


def _outside(agent: Agent) -> Iterator[Outside]:
    """Yield what only a scenario answers. Sub-agents from a manifest or from Python run by themselves."""
    graph = agent.definition.graph
    lists = [node.args.tools for node in graph.nodes if node.type == "tool_node"]
    # An injected tool node serves every tool. It runs after a node that writes its reply to the messages.
    lists += [
        None
        for node in graph.nodes
        if node.type == "call_llm" and node.name in graph.injected and "messages" in node.args.state_updates
    ]
    served = {ref.id for refs in lists for ref in refs or ()}
    for tool in agent.tools.all():
        if tool.origin is Origin.MANIFEST and (None in lists or tool.id in served):
            others = (("tool", tool.name),) if tool.name != tool.id else ()
            yield Outside("tool", tool.id, others, asked=(tool.name, tool.id))
    for server in agent.manifest.mcp_servers:
        yield Outside("server", server.id)
    called = {node.args.agent.id for node in graph.nodes if node.type == "call_agent"}
    for sub in agent.sub_agents:
        others = () if sub.url is None else (("http", ""),)
        if sub.inside is None and not sub.is_python:
            yield Outside("agent", sub.id, others, asked=() if sub.id in called else (sub.id,))


def _open(agent: Agent) -> Iterator[tuple[str, str]]:
    if agent.hooks:
        yield from ((kind, "a hook may add any") for kind in NAMED_KINDS)
    if agent.remote_skills:
        yield from (
            (kind, "the cards of remote skills are fetched when it runs") for kind in ("tool", "server")
        )
    if any(sub.is_python for sub in agent.sub_agents):
        yield "llm", "a sub-agent is Python code"
    if any(sub.is_unimported for sub in agent.sub_agents):
        yield from (
            (kind, "a sub-agent is Python code that was not imported") for kind in (NODE, *NAMED_KINDS)
        )
    if not all(tool.has_known_name for tool in agent.tools.all()):
        yield "tool", "a tool was not imported"
