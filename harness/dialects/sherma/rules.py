"""Rules of a manifest that the types of the models cannot express: one method per rule of the document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isfinite, isnan
from typing import Any, Final

from harness.dialects.kit.rules import Rules, repeated, warning
from harness.dialects.sherma import document as doc
from harness.dialects.sherma.document import Retry
from harness.dialects.sherma.tools import find_version
from harness.errors import ManifestError, Problem
from harness.graph.model import END, START
from harness.matchers.schema_flaws import schema_flaw
from harness.source.display import did_you_mean
from harness.source.document import Document
from harness.source.models import validate

FALLBACK_TYPES = ("call_llm", "tool_node", "call_agent", "custom")
_BY_VERSION: Final = ("prompts", "llms", "tools", "skills")
_BY_ID: Final = ("sub_agents", "mcp_servers")


def unknown_keys(document: Document) -> Iterator[Problem]:
    """Yield undocumented keys, which sherma ignores."""
    try:
        validate(doc.Manifest, document, extra="forbid")
    except ManifestError as refusal:
        for problem in refusal.problems:
            if problem.code == "unknown-key":
                yield replace(problem, message=f"{problem.message} is ignored", severity="warning")


def duplicate_declarations(manifest: doc.Manifest, document: Document) -> Iterator[Problem]:
    """Yield duplicate declarations of an id or a version: sherma's registries keep only one.

    Versions of a sub-agent are told apart by call_agent nodes alone.
    """
    nodes = (node for agent in manifest.agents.values() for node in agent.graph.nodes)
    called = {node.args.agent.id for node in nodes if node.type == "call_agent"}
    for section in (*_BY_VERSION, *_BY_ID):
        names = []
        for each in getattr(manifest, section):
            by_version = section in _BY_VERSION or (section == "sub_agents" and each.id in called)
            names.append((each.id, f" with version '{each.version}'" if by_version else ""))
        for at, _ in repeated(names):
            id_, version = names[at]
            text = f"'{id_}' is defined twice in '{section}'{version}: only one of them is used"
            yield warning("duplicate-name", text, document.span((section, at, "id")))


class AgentRules(Rules):
    """The rules for one agent of a manifest. Paths are below its graph."""

    def __init__(self, manifest: doc.Manifest, name: str, document: Document) -> None:
        super().__init__(document.at(("agents", name, "graph")))
        self.manifest, self.name, self.agent = manifest, name, manifest.agents[name]
        self.graph = self.agent.graph
        self._of_manifest, self._of_agent = Rules(document), Rules(document.at(("agents", name)))
        self._names = [node.name for node in self.graph.nodes]
        self._nodes = dict.fromkeys([*self._names, *self.graph.injected.values()])

    def problems(self) -> Iterator[Problem]:
        """Yield all errors of the agent."""
        yield from self.distinct_names()
        yield from self.references()
        yield from self.state_fields()
        yield from self.models()
        yield from self.tool_binding()
        yield from self.sub_agents()
        yield from self.error_handling()
        yield from self.tool_nodes()
        yield from self.schemas()

    def distinct_names(self) -> Iterator[Problem]:
        """Node names are unique and different from those of injected tool nodes."""
        for at, _ in repeated(self._names):
            text = f"two nodes are called '{self._names[at]}'"
            yield self.error("duplicate-name", text, "nodes", at, "name")
        taken = {*self._names}
        for at, name in enumerate(self._names):
            yield from self.not_reserved(name, "nodes", at, "name")
            if (tools := self.graph.injected.get(name)) in taken:
                text = f"the tool node of '{name}' would be called '{tools}', which is taken"
                yield self.error("duplicate-name", text, "nodes", at, "name")

    def references(self) -> Iterator[Problem]:
        """Every node name in an edge, the entry point or a fallback exists.

        spec: edges, `entry_point`, `__start__`, `__end__`.
        """
        yield from self._check_node(self.graph.entry_point, "entry point", "entry_point")
        for at, edge in enumerate(self.graph.edges):
            here = ("edges", at)
            yield from self._check_node(edge.source, "edge source", *here, "source", beside=START)
            if edge.target is None and not edge.branches:
                text = f"the edge from '{edge.source}' leads nowhere: it needs 'target' or 'branches'"
                yield self.error("edge-target", text, *here)
            yield from self._check_node(edge.target, "edge target", *here, "target", beside=END)
            for number, branch in enumerate(edge.branches or ()):
                place = (*here, "branches", number, "target")
                yield from self._check_node(branch.target, "branch target", *place, beside=END)
            yield from self._check_node(edge.default, "default target", *here, "default", beside=END)
        for at, node in enumerate(self.graph.nodes):
            if node.on_error is not None:
                path = ("nodes", at, "on_error", "fallback")
                yield from self._check_node(node.on_error.fallback, "fallback", *path)

    def _check_node(
        self, name: str | None, what: str, *path: str | int, beside: str = ""
    ) -> Iterator[Problem]:
        """Check the name of a node, if there is one. `beside` is a special name that is allowed too."""
        if name is not None and name not in self._nodes and name != beside:
            hint = did_you_mean(name, [*self._nodes, *filter(None, [beside])])
            text = f"{what} '{name}' is not a node of agent '{self.name}'"
            yield self.error("unknown-node", text, *path, hint=hint)

    def state_fields(self) -> Iterator[Problem]:
        """Field names are unique; call_llm and interrupt nodes need a field `messages`. spec: State."""
        fields = [field.name for field in self.agent.state.fields_]
        for at, _ in repeated(fields):
            text = f"state field '{fields[at]}' is declared twice"
            yield self._of_agent.error("duplicate-name", text, "state", "fields", at, "name")
        writing = [node for node in self.graph.nodes if node.type in ("call_llm", "interrupt")]
        if writing and "messages" not in fields:
            text = f"{writing[0].type} node '{writing[0].name}' needs a state field 'messages' of type list"
            yield self._of_agent.error("no-messages", text, "state")

    def models(self) -> Iterator[Problem]:
        """Each call_llm has an `llm` or there is a `default_llm`, and it is declared. spec: Default LLM."""
        llms = [llm.id for llm in self.manifest.llms]
        for at, node in self._of_type("call_llm"):
            reference = node.args.llm or self.manifest.default_llm
            if reference is None:
                text = f"call_llm node '{node.name}' has no 'llm', and there is no 'default_llm'"
                yield self.error("no-llm", text, "nodes", at)
                continue
            text = f"llm '{reference.id}' of node '{node.name}' is not declared"
            path = (
                ("agents", self.name, "graph", "nodes", at, "args", "llm")
                if node.args.llm
                else ("default_llm",)
            )
            yield from self._of_manifest.known_name("unknown-llm", text, reference.id, llms, *path, "id")

    def tool_binding(self) -> Iterator[Problem]:
        """The dynamic flags are mutually exclusive. spec: "Tool binding modes"."""
        for at, node in self._of_type("call_llm"):
            flags = node.args.flags
            path = ("nodes", at, "args")
            if len(flags) > 1:
                text = f"{' and '.join(flags)} are mutually exclusive: set at most one of them"
                yield self.error("tool-flags", text, *path, flags[1])
            if node.args.response_format is not None and node.args.binds_tools:
                text = f"node '{node.name}' cannot have both 'response_format' and tools"
                yield self.error("tool-flags", text, *path, "response_format")

    def sub_agents(self) -> Iterator[Problem]:
        """Bound and called agents are declared, those that are called with this version. spec: Multi-Agent."""
        declared = [agent.id for agent in self.manifest.sub_agents]
        for at, node in self._of_type("call_llm"):
            chosen = node.args.use_sub_agents_as_tools
            path = ("nodes", at, "args", "use_sub_agents_as_tools")
            if chosen and not declared:
                text = f"node '{node.name}' binds sub-agents, and the manifest declares none"
                yield self.error("unknown-agent", text, *path)
                continue
            for number, bound in enumerate(chosen if isinstance(chosen, list) else ()):
                text = f"sub-agent '{bound.id}' is not declared in 'sub_agents'"
                yield from self.known_name("unknown-agent", text, bound.id, declared, *path, number, "id")
        for at, node in self._of_type("call_agent"):
            called, path = node.args.agent, ("nodes", at, "args", "agent")
            text = f"agent '{called.id}' of node '{node.name}' is not declared in 'sub_agents'"
            yield from self.known_name("unknown-agent", text, called.id, declared, *path, "id")
            versions = [sub.version for sub in self.manifest.sub_agents if sub.id == called.id]
            if versions and find_version(versions, called.version) is None:
                text = f"agent '{called.id}' has no version '{called.version}'"
                hint = f"it has {', '.join(versions)}"
                yield self.error("unknown-agent", text, *path, "version", hint=hint)

    def error_handling(self) -> Iterator[Problem]:
        """Only call_llm has `retry`, and only IO-bound nodes have `fallback`. spec: on_error."""
        for at, node in enumerate(self.graph.nodes):
            if node.on_error is None:
                continue
            path = ("nodes", at, "on_error")
            if node.type not in FALLBACK_TYPES:
                text = f"on_error is not supported on {node.type} node '{node.name}'"
                yield self.error("on-error", text, *path, hint=f"it is on {', '.join(FALLBACK_TYPES)}")
            elif node.on_error.retry is not None and node.type != "call_llm":
                text = f"retry is only supported on call_llm nodes, and '{node.name}' is a {node.type}"
                yield self.error("on-error", text, *path, "retry")
            elif node.on_error.retry is not None:
                yield from self._check_retry(node.on_error.retry, *path, "retry")

    def _check_retry(self, retry: Retry, *path: str | int) -> Iterator[Problem]:
        if retry.max_attempts < 1:
            text = f"max_attempts must be at least 1, not {retry.max_attempts}"
            yield self.error("on-error", text, *path, "max_attempts")
        if not isfinite(retry.delay) or isnan(retry.max_delay):
            key = "max_delay" if isfinite(retry.delay) else "delay"
            yield self.error("on-error", f"{key} must be a number of seconds", *path, key)
            return
        if retry.delay < 0:
            yield self.error("on-error", f"delay must not be negative: {retry.delay:g}", *path, "delay")
        if retry.max_delay < retry.delay:
            text = f"max_delay ({retry.max_delay:g}) is less than delay ({retry.delay:g})"
            hint = "" if "max_delay" in retry.model_fields_set else "the default is 30"
            yield self.error("on-error", text, *path, "max_delay", hint=hint)

    def tool_nodes(self) -> Iterator[Problem]:
        """A call_llm with tools and branches of its own needs a tool_node in the graph."""
        for at, node in self._of_type("call_llm"):
            if node.args.binds_tools and not self.graph.has_tool_node:
                text = f"call_llm node '{node.name}' has tools and branches of its own, but there is no tool_node"
                yield self.error("no-tool-node", text, "nodes", at)

    def schemas(self) -> Iterator[Problem]:
        """`input_schema` and `output_schema` are JSON Schemas."""
        for key in ("input_schema", "output_schema"):
            schema = getattr(self.agent, key)
            if schema is not None and (flaw := schema_flaw(schema)) is not None:
                text = f"{key} is not a JSON Schema: {flaw.message}"
                yield self._of_agent.error("bad-schema", text, key, *flaw.path, hint=flaw.hint)

    def _of_type(self, kind: str) -> Iterator[tuple[int, Any]]:
        return ((at, node) for at, node in enumerate(self.graph.nodes) if node.type == kind)
